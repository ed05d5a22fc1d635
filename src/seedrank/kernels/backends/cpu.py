"""The fast CPU backend: compiled, threaded products over row-major blocks, with vector registers as columns."""

from __future__ import annotations

import numpy as np
from numba import config, set_num_threads

from seedrank.kernels._cpu.buffers import BlockPair, scale_rows
from seedrank.kernels._cpu.frontier import Frontier
from seedrank.kernels._cpu.gather import WIDTHS
from seedrank.kernels._cpu.layout import Layout, lay_out
from seedrank.kernels._cpu.product import add_chunks, add_seeds, fused_step, width_markers
from seedrank.kernels._cpu.relax import relax_rows
from seedrank.kernels._cpu.select import select_columns
from seedrank.kernels._cpu.started import LoadedGraph, StartedBlock, seed_mass
from seedrank.kernels._cpu.streamed_layout import stream_layout
from seedrank.kernels._cpu.sums import RunningSums
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock, Selection, StepReport, StepSums
from seedrank.kernels.backends.in_turn import InTurn
from seedrank.kernels.backends.slab_store import SlabStore
from seedrank.kernels.streamed_transition import StreamedTransition
from seedrank.kernels.transition import Transition

CACHE_BYTES = 24 << 20
"""Two blocks of at most this size stay in the last-level cache: then narrower blocks are faster a column."""

STREAM_BYTES = 40 << 20
"""Two blocks of more than this are written past the cache."""


