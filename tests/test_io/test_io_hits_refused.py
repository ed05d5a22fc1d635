"""Tables that are not hits, each refused with what was found, expected and to be done."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from seedrank.errors import InputDataError
from seedrank.io.queries import HitColumns, read_hits

REFUSED: dict[str, tuple[Any, HitColumns, str]] = {
    "both-forms": (
        pa.table({"query_id": [1], "node_id": [1], "seeds": [[1]]}),
        HitColumns(),
        "both a column 'node_id'",
    ),
    "no-query": (pa.table({"query": [1], "node_id": [1]}), HitColumns(), "no column 'query_id'"),
    "no-node": (pa.table({"query_id": [1], "nodeid": [1]}), HitColumns(), "did you mean 'nodeid'"),
    "no-list": (pa.table({"query_id": [1], "seeds": [1]}), HitColumns(), "int64, which is not a list"),
    "no-field": (pa.table({"query_id": [1], "seeds": [[{"id": 1}]]}), HitColumns(), "without a field 'node_id'"),
    "weight-twice": (
        pa.table({"query_id": [1], "weight": [1], "seeds": [[{"node_id": 1, "weight": 1}]]}),
        HitColumns(),
        "'weight' is both a column and a field",
    ),
    "named-weight": (
        pa.table({"query_id": [1], "node_id": [1]}),
        HitColumns(explicit=frozenset({"weight"})),
        "no column 'weight'",
    ),
    "named-seeds": (
        pa.table({"query_id": [1], "node_id": [1]}),
        HitColumns(explicit=frozenset({"seeds"})),
        "no column 'seeds'",
    ),
    "text-weight": (pa.table({"query_id": [1], "node_id": [1], "weight": ["1"]}), HitColumns(), "not a weight"),
    "float-ids": (pa.table({"query_id": [1], "node_id": [1.0]}), HitColumns(), "cannot be an id"),
    "list-of-floats": (pa.table({"query_id": [1], "seeds": [[1.0]]}), HitColumns(), "cannot be an id"),
    "parts-differ": (
        [pa.table({"query_id": [1], "node_id": [1], "weight": [1]}), pa.table({"query_id": [1], "node_id": [1]})],
        HitColumns(),
        "with weight, .* without weight and source",
    ),
    "forms-differ": (
        [pa.table({"query_id": [1], "node_id": [1]}), pa.table({"query_id": [1], "seeds": [[1]]})],
        HitColumns(),
        "one hit a row .* a list of hits a row",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    source, columns, message = REFUSED[name]
    with pytest.raises(InputDataError, match=message) as caught:
        read_hits(source, columns)
    assert caught.value.expected
    assert caught.value.fix
