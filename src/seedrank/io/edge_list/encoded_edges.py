"""One pass over an edge list: judged, ids and types numbered, rows kept in memory or in temporary files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import files_of, has_column, id_type_of, require_column
from seedrank.io.edge_list.code_chunks import Encoded, look_up
from seedrank.io.edge_list.edge_rows import BadRows, EdgeColumns, NullWeight, clean_batch
from seedrank.io.ids import IdEncoder, common_id_type
from seedrank.io.names import NameEncoder, check_name_type
from seedrank.io.nodes import NodeTable
from seedrank.io.records import InputFileRecord
from seedrank.io.storage.spill import Chunks, Spill
from seedrank.io.tables import TableInput

EdgeArrays = tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.float64] | None,
    npt.NDArray[np.int32] | None,
]
"""Source, target, weight and type of some rows; see `seedrank.io.edges.EdgeList`."""


# Files are often sorted: a sample has to come from many places, but need not read everything.
_SAMPLED_CHUNKS = 64


@dataclass(frozen=True, eq=False)
class EncodedEdges:
    """A validated edge list whose rows may be in files; what is not a method is as in `seedrank.io.edges.EdgeList`.

    Parameters
    ----------
    kept_rows : int
        Rows that are edges: neither dropped nor of weight 0.
    """

    ids: pa.Array
    type_names: tuple[str | None, ...]
    rows: int
    dropped_rows: int
    zero_weight_rows: int
    kept_rows: int
    records: list[InputFileRecord]
    _ends: Encoded
    _weights: Chunks | None
    _types: Encoded | None

    @property
    def weighted(self) -> bool:
        """Whether there is a weight column."""
        return self._weights is not None

    @property
    def typed(self) -> bool:
        """Whether there is a type column."""
        return self._types is not None

    def stream(self) -> Iterator[EdgeArrays]:
        """Read the edges, some 10^6 at a time, in the order of the input; as often as wanted."""
        sources, targets = self._ends.stream(0), self._ends.stream(1)
        weights = None if self._weights is None else (weight for weight in self._weights if len(weight))
        types = None if self._types is None else self._types.stream(0)
        for source in sources:
            yield (
                source,
                next(targets),
                None if weights is None else next(weights),
                None if types is None else next(types),
            )

    def sample(self, most: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32] | None]:
        """Source, target and type of some edges, from all over the list; about so many, always the same ones."""
        columns = [(self._ends, 0), (self._ends, 1)] + ([] if self._types is None else [(self._types, 0)])
        found = [_sample(encoded, column, most) for encoded, column in columns]
        return found[0], found[1], found[2] if self.typed else None

    def in_memory(self) -> EdgeArrays:
        """All edges at once; uses them up."""
        source, target = self._ends.arrays()
        weight = None if self._weights is None else np.concatenate([np.empty(0), *self._weights])
        edge_type = None if self._types is None else self._types.arrays()[0]
        self.close()
        return source, target, weight, edge_type

    def close(self) -> None:
        """Free what the rows take; they cannot be read any more."""
        self._ends.close()
        if self._weights is not None:
            self._weights.clear()
        if self._types is not None:
            self._types.close()


def encode_edges(
    table: TableInput,
    columns: EdgeColumns,
    *,
    null_weight: NullWeight,
    on_bad_rows: BadRows,
    nodes: NodeTable | None,
    spill: Spill,
) -> EncodedEdges:
    """Read and validate an edge list in one streaming pass.

    In memory are one batch of rows, and each distinct id and type once; the rest is up to ``spill``: 4 bytes for each
    endpoint and type, 8 for each weight.

    Parameters
    ----------
    table : TableInput
        The opened edge list.
    spill : Spill
        Where the rows wait.
    columns, null_weight, on_bad_rows, nodes
        See `seedrank.io.edges.read_edges`, also for what is raised.
    """
    require_column(table, "source node", columns.src)
    require_column(table, "destination node", columns.dst)
    weighted = has_column(table, "weight", columns.weight, explicit="weight" in columns.explicit)
    typed = has_column(table, "edge type", columns.type, explicit="type" in columns.explicit)
    if typed:
        check_name_type(table, "edge type", columns.type)
    encoder = IdEncoder(
        _id_type(table, columns, nodes), columns=2, what="node ids", chunks=lambda: spill.chunks(np.int32)
    )
    types = NameEncoder(lambda: spill.chunks(np.int32))
    weights = spill.chunks(np.float64)
    total = 0.0
    rows = dropped = zeros = 0
    wanted = [columns.src, columns.dst]
    wanted += [columns.weight] if weighted else []
    wanted += [columns.type] if typed else []
    if nodes is not None:
        encoder.include(nodes.ids)
    for batch in table.batches(wanted):
        rows += batch.table.num_rows
        clean, weight, lost = clean_batch(batch, columns, weighted, null_weight, on_bad_rows)
        dropped += lost
        if weight is not None:
            without_edge = weight == 0
            if without_edge.any():
                unlinked = clean.filter(pa.array(without_edge))
                encoder.include(unlinked.column(columns.src), unlinked.column(columns.dst))
                zeros += unlinked.num_rows
                clean, weight = clean.filter(pa.array(~without_edge)), weight[~without_edge]
            with np.errstate(over="ignore"):
                total += float(weight.sum())
            weights.append(weight)
        encoder.append(clean.column(columns.src), clean.column(columns.dst))
        if typed:
            types.append(clean.column(columns.type))
    if not np.isfinite(total):
        raise InputDataError(
            f"edges: the sum of all weights in column {columns.weight!r} is not a finite number ({files_of(table)})",
            expected="weights whose sum fits a float64 (about 1.8e308)",
            fix="divide all weights by one constant; only their ratios matter",
        )
    ends = encoder.encode()
    codes, names = types.encode() if typed else (None, ())
    # Arrow keeps what the batches took for batches to come; there are none.
    pa.default_memory_pool().release_unused()
    return EncodedEdges(
        ids=ends.values,
        type_names=names,
        rows=rows,
        dropped_rows=dropped,
        zero_weight_rows=zeros,
        kept_rows=rows - dropped - zeros,
        records=table.records,
        _ends=ends,
        _weights=weights if weighted else None,
        _types=codes,
    )


def _sample(encoded: Encoded, column: int, most: int) -> npt.NDArray[np.int32]:
    """Positions of some rows of one column; of the same rows in every column, whatever chunks without rows it has."""
    chunks = encoded.chunks[column]
    places = [i for i, length in enumerate(chunks.lengths) if length]
    if len(places) > _SAMPLED_CHUNKS:
        places = [places[len(places) * i // _SAMPLED_CHUNKS] for i in range(_SAMPLED_CHUNKS)]
    sampled = [np.empty(0, np.int32)]
    for i in places:
        codes = chunks[i]
        sampled.append(look_up(encoded.table, codes[:: max(len(codes) * len(places) // most, 1)]))
    return np.concatenate(sampled)


def _id_type(table: TableInput, columns: EdgeColumns, nodes: NodeTable | None) -> pa.DataType:
    """Type that holds the ids of both endpoints and of the node table."""
    id_type = id_type_of(table, columns.src, columns.dst)
    if nodes is None:
        return id_type
    first = table.filled_parts[0].place(columns.src)
    return common_id_type([(id_type, first), (nodes.ids.type, nodes.place)])
