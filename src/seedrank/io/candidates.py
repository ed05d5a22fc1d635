"""The two tables of a run: ``candidates`` (the result) and ``queries`` (what happened to each query).

Schemas are fixed here, with a description and a unit in the metadata of every field and one JSON document under the
file-level key ``seedrank``. Nothing in a file differs between two runs of one command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from seedrank.io.records import StoredFile
from seedrank.io.storage.files import HashedFile, storage_errors

CANDIDATES_SCHEMA_VERSION = 1
QUERIES_SCHEMA_VERSION = 1
FILE_KEY = b"seedrank"
ROW_GROUP_ROWS = 1 << 20
#: Columns of ``candidates`` that some methods and options add, in their order.
FURTHER_COLUMNS = ("cosine", "hops", "anchor_id", "visit_count", "path", "group_id", "members")


class ScoreMeaning(NamedTuple):
    """What the column ``score`` holds, and its unit; both depend on the method."""

    description: str
    unit: str


def _field(name: str, kind: pa.DataType, description: str, *, unit: str = "", nullable: bool = False) -> pa.Field:
    metadata = {"description": description}
    if unit:
        metadata["unit"] = unit
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def _document(table: str, version: int, facts: Mapping[str, Any]) -> dict[bytes, bytes]:
    text = json.dumps({"table": table, "schema_version": version, **facts}, sort_keys=True)
    return {FILE_KEY: text.encode()}


def candidates_schema(
    *,
    query_type: pa.DataType,
    node_type: pa.DataType,
    precision: str,
    facts: Mapping[str, Any],
    meaning: ScoreMeaning,
    several_restarts: bool = False,
    components: Sequence[str] = (),
    columns: Sequence[str] = (),
    group_type: pa.DataType | None = None,
) -> pa.Schema:
    """Schema of ``RUN/candidates``.

    Parameters
    ----------
    query_type, node_type : the id types of the inputs; they come back unchanged.
    precision : ``float32`` or ``float64``, the type of ``score``.
    facts : method and parameters that produced the table, stored in the file metadata.
    meaning : what a score is.
    several_restarts : whether a query has a result for each of several restart probabilities.
    components : names of the lists that were fused, each with a column of its own.
    columns : the ones of `FURTHER_COLUMNS` that are filled, in that order.
    group_type : type of the keys of groups.
    """
    score_type = pa.float32() if precision == "float32" else pa.float64()
    further = _further_columns(node_type, score_type, group_type or pa.null())
    return pa.schema(
        [
            _field("query_id", query_type, "id of the query, as given"),
            *_restart_column(several_restarts),
            _field("rank", pa.int32(), "position of the candidate in its query", unit="1 = best"),
            _field("node_id", node_type, "id of the candidate, as given in the edge list"),
            _field("score", score_type, meaning.description, unit=meaning.unit),
            *(
                _field(
                    component_column(name),
                    score_type,
                    f"what {name} contributes to the score; null where it does not have the candidate",
                    unit=meaning.unit,
                    nullable=True,
                )
                for name in components
            ),
            *(further[name] for name in columns),
        ],
        metadata=_document("candidates", CANDIDATES_SCHEMA_VERSION, facts),
    )


def component_column(name: str) -> str:
    """Name of the column of what one of several fused lists contributes."""
    return f"score_{name}"


def path_type(node_type: pa.DataType) -> pa.ListType:
    """Type of the column ``path``: edges as they are stored, in the order in which they were followed."""
    edge = pa.struct(
        [
            pa.field("src", node_type, nullable=False),
            pa.field("dst", node_type, nullable=False),
            pa.field("type", pa.string()),
            pa.field("weight", pa.float64(), nullable=False),
            pa.field("reversed", pa.bool_(), nullable=False),
        ]
    )
    return pa.list_(pa.field("element", edge, nullable=False))


def members_type(node_type: pa.DataType, score_type: pa.DataType) -> pa.ListType:
    """Type of the column ``members``: the nodes of a group with their scores, best first."""
    member = pa.struct([pa.field("node_id", node_type, nullable=False), pa.field("score", score_type, nullable=False)])
    return pa.list_(pa.field("element", member, nullable=False))


def _further_columns(node_type: pa.DataType, score_type: pa.DataType, group_type: pa.DataType) -> dict[str, pa.Field]:
    fields = (
        _field(
            "cosine",
            score_type,
            "cosine of the vectors of candidate and query, by which the first candidates are ranked; null without a "
            "vector, and for candidates that were not ranked again",
            unit="-1 to 1",
            nullable=True,
        ),
        _field(
            "hops",
            pa.int32(),
            "edges followed from the anchor; null when no path leads to the candidate",
            unit="edges",
            nullable=True,
        ),
        _field(
            "anchor_id",
            node_type,
            "the seed that the candidate was found from; null when no path leads to the candidate",
            nullable=True,
        ),
        _field(
            "visit_count",
            pa.int64(),
            "visits of the walk from the anchor; of a traversal, distinct shortest paths from the anchor; null for "
            "a hit that the method did not find",
            unit="visits or paths",
            nullable=True,
        ),
        _field(
            "path",
            path_type(node_type),
            "edges from the anchor to the candidate, as they are stored; reversed: followed from dst to src",
            unit="edges",
            nullable=True,
        ),
        _field(
            "group_id",
            group_type,
            "the value of --group-by that the members share; null for a node without one, which stands alone",
            nullable=True,
        ),
        _field(
            "members",
            members_type(node_type, score_type),
            "the nodes of the group that were found, best first; the first one is the candidate",
        ),
    )
    return {field.name: field for field in fields}


def _restart_column(several: bool) -> tuple[pa.Field, ...]:
    field = _field("restart", pa.float64(), "restart probability of this result", unit="probability")
    return (field,) if several else ()


def _reranked_columns(reranked: bool) -> tuple[pa.Field, ...]:
    field = _field(
        "without_vector",
        pa.int32(),
        "candidates that could not be ranked again, because they or the query have no vector; they follow the others",
        unit="rows",
        nullable=True,
    )
    return (field,) if reranked else ()


def queries_schema(
    *, query_type: pa.DataType, facts: Mapping[str, Any], several_restarts: bool = False, reranked: bool = False
) -> pa.Schema:
    """Schema of ``RUN/queries``; columns that the method does not measure are null."""
    return pa.schema(
        [
            _field("query_id", query_type, "id of the query, as given"),
            *_restart_column(several_restarts),
            _field("method", pa.string(), "the method that ran"),
            _field(
                "status",
                pa.string(),
                "how the query ended: ok, no_valid_seeds, fallback_rrf, not_converged, budget_exhausted, timed_out, "
                "failed",
            ),
            _field(
                "seeds_given",
                pa.int32(),
                "hits of the query; null when its seed list is null",
                unit="hits",
                nullable=True,
            ),
            _field("seeds_missing", pa.int32(), "hits that are null or not in the graph", unit="hits"),
            _field("candidates", pa.int32(), "rows of the query in candidates", unit="rows"),
            _field("iterations", pa.int32(), "iterations of the method", unit="iterations", nullable=True),
            _field(
                "error_bound",
                pa.float64(),
                "upper bound of the L1 distance between the scores of all nodes and the exact solution",
                unit="L1 distance",
                nullable=True,
            ),
            _field(
                "certificate",
                pa.string(),
                "what --stop top-k proved of the set of candidates: certified (no other node belongs to it), tied "
                "(rank k and its successor differ by rounding at most), tolerance (not told apart at this tolerance)",
                nullable=True,
            ),
            _field(
                "visited_nodes",
                pa.int64(),
                "distinct nodes that a walk or a traversal visited, seeds left out",
                unit="nodes",
                nullable=True,
            ),
            _field(
                "visited_edges", pa.int64(), "edges that a walk or a traversal followed", unit="edges", nullable=True
            ),
            _field("budget_hit", pa.string(), "the limit that was met, named as its option", nullable=True),
            _field("truncated", pa.bool_(), "whether a limit cut something off", nullable=True),
            *_reranked_columns(reranked),
            _field("plan", pa.string(), "name of the plan that was chosen", nullable=True),
            _field("trace", pa.string(), "why the plan was chosen, as JSON", nullable=True),
            _field(
                "input_hash", pa.string(), "xxh3-128 of what the query brings: hits, exclusions, attributes, vector"
            ),
        ],
        metadata=_document("queries", QUERIES_SCHEMA_VERSION, facts),
    )


def write_table(path: Path, table: pa.Table) -> StoredFile:
    """Write one new part file (zstd, dictionary ids, byte-stream-split floats).

    Returns the size and the hash of what was written. The caller stages and publishes it.

    Raises
    ------
    StorageError
        The file could not be written.
    """
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    dictionary = [
        leaf
        for field in table.schema
        if field.name not in floats and field.name != "rank"
        for leaf in _leaves(field.name, field.type)
    ]
    with storage_errors(f"writing {path}"):
        with HashedFile(path) as file:
            pq.write_table(
                table,
                file,
                compression="zstd",
                use_dictionary=dictionary,
                use_byte_stream_split=floats,
                row_group_size=ROW_GROUP_ROWS,
                store_schema=True,
            )
        return StoredFile(bytes=file.bytes, xxh3_128=file.xxh3_128)


def _leaves(name: str, kind: pa.DataType) -> list[str]:
    """Names of the columns that Parquet stores for a field: those inside lists and structs have dotted ones."""
    if pa.types.is_list(kind):
        return _leaves(f"{name}.list.element", kind.value_type)
    if pa.types.is_struct(kind):
        return [leaf for inner in kind for leaf in _leaves(f"{name}.{inner.name}", inner.type)]
    return [name]
