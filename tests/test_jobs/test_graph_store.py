"""The graph store: content, memory maps, reproducible bytes, and every way in which a store is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graph.graph_files import StoredRows
from seedrank.io.graphstore import GraphStore

Write = Callable[..., Path]
Command = Callable[..., Any]

# A loop, a duplicate, two types and null, a zero weight, a dangling node, an isolated node that no row names.
EDGES = pa.table(
    {
        "src": ["b", "a", "a", "a", "c", "d", "a"],
        "dst": ["a", "c", "b", "c", "c", "e", "b"],
        "weight": [1.0, 2.0, 1.0, 0.5, 4.0, 0.0, 3.0],
        "type": ["x", "y", "x", "y", None, "x", "z"],
    }
)
NODES = pa.table({"id": ["f", "c", "a"], "type": ["t", None, "s"], "year": [3, 1, 2]})
ENTRIES = {
    ("b", "a", "x", 1.0),
    ("a", "c", "y", 2.5),
    ("a", "b", "x", 1.0),
    ("a", "b", "z", 3.0),
    ("c", "c", None, 4.0),
}
HITS = pa.table({"query_id": ["q"], "node_id": ["a"]})


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return seedrank.build(EDGES, nodes=NODES, out=tmp_path / "graph")


def entries(store: GraphStore, rows: StoredRows) -> list[tuple[str, str, str | None, float]]:
    """(row, neighbour, type, weight) of one CSR, with ids."""
    ids = store.ids.to_pylist()
    names = [ids[rank] for rank in store.order]
    found = []
    for node in range(len(names)):
        for i in range(rows.offsets[node], rows.offsets[node + 1]):
            kind = None if rows.types is None else store.facts.edge_types[rows.types[i]]
            weight = 1.0 if rows.weights is None else float(rows.weights[i])
            found.append((names[node], names[rows.neighbors[i]], kind, weight))
    return found


def arrays_of(store: GraphStore) -> dict[str, Any]:
    sides = {"by_source": store.by_source, "by_destination": store.by_destination}
    named = {"order": store.order, "inverse_order": store.inverse_order}
    for side, rows in sides.items():
        named |= {f"{side}_{name}": getattr(rows, name) for name in ("offsets", "neighbors", "weights", "types")}
    return named


def test_facts(store: GraphStore) -> None:
    facts = store.facts.model_dump(exclude={"seedrank_version", "fingerprint", "files", "inputs", "options"})
    assert facts == {
        "format_version": 1,
        "nodes": 6,
        "edges": 5,
        "rows": 7,
        "merged_duplicates": 1,
        "zero_weight_rows": 1,
        "dropped_rows": 0,
        "self_loops": 1,
        "dangling": 3,
        "isolated": 3,
        "nodes_without_attributes": 3,
        "id_type": "string",
        "weighted": True,
        "edge_types": ["x", "y", "z", None],
        "node_types": {"s": 1, "t": 1},
    }
    assert {name: [file.rows for file in files] for name, files in store.facts.inputs.items()} == {
        "edges": [7],
        "nodes": [3],
    }


def test_both_csrs_hold_the_reduced_edges(store: GraphStore) -> None:
    assert store.ids.to_pylist() == ["a", "b", "c", "d", "e", "f"]
    by_source, by_destination = entries(store, store.by_source), entries(store, store.by_destination)
    assert set(by_source) == ENTRIES
    assert {(source, target, kind, weight) for target, source, kind, weight in by_destination} == ENTRIES
    assert len(by_source) == len(by_destination) == 5
    # Neighbours by tie rank, then by type name.
    assert [entry[1:3] for entry in by_source if entry[0] == "a"] == [("b", "x"), ("b", "z"), ("c", "y")]


def test_order_is_by_falling_degree_and_invertible(store: GraphStore) -> None:
    # In + out entries: a 3 + 1, b 1 + 2, c 1 + 2 (its loop on both sides), the rest 0; ties by id.
    assert [store.ids[rank].as_py() for rank in store.order] == ["a", "b", "c", "d", "e", "f"]
    star = [("z", leaf) for leaf in "abc"]
    columns = {name: list(column) for name, column in zip(("src", "dst"), zip(*star, strict=True), strict=True)}
    other = seedrank.build(pa.table(columns), out=store.path.with_name("star"))
    assert [other.ids[rank].as_py() for rank in other.order] == ["z", "a", "b", "c"]
    for built in (store, other):
        assert np.array_equal(built.order[built.inverse_order], np.arange(built.facts.nodes))


def test_attributes_are_aligned_and_null_where_the_table_lists_nothing(store: GraphStore) -> None:
    assert store.attributes is not None
    assert store.attributes.column("type").to_pylist() == ["s", None, None, None, None, "t"]
    assert store.attributes.column("year").to_pylist() == [2, None, 1, None, None, 3]
    mask = store.nodes_of_types(("t", "s"), option="--node-type")
    assert mask.tolist() == [True, False, False, False, False, True]


def test_a_store_without_node_table_has_no_attributes(tmp_path: Path) -> None:
    store = seedrank.build(EDGES, out=tmp_path / "graph")
    assert store.attributes is None
    assert store.facts.node_types is None
    assert not (store.path / "node_attributes.arrow").exists()
    with pytest.raises(InputDataError, match="no node types"):
        seedrank.score(store, queries=HITS, out=tmp_path / "run", node_type=["s"])


def test_files_are_those_recorded(store: GraphStore) -> None:
    names = {path.name for path in store.path.iterdir()}
    assert names == {*store.facts.files, "graph.json"}
    assert json.loads((store.path / "graph.json").read_text())["fingerprint"] == store.facts.fingerprint
    assert {name: (store.path / name).stat().st_size for name in store.facts.files} == {
        name: file.bytes for name, file in store.facts.files.items()
    }
    assert [path.name for path in store.path.parent.iterdir()] == ["graph"]  # no staging is left beside it


def test_weights_and_types_are_stored_only_when_they_say_something(tmp_path: Path) -> None:
    plain = seedrank.build(EDGES.select(["src", "dst"]).slice(0, 3), out=tmp_path / "plain")
    ones = pa.table({"src": [1, 2], "dst": [2, 1], "weight": [1.0, 1.0]})
    for store in (plain, seedrank.build(ones, out=tmp_path / "ones")):
        assert store.by_source.weights is None
        assert not store.facts.weighted
        assert not any("weights" in name or "types" in name for name in store.facts.files)
    doubled = pa.table({"src": [1, 1], "dst": [2, 2]})
    multiplicity = seedrank.build(doubled, out=tmp_path / "doubled").by_source.weights
    assert multiplicity is not None
    assert multiplicity.tolist() == [2.0]
    assert seedrank.build(doubled, out=tmp_path / "max", duplicate_edges="max").by_source.weights is None


def test_an_open_store_is_memory_maps(store: GraphStore) -> None:
    opened = seedrank.open_graph(store.path)
    arrays = arrays_of(opened)
    dtypes = {"offsets": np.int64, "neighbors": np.int32, "weights": np.float64, "types": np.uint8, "order": np.int32}
    for name, array in arrays.items():
        assert isinstance(array, np.memmap), name
        assert not array.flags.writeable, name
        assert array.dtype == dtypes[name.rpartition("_")[2]], name
    assert opened.order is opened.order  # mapped once
    assert opened.facts == store.facts


def test_an_empty_store_opens(tmp_path: Path) -> None:
    nothing = pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    store = seedrank.open_graph(seedrank.build(nothing, out=tmp_path / "graph").path)
    assert (store.facts.nodes, store.facts.edges, len(store.ids)) == (0, 0, 0)
    assert store.by_source.offsets.tolist() == [0]
    assert len(store.by_destination.neighbors) == 0


def test_order_of_rows_and_files_gives_the_same_bytes(store: GraphStore, write: Write, tmp_path: Path) -> None:
    shuffled = EDGES.take([6, 3, 1, 5, 0, 4, 2])
    for part, (first, count) in enumerate([(0, 2), (2, 0), (2, 5)]):
        write(f"edges/part-{part}.parquet", shuffled.slice(first, count).select(["dst", "type", "src", "weight"]))
    nodes = write("nodes.parquet", NODES.take([2, 0, 1]))
    other = seedrank.build(tmp_path / "edges", nodes=nodes, out=tmp_path / "other")
    assert other.facts.fingerprint == store.facts.fingerprint
    for name in store.facts.files:
        assert (other.path / name).read_bytes() == (store.path / name).read_bytes(), name
    differing = {name for name, value in store.facts if value != getattr(other.facts, name)}
    assert differing == {"inputs"}


@pytest.mark.parametrize(
    ("edges", "nodes"),
    [
        (EDGES.set_column(2, "weight", pa.array([1.0, 2.0, 1.0, 0.5, 4.0, 0.0, 3.5])), NODES),
        (EDGES.set_column(3, "type", pa.array(["x", "y", "x", "y", None, "x", "z2"])), NODES),
        (EDGES.slice(0, 6), NODES),
        (EDGES, NODES.set_column(2, "year", pa.array([3, 1, 4]))),
        (EDGES, None),
    ],
    ids=["weight", "type name", "edge", "attribute", "no node table"],
)
def test_other_content_has_another_fingerprint(
    store: GraphStore, tmp_path: Path, edges: pa.Table, nodes: pa.Table | None
) -> None:
    assert seedrank.build(edges, nodes=nodes, out=tmp_path / "b").facts.fingerprint != store.facts.fingerprint


class TestReplacing:
    """What may stand at --out of build."""

    def test_a_store_needs_overwrite(self, store: GraphStore) -> None:
        with pytest.raises(ConfigError, match=r"(?s)already holds a graph store.*--overwrite"):
            seedrank.build(EDGES.slice(0, 2), out=store.path)
        assert seedrank.open_graph(store.path).facts == store.facts
        assert seedrank.build(EDGES.slice(0, 2), out=store.path, overwrite=True).facts.rows == 2
        assert not (store.path / "node_attributes.arrow").exists()

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_anything_else_is_refused(self, write: Write, tmp_path: Path, overwrite: bool) -> None:
        path = write("folder/precious.parquet", {"x": [1]})
        for out in (path, path.parent):
            with pytest.raises(ConfigError, match="is not a graph store"):
                seedrank.build(EDGES, out=out, overwrite=overwrite)
        assert path.exists()

    def test_a_failed_build_keeps_the_earlier_store(self, store: GraphStore) -> None:
        bad = pa.table({"src": ["a"], "dst": ["b"], "weight": [-1.0]})
        with pytest.raises(InputDataError):
            seedrank.build(bad, out=store.path, overwrite=True)
        assert seedrank.open_graph(store.path).facts == store.facts


class TestDamage:
    """Exit code 3 with the file named and the way out; never a traceback, never unpickling."""

    def refused(self, seedrank_command: Command, store: GraphStore, *needles: str) -> None:
        out = store.path.with_name("run")
        hits = store.path.with_name("hits.parquet")
        for command in ("score", "plan", "check"):
            result = seedrank_command(command, store.path, "--queries", hits, "--out", out)
            assert result.code == 3, result.err
            for needle in (*needles, "fix: rebuild it: seedrank build", "--overwrite"):
                assert needle in result.err
        assert not out.exists()

    @pytest.fixture(autouse=True)
    def _hits(self, write: Write) -> None:
        write("hits.parquet", HITS)

    def test_another_format_version(self, seedrank_command: Command, store: GraphStore) -> None:
        facts = json.loads((store.path / "graph.json").read_text())
        for version in (2, None, "1"):
            (store.path / "graph.json").write_text(json.dumps({**facts, "format_version": version}))
            self.refused(seedrank_command, store, f"graph store format {version!r}", "expected: format 1")

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format_version": 1}', "\x00"])
    def test_facts_that_cannot_be_understood(self, seedrank_command: Command, store: GraphStore, text: str) -> None:
        (store.path / "graph.json").write_text(text)
        self.refused(seedrank_command, store, "graph.json")

    def test_a_truncated_file(self, seedrank_command: Command, store: GraphStore) -> None:
        path = store.path / "by_source_weights.npy"
        path.write_bytes(path.read_bytes()[:-8])
        self.refused(seedrank_command, store, "by_source_weights.npy", f"{path.stat().st_size} bytes")

    @pytest.mark.parametrize("name", ["order.npy", "ids.arrow", "by_destination_neighbors.npy"])
    def test_a_missing_file(self, seedrank_command: Command, store: GraphStore, name: str) -> None:
        (store.path / name).unlink()
        self.refused(seedrank_command, store, name, "no file")

    def test_not_a_store_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(InputDataError, match="is not a graph store"):
            seedrank.open_graph(tmp_path)

    def test_changed_content_is_found_by_check(self, seedrank_command: Command, store: GraphStore) -> None:
        path = store.path / "by_source_neighbors.npy"
        content = bytearray(path.read_bytes())
        content[-4] ^= 1
        path.write_bytes(content)
        hits = store.path.with_name("hits.parquet")
        result = seedrank_command("check", store.path, "--queries", hits)
        assert result.code == 3
        for needle in ("by_source_neighbors.npy", "content hash", "fix: rebuild it"):
            assert needle in result.err

    @pytest.mark.parametrize("name", ["order.npy", "by_destination_offsets.npy", "ids.arrow"])
    def test_garbage_of_the_right_size(self, seedrank_command: Command, store: GraphStore, name: str) -> None:
        path = store.path / name
        path.write_bytes(b"?" * path.stat().st_size)
        hits = store.path.with_name("hits.parquet")
        for command in ("score", "check"):
            result = seedrank_command(command, store.path, "--queries", hits, "--out", store.path.with_name("run"))
            assert result.code == 3, result.err
            assert name in result.err
            assert "fix: rebuild it" in result.err

    def test_pickled_objects_are_never_loaded(self, store: GraphStore, tmp_path: Path) -> None:
        path, loaded = store.path / "order.npy", tmp_path / "loaded"
        np.save(path, np.array([Canary(str(loaded))], dtype=object), allow_pickle=True)
        array_file = path.read_bytes()
        np.load(path, allow_pickle=True)
        assert loaded.exists()  # the canary sings where pickles are loaded
        loaded.unlink()
        for content in (array_file, pickle.dumps(Canary(str(loaded)))):
            path.write_bytes(content)
            facts = json.loads((store.path / "graph.json").read_text())
            facts["files"]["order.npy"]["bytes"] = len(content)
            (store.path / "graph.json").write_text(json.dumps(facts))
            with pytest.raises(InputDataError, match=r"order\.npy"):
                seedrank.score(store.path, queries=HITS, out=tmp_path / "run")
        assert not loaded.exists()


class Canary:
    """Touches a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(self.path),))