class CpuBackend(InTurn[LoadedGraph, StartedBlock]):
    """Backend on Numba: the default.

    The block is an (n, B) matrix, B = 16, 32 or 64 columns (narrower blocks are padded with zeros), of vectors that are
    divided by the out-weights where the graph has no edge weights: then an entry of the graph costs its index and one
    addition a column. Nodes that pass mass on come first; dangling nodes are computed only when they are asked for,
    and their mass is what the others lack. Rows up to 16 entries are added in the precision of the run, longer ones in
    float64 over stretches of 16, so a hub's sum has no larger error than a leaf's. A column that has reached few nodes
    is a list beside the matrix, and joins it when pushing the list would cost more than its part of a product. A fixed
    chunk of rows is summed by
    one thread, chunks are added in order: no bit depends on threads, block width or neighbouring columns.

    Parameters
    ----------
    threads : int, optional
        By default all that Numba has.
    """

    name = "cpu"

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__()
        # Numba refuses more threads than it started with.
        most = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        self._threads = min(threads or most, most)

    def load(self, transition: Transition, *, precision: Precision, order: Int32Array) -> None:
        """Take over a graph; see `Backend.load`."""
        self._load(lay_out(transition, precision), transition, precision, order)

    def load_streamed(
        self,
        transition: StreamedTransition,
        store: SlabStore,
        *,
        precision: Precision,
        order: Int32Array,
        slab_entries: int,
    ) -> None:
        """Take over a graph that memory does not hold; see `StreamingBackend.load_streamed`."""
        self._load(stream_layout(transition, precision, store, slab_entries=slab_entries), transition, precision, order)

    def _load(
        self, layout: Layout, transition: Transition | StreamedTransition, precision: Precision, order: Int32Array
    ) -> None:
        self._started = None
        self._loaded = LoadedGraph(
            layout=layout,
            dangling=transition.dangling,
            precision=precision,
            ranks=order[layout.node_at],
            ones=layout.scale if layout.rows.weighted else np.ones(layout.nodes, dtype=precision),
            pair=BlockPair(layout.nodes, precision, self._threads),
            sums=RunningSums(layout.nodes, precision, self._threads),
            frontier=Frontier(transition, precision),
        )

    def widest_block(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Return 64, or 32 where two blocks of that width stay in the cache and two of 64 do not."""
        bytes_of_32 = 2 * 32 * nodes * np.dtype(precision).itemsize
        return 32 if bytes_of_32 <= CACHE_BYTES < 2 * bytes_of_32 else 64

    def stored_columns(self, width: int) -> int:
        """Return the width of the kernel: 16, 32 or 64."""
        return _padded(width)

    def bytes_per_query(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Bytes of one column: the vector and its successor, and its sums."""
        return (2 + sums) * nodes * np.dtype(precision).itemsize

    def start(self, block: QueryBlock, *, restart: float) -> None:
        """Begin with v⁰ = s; see `Backend.start`."""
        graph = self._graph
        set_num_threads(self._threads)  # Numba's setting belongs to the calling thread
        width = _padded(block.width)
        graph.pair.reset(width)
        graph.frontier.start(block)
        place = graph.layout.place
        column = np.repeat(np.arange(block.width), np.diff(block.seed_offsets))
        mass = seed_mass(
            place[block.seed_nodes].astype(np.int64),
            column,
            block.seed_weights,
            active=graph.layout.active,
            width=width,
        )
        self._started = StartedBlock(
            query=block,
            restart=restart,
            columns=np.arange(block.width),
            active_mass=mass[0],
            dangling_mass=mass[1],
            norm=np.ones(width),
            seed_row=np.zeros(0, dtype=np.int64),
            seed_column=np.zeros(0, dtype=np.int64),
            seed_weight=np.zeros(0),
        )

    def step(self, *, measure: bool = True) -> StepReport:
        """One step of the recurrence for all kept columns; see `Backend.step`."""
        block, frontier = self._block, self._graph.frontier
        self._enter(frontier.grown())
        kept = len(block.columns)
        mass, change = self._product(measure=measure) if len(frontier.positions) < kept else np.zeros((2, 2, kept))
        if len(frontier.positions):
            pushed = frontier.step(restart=block.restart)
            mass[0, pushed.positions] = pushed.mass - pushed.dangling_mass
            mass[1, pushed.positions] = pushed.dangling_mass
            change[0, pushed.positions] = pushed.difference
        block.active_mass[:kept], block.dangling_mass[:kept] = mass
        if not measure:
            mass = change = np.full((2, kept), np.nan)
        return StepSums(mass=mass.sum(0), dangling_mass=mass[1].copy(), difference=change.sum(0))

    def _product(self, *, measure: bool) -> tuple[Float64Array, Float64Array]:
        """One step for the columns in the matrix; sums of the new values and of the changes: (2, kept) each.

        The first line of both is over active rows, the second over dangling ones.
        """
        graph, block, pair = self._graph, self._block, self._graph.pair
        layout, rows = graph.layout, graph.layout.rows
        width, dtype = pair.current.shape[1], pair.current.dtype
        self._scale()
        stream = 2 * pair.current.nbytes > STREAM_BYTES
        damping = 1.0 - block.restart
        # Spread over all nodes, even a rounding error of 1 - active mass would reach nodes that nothing reaches.
        measure = measure or graph.dangling == "uniform"
        everywhere = np.zeros(width, dtype=dtype)
        share = np.full(width, block.restart)
        assumed = 1.0 - block.norm * block.active_mass
        if graph.dangling == "uniform":
            everywhere[:] = damping * block.dangling_mass / layout.nodes
        elif graph.dangling != "drop":
            # Also under ``self``, where it is what a relaxed vector lacks to the sum 1.
            share += damping * assumed
        last_chunk = len(layout.chunks) - 1 if measure else layout.active_chunks
        stored_scale, stored_unscale = (graph.ones, graph.ones) if measure else (layout.scale, layout.unscale)
        sums = np.empty((len(layout.chunks), width))
        differences = np.empty_like(sums)
        for slab in rows.slabs(last_chunk, ascending=False):
            fused_step(
                rows.offsets, slab.columns, slab.values,
                pair.current, pair.following, stored_scale, layout.unscale, (damping * block.norm).astype(dtype),
                everywhere, block.norm.astype(dtype), layout.chunks, slab.first_chunk, slab.last_chunk,
                slab.first_entry, sums, differences, measure, stream, self._threads, *width_markers(width),
            )  # fmt: skip
        # Rows: over active and over dangling nodes.
        mass, change = np.zeros((2, width)), np.zeros((2, width))
        add_chunks(sums, 0, layout.active_chunks, mass[0])
        if measure:
            add_chunks(sums, layout.active_chunks, last_chunk, mass[1])
            add_chunks(differences, 0, layout.active_chunks, change[0])
            add_chunks(differences, layout.active_chunks, last_chunk, change[1])
        add_seeds(
            block.seed_row, block.seed_column, share[block.seed_column] * block.seed_weight, pair.current,
            pair.following, layout.unscale, stored_scale, stored_unscale, layout.active, block.norm, mass, change,
            measure,
        )  # fmt: skip
        pair.swap()
        block.scaled = not measure
        # A relaxed column has no dangling rows to compare: let them have been the new ones, then only their sum was
        # assumed wrongly, and α of that went to the seeds.
        relaxed = block.norm != 1.0
        change[1] = np.where(relaxed, np.abs(assumed - mass[1]), change[1])
        block.norm = np.ones(width)
        kept = slice(0, len(block.columns))
        return mass[:, kept], change[:, kept]

    def relax(self, sweeps: int, factors: Float64Array) -> None:
        """Sweep in place; see `RelaxingBackend.relax`."""
        graph, block, pair = self._graph, self._block, self._graph.pair
        layout, rows = graph.layout, graph.layout.rows
        width, dtype = pair.current.shape[1], pair.current.dtype
        self._enter(np.ones(len(graph.frontier.positions), dtype=np.bool_))
        self._scale()
        relaxation = np.zeros(width, dtype=dtype)
        relaxation[: len(factors)] = factors
        unfinished, sums = np.zeros(width, dtype=dtype), np.zeros(width)
        strip = max(WIDTHS[0], width // _power_of_two(self._threads))
        # What the seeds get is held at the mass that the last step found on dangling nodes: the scale of the block.
        damping = 1.0 - block.restart
        share = block.restart + damping * block.dangling_mass
        amounts = (share[block.seed_column] * block.seed_weight).astype(dtype)
        gain = (1.0 / (1.0 - damping * layout.loops)).astype(dtype)
        # One call for all sweeps, where no slab has to be read in between: threads wait for each other once.
        passes, together = (1, sweeps) if rows.resident else (sweeps, 1)
        for _ in range(passes):
            for slab in rows.slabs(layout.active_chunks, ascending=True):
                first, last = layout.chunks[[slab.first_chunk, slab.last_chunk]].tolist()
                relax_rows(
                    rows.offsets, slab.columns, slab.values, slab.first_entry, first, last,
                    pair.current, layout.scale, layout.unscale, gain, dtype.type(damping), relaxation,
                    block.seed_row, block.seed_column, amounts, int(np.searchsorted(block.seed_row, first)),
                    layout.active, together, strip, unfinished, sums, *width_markers(strip),
                )  # fmt: skip
        # The solution y = α Pᵀ y + share·s sums to Z = share + α A, with A its sum over active nodes.
        moved = relaxation != 0
        norm = 1.0 / (share + damping * sums)
        block.active_mass = np.where(moved, sums, block.active_mass)
        block.norm = np.where(moved, norm, block.norm)

    def reset(self, columns: Int64Array) -> None:
        """Put columns back to their seeds; see `RelaxingBackend.reset`."""
        block, pair, layout = self._block, self._graph.pair, self._graph.layout
        positions = np.searchsorted(block.columns, columns)
        self._enter(np.isin(self._graph.frontier.positions, positions))
        again = np.isin(block.seed_column, positions)
        row, column, weight = block.seed_row[again], block.seed_column[again], block.seed_weight[again]
        pair.current[:, positions] = 0
        pair.current[row, column] = weight * layout.scale[row] if block.scaled else weight
        mass = seed_mass(row, column, weight, active=layout.active, width=pair.current.shape[1])
        block.active_mass[positions], block.dangling_mass[positions] = mass[:, positions]
        block.norm[positions] = 1.0

    def keep(self, columns: Int64Array) -> None:
        """Compact the block to these columns; see `Backend.keep`."""
        pair, block = self._graph.pair, self._block
        positions = np.searchsorted(block.columns, columns)
        count, width = len(positions), _padded(len(positions))
        new_position = np.full(pair.current.shape[1], -1, dtype=np.int64)
        new_position[positions] = np.arange(count)
        kept = new_position[block.seed_column] >= 0
        pair.narrow(positions, width)
        self._graph.frontier.keep(positions)
        if block.summed:
            self._graph.sums.narrow(positions, width)
        masses = np.zeros((2, width))
        masses[:, :count] = block.active_mass[positions], block.dangling_mass[positions]
        block.active_mass, block.dangling_mass = masses
        block.norm = np.ones(width)
        block.columns = block.columns[positions]
        block.seed_row = block.seed_row[kept]
        block.seed_column = new_position[block.seed_column[kept]]
        block.seed_weight = block.seed_weight[kept]

    def select(self, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float) -> Selection:
        """Select the top k of these columns; see `Backend.select`."""
        graph, block = self._graph, self._block
        self._enter(np.isin(graph.frontier.positions, np.searchsorted(block.columns, columns)))
        unscale = graph.layout.unscale if block.scaled else graph.ones
        return self._select(graph.pair.current, unscale, columns, k, eligible, min_score)

    def accumulate(self, weights: Float64Array, factors: Float64Array) -> None:
        """Add the vectors to the sums; see `SummingBackend.accumulate`."""
        graph, block = self._graph, self._block
        count, width = len(weights), graph.pair.current.shape[1]
        self._enter(np.ones(len(graph.frontier.positions), dtype=np.bool_))
        if not block.summed:
            graph.sums.reset(count, width)
            block.summed = True
        padded = np.stack((np.zeros((count, width)), np.ones((count, width))))
        padded[:, :, : len(block.columns)] = weights, factors
        graph.sums.add(graph.pair.current, graph.layout.unscale if block.scaled else graph.ones, *padded)

    def select_sum(
        self, position: int, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        """Select the top k of a sum; see `SummingBackend.select_sum`."""
        graph = self._graph
        return self._select(graph.sums.matrices[position], graph.ones, columns, k, eligible, min_score)

    def _select(
        self,
        matrix: ScoreArray,
        unscale: ScoreArray,
        columns: Int64Array,
        k: int,
        eligible: BoolArray | None,
        min_score: float,
    ) -> Selection:
        layout, query, block = self._graph.layout, self._block.query, self._block
        rows, scores, counts = select_columns(
            matrix,
            np.searchsorted(block.columns, columns),
            unscale=unscale,
            ranks=self._graph.ranks,
            eligible=None if eligible is None else eligible[layout.node_at],
            excluded=[
                layout.place[query.exclude_nodes[query.exclude_offsets[column] : query.exclude_offsets[column + 1]]]
                for column in columns
            ],
            reachable=None if query.reachable is None else query.reachable[layout.node_at],
            bits=columns,
            k=k,
            min_score=min_score,
            threads=self._threads,
        )
        nodes = np.where(rows >= 0, layout.node_at[rows], -1).astype(np.int32)
        return Selection(nodes=nodes, scores=scores, counts=counts)

    def _enter(self, chosen: BoolArray) -> None:
        """Move columns from the frontier, where they were lists, into the matrix."""
        if not chosen.any():
            return
        block, layout, current = self._block, self._graph.layout, self._graph.pair.current
        query = block.query
        rows, columns, weights = [block.seed_row], [block.seed_column], [block.seed_weight]
        for entering in self._graph.frontier.release(chosen):
            row = layout.place[entering.nodes].astype(np.int64)
            current[row, entering.position] = entering.values * layout.scale[row] if block.scaled else entering.values
            column = block.columns[entering.position]
            seeds = slice(query.seed_offsets[column], query.seed_offsets[column + 1])
            rows.append(layout.place[query.seed_nodes[seeds]].astype(np.int64))
            columns.append(np.full(len(rows[-1]), entering.position))
            weights.append(query.seed_weights[seeds])
        row, column, weight = np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)
        by_row = np.lexsort((column, row))
        block.seed_row, block.seed_column, block.seed_weight = row[by_row], column[by_row], weight[by_row]

    def _scale(self) -> None:
        """Bring the block into the form that products want."""
        graph, block = self._graph, self._block
        if not block.scaled:
            if not graph.layout.rows.weighted:
                scale_rows(graph.pair.current, graph.layout.scale, self._threads)
            block.scaled = True


def _padded(width: int) -> int:
    """Smallest width of a kernel that holds this many columns."""
    return next(kernel for kernel in WIDTHS if kernel >= width)


def _power_of_two(threads: int) -> int:
    """Largest power of two that is at most `threads`."""
    return 1 << (threads.bit_length() - 1)
