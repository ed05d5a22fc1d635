"""Filters on node attributes: values in the type of their column, content, globs, paths of tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import seedrank
from seedrank.errors import InputDataError
from seedrank.io.graph.globs import globs_pattern
from seedrank.io.graph.node_filters import filter_nodes
from seedrank.io.graph.paths_of_tests import TEST_GLOBS
from seedrank.testing.reference_globs import reference_glob

Passing = Callable[..., list[str]]

NODES = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "type": ["file", "file", "class", None],
        "size": pa.array([1, 2, 2, None], pa.int16()),
        "hot": [True, False, None, True],
        "share": pa.array([0.1, 0.5, None, float("nan")], pa.float32()),
        "day": pa.array([dt.date(2024, 1, 31), dt.date(2024, 2, 1), None, None]),
        "seen": pa.array([dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC), None, None, None], pa.timestamp("s", "UTC")),
        "price": pa.array([Decimal("1.50"), None, None, None], pa.decimal128(5, 2)),
        "path": ["src/a.py", "src/tests/b.py", "", None],
        "kind": pa.array(["k", "l", None, "k"]).dictionary_encode(),
        "span": [[1, 2], [], None, [3]],
        "place": [{"x": 1}, None, None, None],
        "nothing": pa.nulls(4),
        "a=b": ["x", "y", "z", None],
    }
)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Passing:
    """Nodes that pass some filters; ``e`` is in the graph, but not in the node table."""
    edges = pa.table({"src": ["a", "b", "c", "d"], "dst": ["b", "c", "d", "e"]})
    store = seedrank.build(edges, nodes=NODES, out=tmp_path_factory.mktemp("filters") / "graph")

    def nodes_passing(**filters: Any) -> list[str]:
        mask = filter_nodes(store, **filters)
        assert mask is not None
        ids: list[str] = store.ids.filter(pa.array(mask)).to_pylist()
        return ids

    return nodes_passing


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        *(("type=file", "ab"), ("size=2", "bc"), ("hot=true", "ad"), ("hot=false", "b"), ("share=0.1", "a")),
        *(("day=2024-01-31", "a"), ("seen=2024-01-31T10:00:00Z", "a"), ("seen=2024-01-31T11:00:00+01:00", "a")),
        *(("price=1.5", "a"), ("path=", "c"), ("path=src/a.py", "a"), ("kind=k", "ad"), ("nothing=x", "")),
        *(("size=-7", ""), ("type=File", ""), ("id=c", "c")),
    ],
)
def test_a_value_is_read_in_the_type_of_its_column(passing: Passing, pair: str, expected: str) -> None:
    assert passing(where=(pair,)) == list(expected)


def test_values_are_alternatives_and_columns_must_all_hold(passing: Passing) -> None:
    assert passing(where=("size=2", "size=1")) == ["a", "b", "c"]
    assert passing(where=("size=2", "type=file")) == ["b"]
    assert passing(where=("size=2", "size=1", "type=file", "hot=true")) == ["a"]
    assert passing(include_glob=("path=src/*", "path=src/tests/*"), exclude_glob=("path=**/b.*",)) == ["a"]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("size=2.0", r"--where size=2\.0: '2\.0' is no value of type int16"),
        ("size=40000", r"'40000' is no value of type int16"),
        ("hot=yes", r"'yes' is no value of type bool, .*\nexpected: true or false"),
        ("day=31.1.2024", r"is no value of type date32.*\nexpected: a date such as 2024-01-31"),
        ("seen=2024-01-31T10:00:00", r"is no value of type timestamp.*\nexpected: a time such as .*with its zone"),
        ("span=1", r"has type list<.*>, which is not compared with a value"),
        ("kindd=k", r"--where 'kindd': the nodes have no such column\nexpected: one of 'id', 'type', .*\n.*'kind'"),
        ("a=b=x", r"--where 'a': the nodes have no such column"),
    ],
)
def test_values_and_columns_that_are_refused(passing: Passing, pair: str, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        passing(where=(pair,))


@pytest.mark.parametrize(
    ("column", "expected"),
    [("path", "ab"), ("size", "abc"), ("span", "ad"), ("place", "a"), ("nothing", ""), ("a=b", "abc"), ("id", "abcde")],
)
def test_required_columns_have_content(passing: Passing, column: str, expected: str) -> None:
    assert passing(require=(column,)) == list(expected)


def test_globs_and_tests_of_nodes_without_a_path(passing: Passing) -> None:
    assert passing(include_glob=("path=**",)) == ["a", "b", "c"]
    assert passing(exclude_glob=("path=src/*",)) == ["b", "c", "d", "e"]
    assert passing(no_tests="path") == ["a", "c", "d", "e"]
    for filters in ({"include_glob": ("size=*",)}, {"no_tests": "size"}):
        with pytest.raises(InputDataError, match=r"'size': the column has type int16\nexpected: a column of texts"):
            passing(**filters)
    with pytest.raises(InputDataError, match=r"--include-glob path=\[z-a\]: a glob cannot be understood"):
        passing(include_glob=("path=[z-a]",))


def test_without_a_node_table_only_ids_can_be_filtered(tmp_path: Path) -> None:
    store = seedrank.build(pa.table({"src": ["a/x"], "dst": ["b"]}), out=tmp_path / "graph")
    assert filter_nodes(store) is None
    assert filter_nodes(store, include_glob=("id=a/*",)).tolist() == [True, False]  # type: ignore[union-attr]
    with pytest.raises(InputDataError, match=r"(?s)--where names the node attribute 'path'.*pass --nodes NODES"):
        filter_nodes(store, where=("path=x",))


def matched(glob: str, path: str) -> bool:
    """Whether Arrow finds that a glob matches a path."""
    return bool(pc.match_substring_regex(pa.array([path]), pattern=globs_pattern([glob]))[0].as_py())


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("*.py", ["a.py", ".py"], ["d/a.py", "a.pyc", "a.PY"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.pyc"]),
        ("src/**", ["src/a", "src/d/a"], ["src", "other/src/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("v?.[0-9]", ["v1.2"], ["v12.3", "v/.3", "v1.x"]),
        ("[!a-c]", ["d"], ["a", "/", ""]),
        ("[]^\\].x", ["].x", "^.x", "\\.x"], ["a.x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a b.(c)+", ["a b.(c)+"], ["a bx(c)"]),
        ("**", ["", "a", "a/b"], []),
        ("/x", ["/x"], ["x"]),
        ("ä?", ["äß"], ["ä"]),
    ],
)
def test_what_globs_match(glob: str, matches: list[str], others: list[str]) -> None:
    assert [matched(glob, path) for path in (*matches, *others)] == [True] * len(matches) + [False] * len(others)


@given(glob=st.text("ab/*?[]!-.", max_size=8), path=st.text("ab/]-.\n", max_size=8))
@example(glob="**/**", path="a")
@example(glob="a/**", path="a/")
def test_globs_match_as_the_reference_does(glob: str, path: str) -> None:
    if "[" not in glob or "]" not in glob:  # a slash in brackets is an end of a component here, and none there
        assert matched(glob, path) == reference_glob(path, glob)


@given(parts=st.lists(st.sampled_from(["**", "*", "a", "?b", "[!a]x", "a*"]), min_size=1, max_size=4), data=st.data())
def test_globs_of_whole_components_match_as_the_reference_does(parts: list[str], data: st.DataObject) -> None:
    path = "/".join(data.draw(st.lists(st.sampled_from(["a", "ab", "bx", "b"]), min_size=1, max_size=5)))
    assert matched("/".join(parts), path) == reference_glob(path, "/".join(parts))


TESTS = """
    tests/a.py a/test/B.java x/__tests__/y.js spec/models/u.rb conftest.py a/test_b.py a/b_test.go a/b.spec.ts
    src/XTest.java numpy/testing/u.py b.test.tsx c_spec.rb d_test.cc a/testdata/x.json pkg/e_test.rs
"""
NO_TESTS = """
    test latest/a.py src/contest.py src/attest.go testing.py a/spec.py src/Tester.java Tests/a.py src/test_a.c
    protest/a.py a/specs
"""


@pytest.mark.parametrize(("paths", "are_tests"), [(TESTS, True), (NO_TESTS, False)])
def test_which_paths_are_tests(paths: str, are_tests: bool) -> None:
    pattern = globs_pattern(TEST_GLOBS)
    for path in paths.split():
        assert pc.match_substring_regex(pa.array([path]), pattern=pattern)[0].as_py() is are_tests, path
        assert any(reference_glob(path, glob) for glob in TEST_GLOBS) is are_tests, path