class TestOptionsWithAStore:
    """Options of the edge list belong to build."""

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("--duplicate-edges", "max"),
            ("--src-column", "from"),
            ("--null-weight", "one"),
            ("--on-bad-rows", "drop"),
            ("--node-type-column", "kind"),
        ],
    )
    def test_contradiction_is_a_usage_error(
        self, seedrank_command: Command, store: GraphStore, write: Write, option: str, value: str
    ) -> None:
        hits = write("hits.parquet", HITS)
        for command in ("score", "plan", "check"):
            arguments = (store.path, "--queries", hits, "--out", store.path.with_name("run"), option, value)
            result = seedrank_command(command, *arguments)
            assert result.code == 2, result.err
            assert f"{option} {value} is given with a graph store that was built with" in result.err

    def test_the_value_it_was_built_with_is_fine(self, tmp_path: Path) -> None:
        store = seedrank.build(EDGES, out=tmp_path / "graph", duplicate_edges="max")
        assert seedrank.score(store, queries=HITS, out=tmp_path / "run", duplicate_edges="max").path.exists()
        with pytest.raises(ConfigError, match="built with max"):
            seedrank.score(store, queries=HITS, out=tmp_path / "again", duplicate_edges="sum")

    def test_nodes_with_a_store(self, seedrank_command: Command, store: GraphStore, write: Write) -> None:
        hits, nodes = write("hits.parquet", HITS), write("nodes.parquet", NODES)
        for command in ("score", "plan", "check"):
            arguments = (store.path, "--queries", hits, "--nodes", nodes, "--out", store.path.with_name("run"))
            result = seedrank_command(command, *arguments)
            assert result.code == 2, result.err
            assert "--nodes is given with the graph store" in result.err
