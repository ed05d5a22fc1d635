"""The nodes of a job: ids of the graph and ids that only hits have, in one order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.ids import insertion_points
from seedrank.jobs.queries.node_space import NodeSpace
from seedrank.testing.strategies import node_ids


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    """A graph whose internal order is not that of its ids."""
    edges = pa.table({"src": ["b", "f", "f", "f", "d"], "dst": ["f", "d", "b", "h", "h"]})
    return seedrank.build(edges, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.mark.parametrize("foreign", [[], ["c"], ["a", "c", "e", "g", "i"], ["y", "z"], ["bb", "É"]])
def test_ids_and_order_of_both_kinds(store: seedrank.GraphStore, foreign: list[str]) -> None:
    space = NodeSpace(store, pa.array(foreign, pa.string()))
    ids = space.ids(np.arange(len(space))).to_pylist()
    assert sorted(ids) == sorted(["b", "d", "f", "h", *foreign])
    assert ids[space.graph_nodes :] == foreign
    assert [ids[node] for node in np.argsort(space.order)] == sorted(ids)
    assert sorted(space.order.tolist()) == list(range(len(space)))


def test_ids_in_any_order_and_none(store: seedrank.GraphStore) -> None:
    space = NodeSpace(store, pa.array(["c", "x"], pa.large_string()))
    ids = space.ids(np.arange(6)).to_pylist()
    assert space.ids(np.array([5, 0, 5, 3, 4])).to_pylist() == [ids[node] for node in (5, 0, 5, 3, 4)]
    assert space.ids(np.array([], dtype=np.int32)).type == pa.large_string()


def test_without_a_graph_hits_are_all_there_is() -> None:
    space = NodeSpace(NoGraph(), pa.array([5, 7, 2**64 - 1], pa.uint64()))
    assert space.ids(np.array([2, 0])).to_pylist() == [2**64 - 1, 5]
    assert space.order.tolist() == [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["small", "large", "unsigned", "string"]), st.data())
def test_insertion_points_count_what_comes_before(kind: Any, data: st.DataObject) -> None:
    known, wanted = (sorted(data.draw(st.sets(node_ids(kind), max_size=12))) for _ in range(2))
    id_type = {"string": pa.string(), "unsigned": pa.uint64()}.get(kind, pa.int64())
    found = insertion_points(pa.array(wanted, id_type), pa.array(known, id_type))
    assert found.tolist() == [sum(other < one for other in known) for one in wanted]
