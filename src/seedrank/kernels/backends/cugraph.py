"""The cuGraph backend: steps by RAPIDS' own personalized PageRank. Importing it imports CuPy and pylibcugraph."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np
import pylibcugraph

from seedrank.errors import ResourceError
from seedrank.kernels._gpu.cugraph_graph import CugraphGraph, library_errors, upload_cugraph
from seedrank.kernels._gpu.device import device_dtype, free_bytes, release_unused
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock, Selection, StepReport, StepSums
from seedrank.kernels.backends.in_turn import InTurn
from seedrank.kernels.backends.select_columns import select_columns
from seedrank.kernels.transition import Transition

WIDEST = 8
"""Most queries of a block: they are scored one after the other, so width brings nothing but fewer interruptions."""

USABLE = 0.5
"""Share of the free memory that blocks are planned with: cuGraph works beside them."""

NEVER = float(np.finfo(np.float64).tiny)
"""Tolerance that ends cuGraph's loop early only where a step changes nothing. 0 would be none at all in the C++ code,
and 1e-5 according to the documentation of the function."""


@dataclass
class _Block:
    """A started block: by kept column its seeds on the device, and its vector (n) in the precision of the run."""

    query: QueryBlock
    restart: float
    columns: Int64Array
    seed_nodes: list[cupy.ndarray]
    seed_weights: list[cupy.ndarray]
    vectors: list[cupy.ndarray]


class CugraphBackend(InTurn[CugraphGraph, _Block]):
    """Backend on cuGraph's power iteration, on one GPU: an independent implementation to compare with.

    A call of ``pylibcugraph.personalized_pagerank`` makes a fixed number of steps of one query, from the vector that is
    handed over: never from cuGraph's own start of 1/n. Whether the query has converged is for the driver to say, from
    the difference that a step makes, measured here: cuGraph's own flag is false when the last allowed step converged.

    cuGraph adds in the type of the weights, in an order of its own. Weights are float64 therefore, whatever the
    precision; vectors are rounded to it after each call. `step_rounding` states what remains: a bound that holds in
    whatever order a row is added. Its sums need not be the same bits in every run.
    """

    name = "cugraph"
    steps_a_call = 4

    def __init__(self) -> None:
        super().__init__()
        self._handle = pylibcugraph.ResourceHandle()

    def load(self, transition: Transition, *, precision: Precision, order: Int32Array) -> None:
        """Upload a graph; see `Backend.load`. Dangling rules: ``seeds`` and ``self``.

        Raises
        ------
        ResourceError
            There is no room for it.
        """
        if transition.dangling not in ("seeds", "self"):
            raise RuntimeError(f"cuGraph has no dangling rule {transition.dangling!r}")
        self._loaded, self._started = None, None
        free = free_bytes()
        try:
            with library_errors():
                self._loaded = upload_cugraph(self._handle, transition, precision=precision, order=order)
                release_unused()
        except MemoryError as error:
            raise ResourceError(
                f"the graph of {transition.nodes:,} nodes and {transition.entries:,} entries does not fit into the "
                f"{free / 1e6:,.0f} MB of the GPU that are free",
                expected="room for the edge list and for cuGraph's form of it beside each other",
                fix="end other processes on the GPU, take one with more memory, or use --backend gpu or cpu",
            ) from error

    def widest_block(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """As many columns as half of the free memory of the device holds, at most 8."""
        return max(1, min(WIDEST, int(USABLE * free_bytes()) // max(1, self.bytes_per_query(nodes, precision))))

    def stored_columns(self, width: int) -> int:
        """As many columns as queries."""
        return width

    def bytes_per_query(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Bytes of one column on the device: the vector, and its share of what a call takes (some 60 a node)."""
        return nodes * (np.dtype(precision).itemsize + 8)

    def step_rounding(self, block: QueryBlock) -> Float64Array:
        """See `ForeignBackend.step_rounding`.

        A sum of m numbers >= 0 is off by less than m · 2^-53 of itself, in whatever order it is added: m is at most the
        length of the longest row, the number of dangling nodes, the number of seeds. A few operations come on top.
        """
        graph = self._graph
        terms: Float64Array = np.diff(block.seed_offsets).astype(np.float64)
        terms += graph.longest_row + len(graph.transition.dangling_nodes) + 16
        return terms * 2.0**-53

    def start(self, block: QueryBlock, *, restart: float) -> None:
        """Begin with v⁰ = s; see `Backend.start`."""
        graph = self._graph
        self._started = None
        nodes, weights, vectors = [], [], []
        with library_errors():
            for first, last in zip(block.seed_offsets[:-1], block.seed_offsets[1:], strict=True):
                nodes.append(cupy.asarray(block.seed_nodes[first:last].astype(graph.vertices.dtype)))
                weights.append(cupy.asarray(np.ascontiguousarray(block.seed_weights[first:last])))
                vectors.append(cupy.zeros(graph.transition.nodes, device_dtype(graph.precision)))
                vectors[-1][nodes[-1]] = weights[-1].astype(vectors[-1].dtype)
        self._started = _Block(
            query=block,
            restart=restart,
            columns=np.arange(block.width),
            seed_nodes=nodes,
            seed_weights=weights,
            vectors=vectors,
        )

    def _iterated(self, place: int, steps: int) -> cupy.ndarray:
        """Vector of a kept column after so many steps, by internal node, in the precision of the run."""
        graph, block = self._graph, self._block
        assert graph.graph is not None  # a query has seeds, so there are nodes
        vertices, values, _ = pylibcugraph.personalized_pagerank(
            self._handle,
            graph.graph,
            graph.vertices,
            graph.out_weight,
            graph.vertices,
            block.vectors[place].astype(np.float64),
            block.seed_nodes[place],
            block.seed_weights[place],
            1.0 - block.restart,
            NEVER,
            steps,
            False,
            fail_on_nonconvergence=False,
        )
        result = cupy.zeros(graph.transition.nodes, device_dtype(graph.precision))
        result[vertices] = values.astype(result.dtype)
        return result

    def advance(self, steps: int) -> None:
        """Make so many steps a column; see `ForeignBackend.advance`."""
        block = self._block
        with library_errors():
            for place in range(len(block.columns)):
                block.vectors[place] = self._iterated(place, steps)

    def step(self, *, measure: bool = True) -> StepReport:  # what is measured costs little beside a call
        """One step of the recurrence for all kept columns; see `Backend.step`."""
        graph, block = self._graph, self._block
        sums: Float64Array = np.zeros((3, len(block.columns)))
        with library_errors():
            for place, before in enumerate(block.vectors):
                after = self._iterated(place, 1)
                wide = after.astype(np.float64)
                difference = abs(wide - before.astype(np.float64)).sum()
                sums[:, place] = float(wide.sum()), float(wide[graph.dangling].sum()), float(difference)
                block.vectors[place] = after
        return StepSums(mass=sums[0], dangling_mass=sums[1], difference=sums[2])

    def keep(self, columns: Int64Array) -> None:
        """Give up the other columns; see `Backend.keep`."""
        block = self._block
        places = np.searchsorted(block.columns, columns).tolist()
        block.columns = block.columns[places]
        block.seed_nodes = [block.seed_nodes[place] for place in places]
        block.seed_weights = [block.seed_weights[place] for place in places]
        block.vectors = [block.vectors[place] for place in places]

    def select(self, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float) -> Selection:
        """Select the top k of these columns on the host; see `Backend.select`."""
        graph, block = self._graph, self._block

        def vector(column: int) -> ScoreArray:
            with library_errors():
                scores: ScoreArray = block.vectors[int(np.searchsorted(block.columns, column))].get()
            return scores

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
