"""The dispatch table against what it refers to: options, columns, names."""

from __future__ import annotations

from typing import get_args

import pytest

from seedrank.config import ScoreOptions, make_options
from seedrank.config.names import Method
from seedrank.io.candidates import FURTHER_COLUMNS
from seedrank.jobs.methods import METHODS, PATH_COLUMNS, candidate_columns, check_method_options, table_facts

#: Methods whose candidates are hits.
OF_HITS = ("fuse", "semantic", "hybrid")
PLAIN = ("ppr", "auto", *OF_HITS)


def test_every_method_of_the_options_has_an_entry() -> None:
    assert set(METHODS) == set(get_args(Method))


def test_options_of_the_table_exist_and_not_all_methods_share_them() -> None:
    named = frozenset[str]().union(*(entry.options for entry in METHODS.values()))
    assert named <= set(ScoreOptions.model_fields)
    assert [name for name in named if all(name in entry.options for entry in METHODS.values())] == []


def test_columns_of_the_table_exist() -> None:
    for entry in METHODS.values():
        assert entry.candidate_columns <= set(FURTHER_COLUMNS)
    assert set(FURTHER_COLUMNS) >= PATH_COLUMNS


@pytest.mark.parametrize("method", get_args(Method))
def test_columns_with_and_without_paths(method: Method) -> None:
    plain = make_options(ScoreOptions, {"method": method})
    expected = () if method in PLAIN else ("hops", "anchor_id", "visit_count")
    assert candidate_columns(plain, [method]) == expected
    assert set(candidate_columns(plain, [method, "bfs"])) == {"hops", "anchor_id", "visit_count"}
    if method in OF_HITS:
        return
    reranked = make_options(ScoreOptions, {"method": method, "rerank": "vectors"})
    assert candidate_columns(reranked, [method])[0] == FURTHER_COLUMNS[0]
    paths = make_options(ScoreOptions, {"method": method, "paths": True})
    assert candidate_columns(paths, [method]) == (
        *(name for name in FURTHER_COLUMNS[1:-2] if method not in PLAIN or name != "visit_count"),
    )
    grouped = make_options(ScoreOptions, {"method": method, "group_by": "file"})
    assert candidate_columns(grouped, [method])[-2:] == FURTHER_COLUMNS[-2:]


@pytest.mark.parametrize("method", get_args(Method))
def test_facts_name_what_makes_the_numbers(method: Method) -> None:
    options = make_options(ScoreOptions, {"method": method})
    check_method_options(options, "graph")
    facts = table_facts(options)
    fused = {"fusion", "fallback", "fusion_depth", "source_weight", "rrf_k", "lower_is_better"}
    silent = {"damping", "preset", "paths", "timeout_s", "graph_memory", "hit_retriever_weight_column"}
    assert set(facts) - fused == {"method", "precision", "top_k"} | METHODS[method].options - silent - fused
    of_fuse = {"fusion", "source_weight", "rrf_k", "lower_is_better"}
    assert set(facts) & fused == {"fuse": of_fuse, "auto": fused}.get(method, set())
    assert facts.get("restart") == {"ppr": 0.5, "walk": 0.2, "auto": 0.5}.get(method)
