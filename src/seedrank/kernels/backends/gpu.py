"""The GPU backend: own CUDA kernels over row-major blocks, through CuPy. Importing it imports CuPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import cupy
import numpy as np

from seedrank.errors import ResourceError
from seedrank.kernels._gpu.device import (
    NULL,
    blocks,
    device_dtype,
    device_errors,
    free_bytes,
    lanes_for,
    launch,
    release_unused,
    stripes,
)
from seedrank.kernels._gpu.device_graph import DeviceGraph, upload_graph
from seedrank.kernels._gpu.report import DeviceReport
from seedrank.kernels._gpu.selection import select_on_device
from seedrank.kernels._gpu.source import CHUNK_ROWS, FOLD, LANES, STRIPES
from seedrank.kernels._gpu.staging import PIECE_BYTES
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision
from seedrank.kernels.backend import QueryBlock, Selection, StepReport, StepSums
from seedrank.kernels.backends.in_turn import InTurn
from seedrank.kernels.transition import Transition

WIDEST = 64
"""Most columns of a block: a lane computes two."""

NODE_BYTES = 12
"""Bytes of a node that a block takes whatever its width: which columns may select it, and within whose reach it is."""

USABLE = 0.85
"""Share of the free memory that blocks are planned with."""


@dataclass
class _Block:
    """A started block; `columns` holds, by column of the matrix, its position in the block as started.

    Matrices are flat, row-major, n × width, at the beginning of buffers that may be longer.
    """

    query: QueryBlock
    restart: float
    columns: Int64Array
    current: cupy.ndarray
    following: cupy.ndarray
    # Column sums: partial ones level by level, see `_levels`; the sums of pieces of long rows.
    partial: cupy.ndarray
    pieces: cupy.ndarray
    dangling_mass: cupy.ndarray
    # Sorted by row, then column.
    seed_row: Int32Array
    seed_column: Int32Array
    seed_weight: Float64Array
    seeds: tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]
    reachable: cupy.ndarray | None
    sums: list[cupy.ndarray] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Number of columns that are kept."""
        return len(self.columns)


