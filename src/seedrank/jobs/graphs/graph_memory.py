"""Whether a graph is held in memory or streamed from disk: decided once, from sizes, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, ResourceError
from seedrank.io.records import BackendRecord, GraphFacts
from seedrank.jobs.operators.outcome import Requirements
from seedrank.jobs.resources import available_address_space, available_memory
from seedrank.kernels.streamed_transition import RANGE_ENTRIES

#: Backend that can stream.
STREAMING_BACKEND = "cpu"
#: Columns of the narrowest block that the decision leaves room for.
LEAST_QUERIES = 1
#: Most bytes of one slab. Larger ones gain nothing: a pass reads some hundred MB/s to some GB/s anyway.
MOST_SLAB_BYTES = 32 << 20
#: Share of the memory for one slab, where memory is so short that this is less.
SLAB_SHARE = 1 / 64
#: Bytes an entry of what is read, selected and copied together while a streamed graph is prepared.
PREPARED_BYTES = 64
#: Bytes a node of arrays that both forms hold, beside four of the precision: offsets, numberings, out-weights.
NODE_BYTES = 60
#: Bytes a node that a streamed graph holds beside: offsets of the rows that are read, one pair for each direction.
STREAMED_NODE_BYTES = 32


@dataclass(frozen=True)
class GraphSize:
    """What is known of a graph before it is read.

    Attributes
    ----------
    nodes, edges : int
    weighted : bool
        Whether the store has weights.
    store_bytes : int
        Size of its files.
    """

    nodes: int
    edges: int
    weighted: bool
    store_bytes: int

    @classmethod
    def of(cls, facts: GraphFacts) -> GraphSize:
        """Of a store."""
        return cls(facts.nodes, facts.edges, facts.weighted, sum(file.bytes for file in facts.files.values()))


@dataclass(frozen=True)
class GraphMemory:
    """How a run of personalized PageRank keeps its graph. Sizes are estimates from above.

    Attributes
    ----------
    form : "resident" or "streamed"
    reason : str
    resident_bytes : int
        Memory of the graph while it is loaded as a whole.
    streamed_bytes : int
        Memory of a streamed graph: arrays of the length of the nodes, two slabs, what is prepared at a time.
    slab_bytes : int
        Most bytes of one slab, unless a row has more.
    bytes_per_step : int
        What one pass over the graph reads, in memory or from disk.
    scratch_bytes : int
        Disk space in the work folder; 0 for a resident graph.
    """

    form: Literal["resident", "streamed"]
    reason: str
    resident_bytes: int
    streamed_bytes: int
    slab_bytes: int
    bytes_per_step: int
    scratch_bytes: int

    @property
    def streamed(self) -> bool:
        """Whether the entries are read from disk for every step."""
        return self.form == "streamed"

    def left_for_blocks(self, budget: int, *, given: bool) -> int:
        """Bytes for blocks: of a limit that was given a streamed graph takes its part, of what is free it has."""
        return max(budget - self.streamed_bytes, 0) if self.streamed and given else budget

    def noted(self, record: BackendRecord) -> BackendRecord:
        """Return the record of the backend with how the graph is kept."""
        slab = self.slab_bytes if self.streamed else None
        return record.model_copy(
            update={"graph_memory": self.form, "graph_memory_reason": self.reason, "slab_bytes": slab}
        )


def graph_memory(size: GraphSize, options: ScoreOptions, needs: Requirements) -> GraphMemory:
    """Decide how the graph is kept.

    ``auto`` holds it where graph and the narrowest block fit ``--memory-limit``, or what is free, and streams it
    otherwise; a backend that cannot stream holds it always. The form changes no byte of the result.

    Raises
    ------
    ConfigError, ResourceError
        ``--graph-memory streamed`` with a backend that cannot: one that was asked for, or the only one here.
    """
    itemsize = np.dtype(options.precision).itemsize
    entries = size.edges * (2 if options.direction == "both" else 1)
    carries = size.weighted or len(set(options.type_weight.values())) > 0
    bytes_per_step = entries * (4 + (itemsize if carries else 0))
    # Beside the layout: what filters copy, and probabilities in float64 while they are made.
    copied = options.direction == "both" or bool(options.edge_type) or bool(options.type_weight)
    loading = entries * ((9 if copied else 0) + (16 if carries else 0))
    of_nodes = size.nodes * (NODE_BYTES + 4 * itemsize)
    resident = bytes_per_step + loading + of_nodes
    limit = available_memory() if options.memory_limit is None else int(options.memory_limit)
    slab = min(MOST_SLAB_BYTES, max(int(limit * SLAB_SHARE), 1 << 16))
    held = 2 * min(slab, bytes_per_step) + PREPARED_BYTES * min(entries, RANGE_ENTRIES)
    streamed = of_nodes + STREAMED_NODE_BYTES * size.nodes + held
    form, reason = _form(options, needs, size, resident=resident, streamed=streamed, limit=limit)
    return GraphMemory(
        form=form,
        reason=reason,
        resident_bytes=resident,
        streamed_bytes=streamed,
        slab_bytes=slab,
        bytes_per_step=bytes_per_step,
        scratch_bytes=bytes_per_step if form == "streamed" else 0,
    )


def _form(
    options: ScoreOptions, needs: Requirements, size: GraphSize, *, resident: int, streamed: int, limit: int
) -> tuple[Literal["resident", "streamed"], str]:
    name = needs.decision.name
    if options.graph_memory == "streamed":
        if name != STREAMING_BACKEND:
            refuse_streaming(options.backend, name)
        return "streamed", "asked for by --graph-memory"
    if options.graph_memory == "resident":
        return "resident", "asked for by --graph-memory"
    if name != STREAMING_BACKEND:
        return "resident", f"the {name} backend cannot stream"
    wanted = resident + needs.block_bytes(LEAST_QUERIES)
    # Little graphs are never streamed: what streaming takes by itself would be more.
    if wanted > limit and resident > streamed:
        return "streamed", f"graph and one block take {wanted / 1e6:,.0f} MB, there are {limit / 1e6:,.0f} MB"
    space = available_address_space()
    if space is not None and wanted + size.store_bytes > space and resident + size.store_bytes > streamed:
        return "streamed", (
            f"graph, mapped store and one block take {(wanted + size.store_bytes) / 1e6:,.0f} MB, ulimit -v leaves "
            f"{space / 1e6:,.0f} MB"
        )
    return "resident", f"graph and one block take {wanted / 1e6:,.0f} MB, there are {limit / 1e6:,.0f} MB"


def refuse_streaming(asked: str, name: str) -> None:
    """Say that a backend cannot stream.

    Raises
    ------
    ConfigError
        It was asked for.
    ResourceError
        It is what ``auto`` found.
    """
    found = f"--graph-memory streamed is given, but the {name} backend holds its graph"
    if asked != "auto":
        raise ConfigError(found, expected=f"--backend {STREAMING_BACKEND}", fix="drop --backend, or --graph-memory")
    raise ResourceError(
        found,
        expected=f"the {STREAMING_BACKEND} backend, which needs Numba",
        fix="see `seedrank info` for what is missing, or drop --graph-memory",
    )
