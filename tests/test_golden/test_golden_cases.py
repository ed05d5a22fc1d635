"""Expected vectors copied from the tests of other PageRank implementations, each within its own stated tolerance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pytest

import seedrank
from seedrank.testing.parity import assert_scores_close

#: Project → names of its cases; all projects together are the file, which a test asserts.
CASES = {
    "networkx": (
        "nx_langville_meyer_a0.9",
        "nx_langville_meyer_dangling_vector",
        "nx_k4_personalized_1144",
        "nx_k4_single_seed",
        "nx_multigraph",
    ),
    "scikit-network": ("sknetwork_cycle5",),
    "fast-pagerank": (
        "fastpagerank_g1",
        "fastpagerank_g2",
        "fastpagerank_g3_single_edge",
        "fastpagerank_g4_no_edges",
    ),
    "igraph": (
        "igraph_test1",
        "igraph_test2",
        "igraph_star11",
        "igraph_star11_personalized_d0.5",
        "igraph_edgeless_personalized",
        "igraph_one_edge_two_isolated_personalized",
        "igraph_test3_weighted",
        "igraph_undirected_multigraph",
    ),
    "LDBC Graphalytics": (
        "ldbc_example_directed_2iter",
        "ldbc_example_undirected_2iter",
        "ldbc_pr_dir_50v",
        "ldbc_pr_undir_50v",
    ),
    "cuGraph": (
        "cugraph_capi_pagerank_a0.95",
        "cugraph_capi_pagerank_4",
        "cugraph_capi_pagerank_nonconv_2iter",
        "cugraph_capi_personalized_4",
        "cugraph_capi_personalized_1iter",
        "cugraph_karate",
        "cugraph_dolphins",
        "cugraph_simple_2",
    ),
    "LAGraph": (
        "lagraph_matlab_karate_rank",
        "lagraph_matlab_west0067_rank",
        "lagraph_matlab_ldbc_directed_example_rank",
    ),
    "gonum": ("gonum_wikipedia_example", "gonum_weighted"),
    "Memgraph MAGE": (
        "mage_cugraph_personalized_10_nodes",
        "mage_cugraph_personalized_15_nodes",
        "mage_cugraph_personalized_5_nodes",
        "mage_networkx_personalized_hub",
        "mage_networkx_hub",
        "mage_pagerank_chain",
        "mage_pagerank_influential_node",
        "mage_pagerank_influential_node_transfer",
    ),
    "NetworKit": ("networkit_weighted_undirected",),
    "JGraphT": ("jgrapht_wikipedia_undirected", "jgrapht_weighted_star", "jgrapht_star_plus_isolated"),
    "TopPPR": tuple(f"topppr_test_source{source}" for source in range(10)),
    "Spark GraphX": (
        "graphx_star100",
        "graphx_star100_seed0",
        "graphx_star100_seed1",
        "graphx_loop_with_source",
        "graphx_loop_with_sink",
        "graphx_loop_with_sink_seed1",
        "graphx_chain_large_ids_seed4",
    ),
    "Neo4j GDS": (
        "gds_wikipedia",
        "gds_wikipedia_sources_a_e",
        "gds_wikipedia_sources_k_b",
        "gds_wikipedia_weighted",
        "gds_doc_unweighted",
        "gds_doc_weighted",
        "gds_doc_damping0.05",
        "gds_doc_source_site_a",
    ),
}

_DROPPED = "the mass of dangling nodes is dropped and the result is a partial sum that is not normalised"

#: Cases whose own semantics this package does not offer; a test derives the same set from the cases' fields.
INEXPRESSIBLE = {
    "nx_langville_meyer_dangling_vector": "dangling nodes follow a vector of their own, other than the seeds",
    "cugraph_capi_personalized_1iter": "one step from the uniform vector, while ours starts at the seeds",
    **dict.fromkeys(CASES["Neo4j GDS"], _DROPPED),
}

NAMES = [name for names in CASES.values() for name in names]


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((shared_data / "golden" / "golden_cases.json").read_text(encoding="utf-8"))
    return {case["case"]: case for case in content["cases"]}


def is_inexpressible(case: Mapping[str, Any]) -> bool:
    """Whether the fields of a case ask for something other than steps of the recurrence from v⁰ = s, or its limit."""
    starts_at_seeds = case["start"] is None or (case["start"] == "uniform" and case["personalization"] is None)
    return case["dangling"] not in ("seeds", "uniform", "self") or case["scale"] != "sum1" or not starts_at_seeds


def test_every_case_of_the_file_is_listed(cases: dict[str, dict[str, Any]]) -> None:
    assert list(cases) == NAMES
    assert len(NAMES) == 72


def test_inexpressible_cases_are_exactly_those_that_the_rule_names(cases: dict[str, dict[str, Any]]) -> None:
    assert {name for name, case in cases.items() if is_inexpressible(case)} == set(INEXPRESSIBLE)


def check_case(case: Mapping[str, Any], folder: Path, *, backend: Literal["auto", "scipy"]) -> seedrank.Run:
    """Score a case in float64 and hold the scores against its expected vector, within its own tolerance."""
    assert case["parallel_edges"] == "sum"
    seeds = case["personalization"] or [(node, 1.0) for node in case["nodes"]]
    iterations = case["iterations"]
    graph = seedrank.build(
        pa.table(
            {
                "src": pa.array([edge[0] for edge in case["edges"]], pa.string()),
                "dst": pa.array([edge[1] for edge in case["edges"]], pa.string()),
                "weight": pa.array([edge[2] for edge in case["edges"]], pa.float64()),
            }
        ),
        nodes=pa.table({"id": pa.array(case["nodes"], pa.string())}),
        out=folder / "graph",
    )
    assert graph.facts.nodes == len(case["nodes"])
    run = seedrank.score(
        graph,
        queries=pa.table(
            {
                "query_id": [case["case"]] * len(seeds),
                "node_id": [node for node, _ in seeds],
                "weight": [weight for _, weight in seeds],
            }
        ),
        out=folder / "run",
        damping=case["alpha"],
        direction="out" if case["directed"] else "both",
        dangling=cast(Literal["seeds", "uniform"], case["dangling"]),
        tolerance=1e-12 if iterations is None else 0.0,
        max_iterations=10_000 if iterations is None else iterations,
        top_k=len(case["nodes"]),
        include_seeds=True,
        precision="float64",
        backend=backend,
    )
    (query,) = run.queries.to_arrow().to_pylist()
    assert query["status"] == "ok"
    assert iterations is None or query["iterations"] == iterations
    candidates = run.candidates.to_arrow()
    scores = dict(zip(candidates["node_id"].to_pylist(), candidates["score"].to_pylist(), strict=True))
    assert sum(scores.values()) == pytest.approx(1.0, abs=1e-9)
    # A node that the source does not list and one that our result omits both have score 0.
    assert_scores_close(scores, dict(case["expected"]), case["tolerance"])
    return run


EXPRESSIBLE = [name for name in NAMES if name not in INEXPRESSIBLE]


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_golden_case(name: str, cases: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    check_case(cases[name], tmp_path, backend="auto")


# Every third case: all dangling rules, directions, weights and fixed numbers of steps are among them.
@pytest.mark.parametrize("name", EXPRESSIBLE[::3])
def test_golden_case_on_the_reference_backend(name: str, cases: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    run = check_case(cases[name], tmp_path, backend="scipy")
    assert run.manifest.backend is not None
    assert run.manifest.backend.name == "scipy"


def test_cases_of_the_reference_backend_are_of_every_kind(cases: dict[str, dict[str, Any]]) -> None:
    chosen = [cases[name] for name in EXPRESSIBLE[::3]]
    assert {case["dangling"] for case in chosen} == {cases[name]["dangling"] for name in EXPRESSIBLE}
    assert {case["directed"] for case in chosen} == {True, False}
    assert {case["iterations"] is None for case in chosen} == {True, False}
    assert {case["personalization"] is None for case in chosen} == {True, False}
    assert {len({edge[2] for edge in case["edges"]}) > 1 for case in chosen} == {True, False}