class GpuBackend(InTurn[DeviceGraph, _Block]):
    """Backend on one GPU: the graph is uploaded once, blocks stay there, and only sums and top-k come back.

    The block is an (n, width) matrix in C order and in the precision of the run. A warp computes a row, its lanes
    neighbouring columns. Stretches of 16 entries are added in that precision, and these in float64, in order; rows of
    more than 2048 entries are cut into pieces that warps add independently. A thread block finishes 256 rows and adds
    up their columns in a fixed order, and its sums are folded likewise: no bit depends on the width of the block, on
    other columns or on the order in which threads run. An addition of floating-point numbers is never atomic.

    Parameters
    ----------
    piece_bytes : int
        What of the graph is copied at once; see `seedrank.kernels._gpu.staging.Staging`.
    """

    name = "gpu"
    works_beside_the_host = True

    def __init__(self, *, piece_bytes: int = PIECE_BYTES) -> None:
        super().__init__()
        self._piece_bytes = piece_bytes
        self._eligible: tuple[BoolArray, cupy.ndarray] | None = None

    def load(self, transition: Transition, *, precision: Precision, order: Int32Array) -> None:
        """Upload a graph; see `Backend.load`.

        Raises
        ------
        ResourceError
            There is no room for it.
        """
        self._loaded, self._started, self._eligible = None, None, None
        free = free_bytes()
        try:
            with device_errors():
                self._loaded = upload_graph(transition, precision=precision, order=order, piece_bytes=self._piece_bytes)
        except MemoryError as error:
            raise ResourceError(
                f"the graph of {transition.nodes:,} nodes and {transition.entries:,} entries does not fit into the "
                f"{free / 1e6:,.0f} MB of the GPU that are free",
                expected="room for the whole graph, and for a block of queries beside it",
                fix="end other processes on the GPU, take one with more memory, or use --backend cpu",
            ) from error

    def widest_block(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """As many columns as the free memory of the device holds, at most 64; the graph tells what long rows take."""
        pieces = 0 if self._loaded is None else self._loaded.pieces
        a_query = self.bytes_per_query(nodes, precision, sums=sums) + 8 * pieces
        room = int(USABLE * free_bytes()) - NODE_BYTES * nodes
        return max(1, min(WIDEST, room // max(1, a_query)))

    def stored_columns(self, width: int) -> int:
        """As many columns as queries."""
        return width

    def bytes_per_query(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Bytes of one column on the device: vector, successor and sums, partial column sums, a bit for `select`."""
        return nodes * (2 + sums) * np.dtype(precision).itemsize + 8 * 3 * sum(_levels(nodes)) + nodes // 8

    def start(self, block: QueryBlock, *, restart: float) -> None:
        """Begin with v⁰ = s; see `Backend.start`."""
        graph = self._graph
        dtype, width = device_dtype(graph.precision), block.width
        column = np.repeat(np.arange(width, dtype=np.int32), np.diff(block.seed_offsets))
        by_row = np.lexsort((column, block.seed_nodes))
        row, column, weight = block.seed_nodes[by_row], column[by_row], block.seed_weights[by_row]
        dangling_mass = np.zeros(width)
        hangs = graph.dangling_host[row]
        np.add.at(dangling_mass, column[hangs], weight[hangs].astype(dtype).astype(np.float64))
        with device_errors():
            current, following = self._buffers(graph.nodes * width)
            self._started = _Block(
                query=block,
                restart=restart,
                columns=np.arange(width),
                current=current,
                following=following,
                partial=cupy.empty(3 * sum(_levels(graph.nodes)) * width, np.float64),
                pieces=cupy.empty(graph.pieces * width, np.float64),
                dangling_mass=cupy.asarray(dangling_mass),
                seed_row=row,
                seed_column=column,
                seed_weight=weight,
                seeds=(cupy.asarray(row), cupy.asarray(column), cupy.asarray(weight)),
                reachable=None if block.reachable is None else cupy.asarray(block.reachable),
            )
            current[: graph.nodes * width].fill(0)
            threads = (blocks(len(row), 256),), (256,)
            launch(f"place_seeds_{graph.precision}", *threads, *self._started.seeds, len(row), width, current)
            self._mark_seeds()

    def _buffers(self, elements: int) -> tuple[cupy.ndarray, cupy.ndarray]:
        """Room for a block and its successor: that of the block before, where it suffices."""
        dtype = device_dtype(self._graph.precision)
        if self._started is not None:
            self._mark_seeds(forget=True)
            old = self._started
            if min(old.current.size, old.following.size) >= elements and not old.sums:
                return old.current, old.following
            del old
            self._started = None
            release_unused()
        return cupy.empty(elements, dtype), cupy.empty(elements, dtype)

    def _mark_seeds(self, *, forget: bool = False) -> None:
        graph, block = self._graph, self._block
        count = len(block.seed_row)
        launch("mark_seeds", (blocks(count, 256),), (256,), block.seeds[0], count, int(forget), graph.first_seed)

    def step(self, *, measure: bool = True) -> StepReport:
        """One step of the recurrence for all kept columns; see `Backend.step`."""
        graph, block = self._graph, self._block
        width = block.width
        a_lane = 1 if width <= LANES else 2
        kernel, tiles = f"{graph.precision}_{a_lane}", blocks(width, LANES * a_lane)
        threads = lanes_for(width), STRIPES
        values = NULL if graph.values is None else graph.values
        levels = _levels(graph.nodes)
        with device_errors():
            launch(
                f"sum_pieces_{kernel}", (blocks(graph.pieces, STRIPES), tiles), threads, graph.piece_first,
                graph.piece_last, graph.pieces, graph.sources, values, graph.factors, block.current, width,
                block.pieces,
            )  # fmt: skip
            launch(
                f"step_{kernel}", (levels[0], tiles), threads, graph.offsets, graph.sources, values,
                graph.factors, graph.dangling, graph.nodes, graph.long_rows, graph.long_pieces,
                graph.long_rows.size, block.pieces, graph.first_seed, *block.seeds, len(block.seed_row),
                block.current, block.following, block.dangling_mass, np.float64(block.restart), graph.rule, width,
                block.partial,
            )  # fmt: skip
            at = 0
            for rows, folded in pairwise(levels):
                following = at + 3 * rows * width
                launch(
                    "fold_sums", (folded, blocks(width, LANES), 3), threads, block.partial[at:], rows, width,
                    block.partial[following:],
                )  # fmt: skip
                at = following
            block.dangling_mass = block.partial[at + width : at + 2 * width]
            block.current, block.following = block.following, block.current
            if measure:
                return DeviceReport(block.partial[at : at + 3 * width])
        return StepSums(*np.full((3, width), np.nan))

    def keep(self, columns: Int64Array) -> None:
        """Compact the block to these columns; see `Backend.keep`."""
        block = self._block
        positions = np.searchsorted(block.columns, columns)
        new_position = np.full(block.width, -1, dtype=np.int32)
        new_position[positions] = np.arange(len(positions), dtype=np.int32)
        kept = new_position[block.seed_column] >= 0
        with device_errors():
            chosen = cupy.asarray(positions.astype(np.int32))
            block.following = self._narrowed(block.current, chosen, block.following)
            block.current, block.following = block.following, block.current
            for place, matrix in enumerate(block.sums):
                block.sums[place] = self._narrowed(matrix, chosen, block.following)
                block.following = matrix
            self._mark_seeds(forget=True)
            block.dangling_mass = cupy.asarray(block.dangling_mass.get()[positions])
            block.columns = block.columns[positions]
            block.seed_row = block.seed_row[kept]
            block.seed_column = new_position[block.seed_column[kept]]
            block.seed_weight = block.seed_weight[kept]
            block.seeds = (
                cupy.asarray(block.seed_row), cupy.asarray(block.seed_column), cupy.asarray(block.seed_weight),
            )  # fmt: skip
            self._mark_seeds()

    def _narrowed(self, matrix: cupy.ndarray, chosen: cupy.ndarray, into: cupy.ndarray) -> cupy.ndarray:
        """Copy the chosen columns of a matrix of the block's width into a buffer, which is returned."""
        graph, width = self._graph, self._block.width
        launch(
            f"keep_columns_{graph.precision}",
            (stripes(graph.nodes * chosen.size, 256),),
            (256,),
            *(matrix, np.int64(graph.nodes), width, chosen, chosen.size, into),
        )
        return into

    def select(self, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float) -> Selection:
        """Select the top k of these columns; see `Backend.select`."""
        return self._select(self._block.current, columns, k=k, eligible=eligible, min_score=min_score)

    def accumulate(self, weights: Float64Array, factors: Float64Array) -> None:
        """Add the vectors to the sums; see `SummingBackend.accumulate`."""
        graph, block = self._graph, self._block
        elements = graph.nodes * block.width
        with device_errors():
            while len(block.sums) < len(weights):
                block.sums.append(cupy.zeros(elements, device_dtype(graph.precision)))
            for matrix, weight, factor in zip(block.sums, weights, factors, strict=True):
                launch(
                    f"accumulate_{graph.precision}", (stripes(elements, 256),), (256,), block.current,
                    np.int64(graph.nodes), block.width, cupy.asarray(np.ascontiguousarray(weight)),
                    cupy.asarray(np.ascontiguousarray(factor)), matrix,
                )  # fmt: skip

    def select_sum(
        self, position: int, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        """Select the top k of a sum; see `SummingBackend.select_sum`."""
        return self._select(self._block.sums[position], columns, k=k, eligible=eligible, min_score=min_score)

    def _select(
        self, matrix: cupy.ndarray, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        graph, block, query = self._graph, self._block, self._block.query
        if eligible is None:
            self._eligible = None
        elif self._eligible is None or self._eligible[0] is not eligible:
            self._eligible = eligible, cupy.asarray(eligible.astype(np.uint8))
        excluded = [
            query.exclude_nodes[query.exclude_offsets[column] : query.exclude_offsets[column + 1]] for column in columns
        ]
        counts = [len(nodes) for nodes in excluded]
        with device_errors():
            return select_on_device(
                graph,
                matrix,
                width=block.width,
                positions=np.searchsorted(block.columns, columns),
                bits=columns,
                excluded=np.concatenate(excluded).astype(np.int32),
                excluded_from=np.repeat(np.arange(len(columns), dtype=np.int32), counts),
                eligible=None if self._eligible is None else self._eligible[1],
                reachable=block.reachable,
                k=k,
                min_score=min_score,
            )


def _levels(nodes: int) -> list[int]:
    """Rows of partial column sums, level by level down to one; the sums of a step are read while the next is made."""
    levels = [blocks(nodes, CHUNK_ROWS)]
    while len(levels) < 2 or levels[-1] > 1:
        levels.append(blocks(levels[-1], FOLD))
    return levels
