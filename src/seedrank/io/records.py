"""The documents that seedrank writes as JSON: ``graph.json`` of a graph store and ``run.json`` of a run.

Each is one frozen model; what a file holds beyond it is refused when it is read back. JSON Schemas come from
``GraphFacts.model_json_schema()`` and ``RunManifest.model_json_schema()``.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from seedrank.redaction import redacted, redacted_values

RUN_SCHEMA_VERSION = 1


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class InputFileRecord(_Record):
    """One file (or in-memory table) that was read."""

    uri: str
    bytes: int = Field(description="Size in bytes; of the buffers, for an in-memory table.")
    rows: int


class InputRecord(_Record):
    """One input of a job, and what identifies its content."""

    files: list[InputFileRecord]
    fingerprint: str = Field(description="Hash of the content that was used; independent of row and file order.")


class StoredFile(_Record):
    """One file that was written, and what identifies its content."""

    bytes: int
    xxh3_128: str


class GraphFacts(_Record):
    """``graph.json``: what a graph store holds. Counts are of nodes or of entries (one per src, dst, type)."""

    format_version: int
    seedrank_version: str
    fingerprint: str = Field(description="Hash of the whole content; equal edge sets give equal fingerprints.")
    nodes: int
    edges: int = Field(description="Distinct (src, dst, type) after reduction, zero weights left out.")
    rows: int = Field(description="Rows read from the edge list.")
    merged_duplicates: int
    zero_weight_rows: int
    dropped_rows: int = Field(description="Bad rows dropped under on_bad_rows=drop or null_weight=drop.")
    self_loops: int
    dangling: int = Field(description="Nodes without out-edges.")
    isolated: int = Field(description="Nodes without any edge.")
    nodes_without_attributes: int = Field(description="Endpoints that the node table does not list.")
    id_type: str
    weighted: bool
    edge_types: list[str | None]
    node_types: dict[str, int] | None = Field(description="Nodes per type; null when there is no node table type.")
    options: dict[str, Any] = Field(description="The build options that shaped the graph.")
    inputs: dict[str, list[InputFileRecord]]
    files: dict[str, StoredFile]


class OptionRecord(_Record):
    """An option of a run: its value, and where it came from."""

    value: Any
    origin: Literal["default", "preset", "file", "env", "flag", "argument"]


class GraphRecord(_Record):
    """The graph of a run."""

    path: str
    fingerprint: str
    built_in_this_run: bool
    nodes: int
    edges: int
    dangling: int
    isolated: int
    self_loops: int
    merged_duplicates: int
    weighted: bool
    id_type: str
    store_bytes: int


class BackendRecord(_Record):
    """Which backend ran, why, and how much it took at a time."""

    name: str
    requested: str
    reason: str
    precision: str
    solver: str = Field(
        description="Of ppr: steps, or sweeps with the over-relaxation factor between verifying steps; of fuse the "
        "rule; else the method."
    )
    block_size: int = Field(description="Queries scored together, as planned.")
    final_block_size: int | None = Field(
        None, description="Queries scored together in the end: less than planned where memory ran out on the way."
    )
    bytes_per_query: int = Field(description="Memory that one query of a block takes.")
    block_bytes: int = Field(description="Memory that a block takes, with the columns that the backend pads it by.")
    memory_budget_bytes: int
    graph_memory: Literal["resident", "streamed"] | None = Field(
        None, description="Of ppr: whether the graph was in memory, or read from the work folder for every step."
    )
    graph_memory_reason: str | None = Field(None, description="Why.")
    slab_bytes: int | None = Field(
        None, description="Of a streamed graph: most bytes of a slab, of which two are in memory."
    )


class QueryCounts(_Record):
    """The queries of a run, in total and by how they ended."""

    total: int
    by_status: dict[str, int]
    seeds_given: int = Field(description="In finished parts, as the counts by status.")
    seeds_missing: int
    taken_over: int = Field(0, description="Queries whose rows are those of an earlier run (--since).")


class VectorCounts(_Record):
    """The vectors of a run, and those that were left aside."""

    width: int | None = Field(description="Numbers of a vector; null without a vector.")
    node_vectors: int
    null_node_vectors: int = Field(description="Rows whose vector is null.")
    zero_node_vectors: int = Field(description="Vectors of length 0: no cosine.")
    unknown_nodes: int = Field(description="Vectors of nodes that the graph does not have; they are not searched.")
    nodes_without_vector: int = Field(description="Nodes of the graph without a vector.")
    query_vectors: int
    zero_query_vectors: int = Field(description="Vectors of length 0: no cosine.")
    queries_without_vector: int


class PartRecord(_Record):
    """One finished part."""

    part: int
    first_query: int
    queries: int
    candidates: int
    seeds_given: int = Field(description="Hits of the part's queries.")
    seeds_missing: int = Field(description="Of these, those that are null or not in the graph.")
    by_status: dict[str, int] = Field(description="Rows of queries by how they ended.")
    failed_queries: int
    unfinished_queries: int = Field(
        description="Rows of queries that failed or that the deadline of the job cut; a run that goes on computes the "
        "part again."
    )
    candidates_file: StoredFile
    queries_file: StoredFile
    iterations: int = Field(description="Sum over the part's queries.")
    largest_error_bound: float | None
    errors: list[str] = Field([], description="Why queries failed, one line per failed block.")
    taken_over: int = Field(0, description="Queries whose rows are those of an earlier run (--since).")
    seconds: float


class RangeRecord(_Record):
    """The range of parts that a manifest is about: ``first`` … ``last - 1`` of so many."""

    first: int
    last: int
    of: int = Field(description="Parts of the whole run.")


class RunManifest(_Record):
    """``run.json``: state, configuration with origins, inputs, graph, backend, parts, timings, peaks."""

    schema_version: int = RUN_SCHEMA_VERSION
    seedrank_version: str
    state: Literal["running", "finished", "incomplete", "failed", "interrupted"]
    error: str | None = None
    run_id: str | None = Field(
        None, description="Id of the attempt that wrote this, as in its log; results hold nothing of it."
    )
    started_at: str
    resumed_at: list[str] = Field([], description="When the run went on, after it had ended before its last part.")
    finished_at: str | None = None
    run_key: str | None = Field(
        None, description="Hash of all that makes the bytes of the parts; equal keys, equal parts."
    )
    planner_rules: str | None = Field(
        None, description="Hash of the rules of the planner, where it chose the methods (--method auto)."
    )
    options: dict[str, OptionRecord]
    inputs: dict[str, InputRecord] = {}
    graph: GraphRecord | None = None
    backend: BackendRecord | None = None
    queries: QueryCounts | None = None
    vectors: VectorCounts | None = None
    part_size: int
    range: RangeRecord | None = Field(
        None, description="Of a range of parts (--parts), which it is; queries and parts are counted within it."
    )
    parts_planned: int | None = None
    parts: list[PartRecord] = []
    timings_s: dict[str, float] = Field(
        default={},
        description="Seconds by stage, and in total, since the run began or went on; hits are read and parts written "
        "beside the other stages.",
    )
    peak_memory_bytes: int | None = None
    versions: dict[str, str] = {}

    def to_json(self) -> str:
        """Return the text of ``run.json``: indented, a newline at its end, no credential anywhere in it."""
        text = self.model_dump_json(indent=2)
        if redacted(text) != text:
            text = json.dumps(redacted_values(json.loads(text)), indent=2, ensure_ascii=False)
        return text + "\n"
