"""How a table of hits is laid out: one row a hit, or one row a query with a list of hits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import require_column
from seedrank.io.tables import Batch, InputPart, TableInput

Where = Literal["row", "element"] | None


@dataclass(frozen=True, kw_only=True)
class HitColumns:
    """Column names of a table of hits.

    Parameters
    ----------
    query_id : str
        The query; must be there.
    node_id, weight, source : str
        In the long form columns; in the nested form the fields of the list's structs (weight and source may
        also be columns, they then hold for all hits of the row). Weight and source are optional.
    seeds : str
        The list column of the nested form: ids, or structs of node_id[, weight][, source][, rank].
    rank, retriever_weight : str, optional
        Position of the hit in the list of its source, and the factor of its score, columns or fields like weight;
        None: not read.
    fallback : str, optional
        Another node id, for where the first is null or unknown, a column or field like weight; None: not read.
    explicit : frozenset of str
        The roles that the user named; a named column must be there.
    """

    query_id: str = "query_id"
    node_id: str = "node_id"
    weight: str = "weight"
    source: str = "source"
    seeds: str = "seeds"
    rank: str | None = None
    retriever_weight: str | None = None
    fallback: str | None = None
    explicit: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class HitLayout:
    """Where the parts of a hit stand.

    Parameters
    ----------
    nested : bool
        Whether a row holds a list of hits.
    structs : bool
        Whether the list's elements are structs.
    weight, source, rank, retriever_weight, fallback : {"row", "element"} or None
        Column of the table, field of the structs, or absent.
    """

    nested: bool
    structs: bool
    weight: Where
    source: Where
    rank: Where
    retriever_weight: Where
    fallback: Where

    def columns(self, names: HitColumns) -> list[str]:
        """Columns to read."""
        return [names.query_id, names.seeds if self.nested else names.node_id, *self._optional(names, "row")]

    def fields(self, names: HitColumns) -> dict[str, frozenset[str]]:
        """Struct fields to read."""
        if not self.structs:
            return {}
        return {names.seeds: frozenset({names.node_id, *self._optional(names, "element")})}

    def _optional(self, names: HitColumns, place: Where) -> list[str]:
        roles = (
            (names.weight, self.weight),
            (names.source, self.source),
            (names.rank, self.rank),
            (names.retriever_weight, self.retriever_weight),
            (names.fallback, self.fallback),
        )
        return [name for name, where in roles if name is not None and where == place]


@dataclass(frozen=True, eq=False)
class FlatHits:
    """The hits of one batch, one entry a hit.

    Parameters
    ----------
    parents : ndarray, shape (hits,), int64
        Row of the batch that each hit is from.
    node, weight, source, rank, retriever_weight, fallback : pyarrow.Array, length hits
        All but the node are None if the table has none. A null struct is a hit without a node.
    is_null : ndarray, shape (rows,), bool
        Rows whose list is null (all False in the long form).
    """

    parents: npt.NDArray[np.int64]
    node: pa.Array
    weight: pa.Array | None
    source: pa.Array | None
    rank: pa.Array | None
    retriever_weight: pa.Array | None
    fallback: pa.Array | None
    is_null: npt.NDArray[np.bool_]


_NO_ELEMENTS = HitLayout(
    nested=True, structs=False, weight=None, source=None, rank=None, retriever_weight=None, fallback=None
)


def find_layout(table: TableInput, names: HitColumns) -> HitLayout:
    """Decide the layout of a table; all its non-empty parts must agree.

    Raises
    ------
    InputDataError
        A missing column, both forms at once, a seed column that is no list, parts that differ.
    """
    require_column(table, "query id", names.query_id)
    # Lists of which none has an element say nothing about the elements: such parts follow the others.
    found = [(part, layout) for part in table.filled_parts if (layout := _layout_of(table, part, names)) is not None]
    part, layout = found[0] if found else (table.filled_parts[0], _NO_ELEMENTS)
    for other_part, other in found:
        if other != layout:
            raise InputDataError(
                f"{table.what}: {part.uri} has {_describe(layout)}, {other_part.uri} has {_describe(other)}",
                expected="one form, and weight, source and the like each either in every file or in none",
                fix="write the files alike",
            )
    for role, where, name in (
        ("weight", layout.weight, names.weight),
        ("source", layout.source, names.source),
        ("rank", layout.rank, names.rank),
        ("retriever_weight", layout.retriever_weight, names.retriever_weight),
        ("fallback", layout.fallback, names.fallback),
        ("seeds", layout.nested or None, names.seeds),
    ):
        if role in names.explicit and where is None:
            raise InputDataError(
                f"{table.what}: {part.uri} has no column {name!r}",
                expected=f"the {role} column that was named; found {', '.join(part.column_names)}",
                fix=f"correct the name, or leave the {role} column out",
            )
    return layout


def id_types(table: TableInput, layout: HitLayout, names: HitColumns) -> Iterator[tuple[pa.DataType, str]]:
    """Type and place of the node ids of every part."""
    for part in table.filled_parts:
        data_type = part.type_of(names.seeds if layout.nested else names.node_id)
        if data_type is None:
            continue
        if layout.nested:
            data_type = _element_type(data_type)
            data_type = data_type.field(names.node_id).type if pa.types.is_struct(data_type) else data_type
        yield data_type, part.place(names.seeds if layout.nested else names.node_id)
        if names.fallback is not None and layout.fallback is not None:
            yield _type_of_role(part, names.fallback, layout.fallback, names.seeds), part.place(names.fallback)


def _type_of_role(part: InputPart, name: str, where: Where, seeds: str) -> Any:
    """Type of an optional column or field; null where this part has no elements."""
    if where == "row":
        return part.type_of(name)
    element = _element_type(part.type_of(seeds))
    return element.field(name).type if pa.types.is_struct(element) else pa.null()


def flatten(batch: Batch, layout: HitLayout, names: HitColumns) -> FlatHits:
    """Bring a batch of either form to one entry a hit."""
    rows = batch.table.num_rows
    if not layout.nested:
        return FlatHits(
            parents=np.arange(rows),
            node=batch.table.column(names.node_id),
            weight=batch.column(names.weight) if layout.weight else None,
            source=batch.column(names.source) if layout.source else None,
            rank=batch.column(names.rank) if names.rank and layout.rank else None,
            retriever_weight=batch.column(names.retriever_weight)
            if names.retriever_weight and layout.retriever_weight
            else None,
            fallback=batch.column(names.fallback) if names.fallback and layout.fallback else None,
            is_null=np.zeros(rows, np.bool_),
        )
    lists = batch.table.column(names.seeds)
    if pa.types.is_null(lists.type):
        lists = lists.cast(pa.list_(pa.null()))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    parents = np.repeat(np.arange(rows), lengths)
    # `flatten` respects the offset of slices and skips what lies hidden below null lists; `values` does
    # neither.
    elements = lists.flatten()
    structs = pa.types.is_struct(elements.type)

    def part(name: str | None, where: Where) -> pa.Array | None:
        if where == "element":
            return pc.struct_field(elements, name) if structs else pa.nulls(len(elements))
        return None if where is None else batch.table.column(name).take(pa.array(parents))

    return FlatHits(
        parents=parents,
        node=pc.struct_field(elements, names.node_id) if structs else elements,
        weight=part(names.weight, layout.weight),
        source=part(names.source, layout.source),
        rank=part(names.rank, layout.rank),
        retriever_weight=part(names.retriever_weight, layout.retriever_weight),
        fallback=part(names.fallback, layout.fallback),
        is_null=np.asarray(lists.is_null().to_numpy(zero_copy_only=False)),
    )


def _layout_of(table: TableInput, part: InputPart, names: HitColumns) -> HitLayout | None:
    """Layout of one part; None if it has lists, but nothing shows what they hold."""
    seeds = part.type_of(names.seeds)
    # A column that merely has the default name, such as a number of seeds, is not the nested form.
    nested = seeds is not None and (_is_list(seeds) or "seeds" in names.explicit or part.type_of(names.node_id) is None)
    if not nested:
        require_column(table, "node id", names.node_id, parts=[part])
        return HitLayout(
            nested=False,
            structs=False,
            weight="row" if part.type_of(names.weight) is not None else None,
            source="row" if part.type_of(names.source) is not None else None,
            rank=_where(part, names.rank, []),
            retriever_weight=_where(part, names.retriever_weight, []),
            fallback=_where(part, names.fallback, []),
        )
    if part.type_of(names.node_id) is not None:
        raise InputDataError(
            f"{table.what}: {part.uri} has both a column {names.node_id!r} and a list column {names.seeds!r}",
            expected="one hit a row (node_id), or one query a row with its list (seeds), not both",
            fix="drop one of the two columns",
        )
    if not (_is_list(seeds) or pa.types.is_null(seeds)):
        raise InputDataError(
            f"{part.place(names.seeds)} has type {seeds}, which is not a list",
            expected="list, large_list or fixed_size_list of ids, or of structs (node_id[, weight][, source])",
            fix="write the column as a list, or use one row a hit",
        )
    element = _element_type(seeds)
    if pa.types.is_null(element):
        return None
    fields = _field_names(element)
    if pa.types.is_struct(element) and names.node_id not in fields:
        raise InputDataError(
            f"{part.place(names.seeds)} holds structs without a field {names.node_id!r}",
            expected=f"structs (node_id[, weight][, source]); found the fields {', '.join(fields)}",
            fix="rename the field, or name the one that holds the node id",
        )
    return HitLayout(
        nested=True,
        structs=pa.types.is_struct(element),
        weight=_where(part, names.weight, fields),
        source=_where(part, names.source, fields),
        rank=_where(part, names.rank, fields),
        retriever_weight=_where(part, names.retriever_weight, fields),
        fallback=_where(part, names.fallback, fields),
    )


def _where(part: InputPart, name: str | None, fields: list[str]) -> Where:
    if name is None:
        return None
    in_row, in_element = part.type_of(name) is not None, name in fields
    if in_row and in_element:
        raise InputDataError(
            f"{part.uri}: {name!r} is both a column and a field of the list's structs",
            expected="one of the two",
            fix="drop the column, or the field",
        )
    if in_element:
        return "element"
    return "row" if in_row else None


def _is_list(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type)
    )


def _element_type(data_type: pa.DataType) -> Any:
    return data_type.value_type if _is_list(data_type) else data_type


def _field_names(data_type: pa.DataType) -> list[str]:
    if not pa.types.is_struct(data_type):
        return []
    return [data_type.field(i).name for i in range(data_type.num_fields)]


def _describe(layout: HitLayout) -> str:
    form = "a list of hits a row" if layout.nested else "one hit a row"
    roles = (
        ("weight", layout.weight),
        ("source", layout.source),
        ("rank", layout.rank),
        ("retriever weight", layout.retriever_weight),
        ("fallback node", layout.fallback),
    )
    have = [name for name, where in roles if where]
    return f"{form} with {' and '.join(have)}" if have else f"{form} without weight and source"
