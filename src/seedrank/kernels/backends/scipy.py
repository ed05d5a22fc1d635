"""The reference backend: sparse matrix times dense block with SciPy, on one core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock, Selection, StepReport, StepSums
from seedrank.kernels.backends.column_sums import column_sums
from seedrank.kernels.backends.in_turn import InTurn
from seedrank.kernels.backends.row_slabs import MAX_SLAB_ENTRIES, ROW_CHUNK, RowSlabs
from seedrank.kernels.backends.select_columns import select_columns
from seedrank.kernels.transition import Transition

TILE_ROWS = 2**14
"""Rows that are finished together. Fixed: the order in which column sums are added depends on it."""


@dataclass
class _Graph:
    """What `load` prepares."""

    transition: Transition
    products: tuple[RowSlabs, ...]
    tiles: list[tuple[int, int]]
    tile_dangling: list[Int32Array]
    precision: Precision
    order: Int32Array

    @property
    def dtype(self) -> np.dtype[np.float32] | np.dtype[np.float64]:
        """Element type of the vectors."""
        return np.dtype(np.float32) if self.precision == "float32" else np.dtype(np.float64)

    @property
    def structure_only(self) -> bool:
        """Whether the block is divided by the out-weights before the product."""
        return self.transition.products[0].probabilities is None


@dataclass
class _Block:
    """A started block; `columns` holds, by column of the matrix, its position in the block as started."""

    query: QueryBlock
    restart: float
    columns: Int64Array
    current: ScoreArray
    # Buffers for the next vector and for the matrix to multiply with; a step swaps and refills them.
    following: ScoreArray
    operand: Float64Array | None
    dangling_mass: Float64Array
    # Seeds of the kept columns sorted by node, so that a tile finds its own by bisection.
    seed_node: Int32Array
    seed_column: Int64Array
    seed_weight: Float64Array
    # (J, n, b) once something was accumulated.
    sums: ScoreArray | None = None


class ScipyBackend(InTurn[_Graph, _Block]):
    """Backend on ``scipy.sparse``: readable, always available, the one that others are compared with.

    The block is an (n, b) matrix in C order and in the precision of the run. A step multiplies tile after
    tile of rows with the whole block in float64, adds the restart, rounds once to the stored precision and
    sums the columns of what was stored.

    Parameters
    ----------
    max_slab_entries : int
        Most entries in one sparse product, `row_chunk` squared … 2**31 - 1. No effect on results.
    row_chunk : int
        Longest stretch of a row that is added in order. Part of the definition of the result's last bits.
    """

    name = "scipy"

    def __init__(self, *, max_slab_entries: int = MAX_SLAB_ENTRIES, row_chunk: int = ROW_CHUNK) -> None:
        super().__init__()
        self._max_slab_entries = max_slab_entries
        self._row_chunk = row_chunk

    def load(self, transition: Transition, *, precision: Precision, order: Int32Array) -> None:
        """Take over a graph; see `Backend.load`."""
        tiles = [(start, min(start + TILE_ROWS, transition.nodes)) for start in range(0, transition.nodes, TILE_ROWS)]
        bounds = np.searchsorted(transition.dangling_nodes, [start for start, _ in tiles] + [transition.nodes])
        self._started = None
        self._loaded = _Graph(
            transition=transition,
            products=tuple(
                RowSlabs(rows, tile_rows=TILE_ROWS, row_chunk=self._row_chunk, max_entries=self._max_slab_entries)
                for rows in transition.products
            ),
            tiles=tiles,
            tile_dangling=[
                transition.dangling_nodes[bounds[tile] : bounds[tile + 1]] - np.int32(start)
                for tile, (start, _) in enumerate(tiles)
            ],
            precision=precision,
            order=order,
        )

    def widest_block(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """A product reads the graph once for all columns; beyond 64 that no longer shows."""
        return 64

    def stored_columns(self, width: int) -> int:
        """As many columns as queries."""
        return width

    def bytes_per_query(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Bytes of one column: vector, successor, sums and float64 operand; three tiles, the partial sums of a slab."""
        itemsize = np.dtype(precision).itemsize
        tile_rows = min(nodes, TILE_ROWS)
        partial_sums = min(nodes * tile_rows, self._max_slab_entries) // self._row_chunk
        return nodes * ((2 + sums) * itemsize + 8) + 8 * (3 * tile_rows + partial_sums)

    def start(self, block: QueryBlock, *, restart: float) -> None:
        """Begin with v⁰ = s; see `Backend.start`."""
        graph = self._graph
        self._started = None  # the block before goes first: memory may hold one, but not two
        column = np.repeat(np.arange(block.width), np.diff(block.seed_offsets))
        by_node = np.argsort(block.seed_nodes, kind="stable")
        current = np.zeros((graph.transition.nodes, block.width), dtype=graph.dtype)
        current[block.seed_nodes, column] = block.seed_weights
        self._started = _Block(
            query=block,
            restart=restart,
            columns=np.arange(block.width),
            current=current,
            following=np.empty_like(current),
            operand=self._operand_buffer(current),
            dangling_mass=self._dangling_mass(current),
            seed_node=block.seed_nodes[by_node],
            seed_column=column[by_node],
            seed_weight=block.seed_weights[by_node],
        )

    def _dangling_mass(self, current: ScoreArray) -> Float64Array:
        """Mass on dangling nodes, added tile by tile exactly as a step does."""
        graph = self._graph
        sums = np.zeros((len(graph.tiles), current.shape[1]), dtype=np.float64)
        for tile, (start, stop) in enumerate(graph.tiles):
            sums[tile] = column_sums(current[start:stop][graph.tile_dangling[tile]].astype(np.float64))
        return column_sums(sums)

    def _operand_buffer(self, current: ScoreArray) -> Float64Array | None:
        """Room for the float64 operand; None where the vectors are multiplied as they are."""
        if self._graph.structure_only or current.dtype != np.float64:
            return np.empty(current.shape, dtype=np.float64)
        return None

    def _operand(self) -> Float64Array:
        """Fill the float64 matrix that the products are multiplied with."""
        graph, block = self._graph, self._block
        if block.operand is None:
            return block.current.astype(np.float64, copy=False)
        if graph.structure_only:
            factors = graph.transition.inverse_out_weight[:, np.newaxis]
            return np.multiply(block.current, factors, out=block.operand)
        block.operand[...] = block.current
        return block.operand

    def step(self, *, measure: bool = True) -> StepReport:  # the reference always measures
        """One step of the recurrence for all kept columns; see `Backend.step`."""
        graph, block = self._graph, self._block
        damping = 1.0 - block.restart
        rule = graph.transition.dangling
        width = len(block.columns)
        restart_share = np.full(width, block.restart)
        if rule == "seeds":
            restart_share += damping * block.dangling_mass
        operand = self._operand()
        following = block.following
        sums = np.zeros((3, len(graph.tiles), width), dtype=np.float64)
        for tile, (start, stop) in enumerate(graph.tiles):
            dangling = graph.tile_dangling[tile]
            previous = block.current[start:stop]
            rows = graph.products[0].multiply(tile, operand)
            for product in graph.products[1:]:
                rows += product.multiply(tile, operand)
            if rule == "self":
                rows[dangling] += previous[dangling]
            rows *= damping
            if rule == "uniform":
                rows += damping * block.dangling_mass / graph.transition.nodes
            first, last = np.searchsorted(block.seed_node, [start, stop])
            column = block.seed_column[first:last]
            rows[block.seed_node[first:last] - start, column] += restart_share[column] * block.seed_weight[first:last]
            following[start:stop] = rows
            if graph.dtype == np.float32:
                rows = following[start:stop].astype(np.float64)
            sums[0, tile] = column_sums(rows)
            sums[1, tile] = column_sums(rows[dangling])
            rows -= previous
            sums[2, tile] = column_sums(np.abs(rows, out=rows))
        block.current, block.following = following, block.current
        mass, block.dangling_mass, difference = (column_sums(kind) for kind in sums)
        return StepSums(mass=mass, dangling_mass=block.dangling_mass, difference=difference)

    def keep(self, columns: Int64Array) -> None:
        """Compact the block to these columns; see `Backend.keep`."""
        block = self._block
        positions = np.searchsorted(block.columns, columns)
        new_position = np.full(len(block.columns), -1, dtype=np.int64)
        new_position[positions] = np.arange(len(positions))
        kept = new_position[block.seed_column] >= 0
        block.columns = block.columns[positions]
        block.operand = None  # given back before the copy is made
        block.current = np.ascontiguousarray(block.current[:, positions])
        block.following = np.empty_like(block.current)
        block.operand = self._operand_buffer(block.current)
        block.sums = None if block.sums is None else np.ascontiguousarray(block.sums[:, :, positions])
        block.dangling_mass = block.dangling_mass[positions]
        block.seed_node = block.seed_node[kept]
        block.seed_column = new_position[block.seed_column[kept]]
        block.seed_weight = block.seed_weight[kept]

    def select(self, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float) -> Selection:
        """Select the top k of these columns; see `Backend.select`."""
        return self._select(self._block.current, columns, k=k, eligible=eligible, min_score=min_score)

    def accumulate(self, weights: Float64Array, factors: Float64Array) -> None:
        """Add the vectors to the sums; see `SummingBackend.accumulate`."""
        block, dtype = self._block, self._graph.dtype
        if block.sums is None:
            block.sums = np.zeros((len(weights), *block.current.shape), dtype=dtype)
        for position in range(len(weights)):
            block.sums[position] += weights[position].astype(dtype) * block.current
            block.sums[position] *= factors[position].astype(dtype)

    def select_sum(
        self, position: int, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        """Select the top k of a sum; see `SummingBackend.select_sum`."""
        assert self._block.sums is not None
        return self._select(self._block.sums[position], columns, k=k, eligible=eligible, min_score=min_score)

    def _select(
        self, matrix: ScoreArray, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        graph, block = self._graph, self._block

        def vector(column: int) -> ScoreArray:
            return np.ascontiguousarray(matrix[:, int(np.searchsorted(block.columns, column))])

        return select_columns(
            vector,
            columns,
            block.query,
            precision=graph.precision,
            order=graph.order,
            k=k,
            eligible=eligible,
            min_score=min_score,
        )
