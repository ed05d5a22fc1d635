"""The protocol between the drivers (one per algorithm) and the machines that do the arithmetic.

How to add a backend, and who decides which one runs: `seedrank.kernels.backends.resolver`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from seedrank.kernels.arrays import (
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    Precision,
    ScoreArray,
    UInt64Array,
)
from seedrank.kernels.backends.slab_store import SlabStore
from seedrank.kernels.streamed_transition import StreamedTransition
from seedrank.kernels.transition import Transition


@dataclass(frozen=True)
class QueryBlock:
    """The queries that are scored together: B personalization vectors and B exclusion lists, arrays only.

    Attributes
    ----------
    seed_offsets : int64 (B + 1)
    seed_nodes : int32
        Internal nodes, each at most once a query.
    seed_weights : float64
        > 0, sum 1 a query. An empty range is a query without seeds.
    exclude_offsets : int64 (B + 1)
    exclude_nodes : int32
        Internal nodes that may not be selected for the query (repeats are harmless).
    reachable : uint64 (n) or None
        Bit b of a node: column b may select it (at most 64 columns then); None: every column may.
    """

    seed_offsets: Int64Array
    seed_nodes: Int32Array
    seed_weights: Float64Array
    exclude_offsets: Int64Array
    exclude_nodes: Int32Array
    reachable: UInt64Array | None = None

    @property
    def width(self) -> int:
        """Number of queries B."""
        return len(self.seed_offsets) - 1


class StepReport(Protocol):
    """Column sums after a step, for the columns that are kept, in their order.

    Of a step that was not measured all may be NaN. Reading one waits for the step, where a device makes it.
    """

    @property
    def mass(self) -> Float64Array:
        """Float64 (b): sum of the new vector."""
        ...

    @property
    def dangling_mass(self) -> Float64Array:
        """Float64 (b): sum of the new vector over dangling nodes."""
        ...

    @property
    def difference(self) -> Float64Array:
        """Float64 (b): L1 distance between the new vector and the one before."""
        ...


@dataclass(frozen=True)
class StepSums:
    """A `StepReport` of a step that has been made."""

    mass: Float64Array
    dangling_mass: Float64Array
    difference: Float64Array


@dataclass(frozen=True)
class Selection:
    """The best nodes of some columns.

    Attributes
    ----------
    nodes : int32 (c, k)
        Internal nodes by falling score, ties by tie rank; -1 after the last.
    scores : float32 or float64 (c, k)
        In the precision of the run; 0 after the last.
    counts : int32 (c)
        Number of nodes found.
    """

    nodes: Int32Array
    scores: ScoreArray
    counts: Int32Array


class Backend(Protocol):
    """What a machine has to offer: load a graph once, then start, step, keep and select block after block.

    The vectors of a block are columns; a column's numbers may depend on its own seeds only, never on the
    width of the block, on its neighbours or on the number of threads, bit for bit. ``float32`` is the
    precision in which vectors are stored between steps; the error of a sum must not grow with the length of a
    row, so long rows and column sums accumulate in float64 in either precision.
    """

    @property
    def name(self) -> str:
        """Name under which the run records the backend."""
        ...

    def load(self, transition: Transition, *, precision: Precision, order: Int32Array) -> None:
        """Take over a graph; `order` (n) maps internal nodes to tie ranks."""
        ...

    def widest_block(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Most columns that the backend takes at once, and that pay on this machine.

        `sums`: how many sums `SummingBackend.accumulate` is to keep.
        """
        ...

    def stored_columns(self, width: int) -> int:
        """Columns that a block of so many queries takes in memory: as many, or padded to what is computed at once."""
        ...

    def bytes_per_query(self, nodes: int, precision: Precision, *, sums: int = 0) -> int:
        """Memory that one more column of a block takes at most, in bytes; needs no graph, so plans can ask.

        `sums`: how many sums `SummingBackend.accumulate` is to keep.
        """
        ...

    def start(self, block: QueryBlock, *, restart: float) -> None:
        """Begin a block with v⁰ = s for every column; `restart` = λ, 0 <= λ <= 1."""
        ...

    def step(self, *, measure: bool = True) -> StepReport:
        """Replace v by α Pᵀ v + (λ + α·dangling mass) s, or as the dangling rule says, in every kept column.

        Without `measure` the report holds nothing, and rows that pass no mass on may be left out: `select` needs a
        measured step before it, a difference two (the start counts as one).
        """
        ...

    def keep(self, columns: Int64Array) -> None:
        """Give up every column but these (ascending positions in the block as it was started)."""
        ...

    def select(self, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float) -> Selection:
        """Select the top k of these kept columns: `seedrank.kernels.topk` states the rules.

        `eligible` (n) masks internal nodes; exclusions and what is reachable come from the block.
        """
        ...


@runtime_checkable
class AsynchronousBackend(Backend, Protocol):
    """A backend whose device makes steps while the host goes on; what reads a report or selects waits for it.

    Attributes
    ----------
    works_beside_the_host : bool
        Whether it does.
    """

    works_beside_the_host: bool


@runtime_checkable
class RelaxingBackend(Backend, Protocol):
    """A backend that can also improve vectors in place, faster than steps do.

    What a relaxed vector is worth is for the next step to say: its difference bounds the error as always. A step after
    `relax` starts from the relaxed vector scaled to sum 1.
    """

    def relax(self, sweeps: int, factors: Float64Array) -> None:
        """Make Gauss-Seidel sweeps for (I - α Pᵀ) y = λ s, over-relaxed by a factor ω for each kept column.

        A column of factor 0 stays as it is, to the last bit. Not for the ``uniform`` dangling rule.
        """
        ...

    def reset(self, columns: Int64Array) -> None:
        """Put these kept columns back to v⁰ = s."""
        ...


@runtime_checkable
class ForeignBackend(Backend, Protocol):
    """A backend whose steps somebody else's library makes: a call costs more than a step, and it adds as it likes."""

    @property
    def steps_a_call(self) -> int:
        """Steps that are worth a call: every so many the driver measures one."""
        ...

    def advance(self, steps: int) -> None:
        """Make so many steps, unmeasured: the vectors are those of as many calls of `step`, but for rounding."""
        ...

    def step_rounding(self, block: QueryBlock) -> Float64Array:
        """By query of a block, a bound on the L1 distance between a step as the library makes it and an exact one."""
        ...


@runtime_checkable
class SummingBackend(Backend, Protocol):
    """A backend that can also add up the vectors of a block as it goes, under several weights."""

    def accumulate(self, weights: Float64Array, factors: Float64Array) -> None:
        """``sum j ← (sum j + weights[j] · v) · factors[j]`` for every kept column: both are (J, b).

        The sums are of the precision of the run. The first call after `start` begins with sums of 0; `keep` keeps them.
        """
        ...

    def select_sum(
        self, position: int, columns: Int64Array, *, k: int, eligible: BoolArray | None, min_score: float
    ) -> Selection:
        """Select the top k of these columns of one sum, as `select` does of the vectors."""
        ...


@runtime_checkable
class StreamingBackend(Backend, Protocol):
    """A backend that can also work on a graph that memory does not hold: it reads the entries again for every step."""

    def load_streamed(
        self,
        transition: StreamedTransition,
        store: SlabStore,
        *,
        precision: Precision,
        order: Int32Array,
        slab_entries: int,
    ) -> None:
        """Write the graph into an empty store as the backend wants it, then work as after `load`, to the last bit.

        `slab_entries`: most entries that a step holds in memory twice, unless a single row has more.
        """
        ...
