"""Properties of whole jobs, on drawn graphs and seed sets, through the public interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.keywords import ScoreKeywords
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import (
    reference_edges,
    reference_personalized_pagerank,
    reference_reachable,
)
from seedrank.testing.strategies import RandomGraph, graphs, seed_sets
from seedrank.testing.toys import Edge

# An example runs whole jobs with files, so there are few of them, without a deadline; in CI always the same ones.
settings.register_profile(
    "whole_jobs",
    max_examples=30,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
whole_jobs = settings.get_profile("whole_jobs")

Ranking = list[tuple[Any, float]]
Hit = tuple[int, Any, float, str]


@dataclass(frozen=True)
class Problem:
    """A graph with seed sets and the settings that define their scores."""

    graph: RandomGraph
    queries: tuple[dict[Any, float], ...]
    damping: float
    direction: Literal["out", "in", "both"]
    dangling: Literal["seeds", "self", "uniform"]

    def exact(self, seeds: Mapping[Any, float]) -> dict[Any, float]:
        """Scores by a dense solve."""
        return reference_personalized_pagerank(
            self.graph.edges,
            seeds,
            damping=self.damping,
            direction=self.direction,
            dangling=self.dangling,
            nodes=self.graph.nodes,
        )


@st.composite
def problems(draw: st.DrawFn, *, max_queries: int = 5, local: bool = False) -> Problem:
    """Draw a problem; ``local`` leaves out the dangling rule that reaches every node."""
    graph = draw(graphs())
    queries = draw(st.lists(seed_sets(graph), min_size=1, max_size=max_queries))
    return Problem(
        graph=graph,
        queries=tuple(queries),
        damping=draw(st.sampled_from([0.0, 0.15, 0.5, 0.85, 0.95])),
        direction=draw(st.sampled_from(["out", "in", "both"])),
        dangling=draw(st.sampled_from(["seeds", "self"] if local else ["seeds", "self", "uniform"])),
    )


@dataclass(frozen=True)
class Shuffled:
    """The same input twice: once as drawn, once in another order and cut into parts."""

    problem: Problem
    hits: list[Hit]
    other_edges: list[list[Edge]]
    other_hits: list[Hit]


@st.composite
def shuffled_problems(draw: st.DrawFn) -> Shuffled:
    problem = draw(problems(max_queries=1))
    hit = st.tuples(
        st.integers(0, 19),
        st.sampled_from(problem.graph.nodes),
        st.one_of(st.integers(0, 5).map(float), st.floats(0.01, 10.0)),
        st.sampled_from(["dense", "sparse"]),
    )
    hits = draw(st.lists(hit, min_size=1, max_size=60))
    edges = draw(st.permutations(problem.graph.edges))
    cuts = sorted(draw(st.lists(st.integers(0, len(edges)), max_size=3)))
    parts = [list(edges[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(edges)], strict=True)]
    return Shuffled(problem, hits, parts, draw(st.permutations(hits)))


def id_type(graph: RandomGraph) -> pa.DataType:
    if isinstance(graph.nodes[0], str):
        return pa.string()
    return pa.uint64() if graph.nodes[-1] >= 2**63 else pa.int64()


def edge_table(graph: RandomGraph, edges: Sequence[Edge]) -> pa.Table:
    width = len(graph.edges[0]) if graph.edges else 2
    types = [id_type(graph), id_type(graph), pa.float64(), pa.string()][:width]
    columns = [pa.array([edge[place] for edge in edges], kind) for place, kind in enumerate(types)]
    return pa.table(columns, names=["src", "dst", "weight", "type"][:width])


def node_table(graph: RandomGraph) -> pa.Table:
    return pa.table({"id": pa.array(graph.nodes, id_type(graph))})


def hit_table(graph: RandomGraph, hits: Sequence[Hit]) -> pa.Table:
    types = [pa.int64(), id_type(graph), pa.float64(), pa.string()]
    columns = [pa.array([hit[place] for hit in hits], kind) for place, kind in enumerate(types)]
    return pa.table(columns, names=["query_id", "node_id", "weight", "source"])


def score_queries(
    graph: RandomGraph, queries: Sequence[Mapping[Any, float]], **options: Unpack[ScoreKeywords]
) -> tuple[list[Ranking], list[dict[str, Any]]]:
    """Run one job over all queries; their rankings, best first, and the rows of the query table."""
    hits = [(query, node, weight, "seeds") for query, seeds in enumerate(queries) for node, weight in seeds.items()]
    keywords: ScoreKeywords = {
        "top_k": len(graph.nodes),
        "include_seeds": True,
        "precision": "float64",
        **options,
    }
    with TemporaryDirectory() as folder:
        run = seedrank.score(
            edge_table(graph, graph.edges),
            nodes=node_table(graph),
            queries=hit_table(graph, hits),
            out=Path(folder) / "run",
            **keywords,
        )
        candidates = run.candidates.to_arrow()
        rows = run.queries.to_arrow().to_pylist()
    rankings: list[Ranking] = [[] for _ in queries]
    columns = (candidates[name].to_pylist() for name in ("query_id", "node_id", "score"))
    for query, node, score in zip(*columns, strict=True):
        rankings[query].append((node, score))
    return rankings, rows


def part_files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("part-*.parquet"))}


@whole_jobs
@given(shuffled_problems(), st.sampled_from(["float32", "float64"]))
def test_order_parts_and_block_size_change_no_byte(
    shuffled: Shuffled, precision: Literal["float32", "float64"]
) -> None:
    problem, graph = shuffled.problem, shuffled.problem.graph
    score = partial(
        seedrank.score,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        precision=precision,
        tolerance=1e-4,
        top_k=3,
        part_size=12,
    )
    with TemporaryDirectory() as name:
        folder = Path(name)
        store = seedrank.build(edge_table(graph, graph.edges), nodes=node_table(graph), out=folder / "graph")
        for block_size in (1, 7, 64):
            score(store, queries=hit_table(graph, shuffled.hits), out=folder / str(block_size), block_size=block_size)
        for number, edges in enumerate(shuffled.other_edges):
            pq.write_table(edge_table(graph, edges), folder / f"edges-{number}.parquet")
        score(
            [folder / f"edges-{number}.parquet" for number in range(len(shuffled.other_edges))],
            nodes=node_table(graph).take(list(reversed(range(len(graph.nodes))))),
            queries=hit_table(graph, shuffled.other_hits),
            out=folder / "shuffled",
            block_size=7,
        )
        expected = part_files(folder / "64")
        assert {Path(path).parent.name for path in expected} == {"candidates", "queries"}
        for other in ("1", "7", "shuffled"):
            assert part_files(folder / other) == expected, other


@whole_jobs
@given(st.lists(st.floats(0.01, 100.0), min_size=6, max_size=9), st.data())
def test_order_of_parallel_edges_and_repeated_hits_changes_no_byte(weights: list[float], data: st.DataObject) -> None:
    """Sums of floats depend on their order; here every score depends on the last digit of two such sums."""
    graph = RandomGraph(edges=(("a", "b", 1.0), *(("a", "c", weight) for weight in weights)), nodes=("a", "b", "c"))
    hits: list[Hit] = [(0, "b", 1.0, "dense"), *((0, "a", weight, "dense") for weight in weights)]
    with TemporaryDirectory() as name:
        runs = []
        for number in range(3):
            edges = data.draw(st.permutations(graph.edges)) if number else graph.edges
            rows = data.draw(st.permutations(hits)) if number else hits
            run = seedrank.score(
                edge_table(graph, edges),
                queries=hit_table(graph, rows),
                out=Path(name) / str(number),
                precision="float64",
                include_seeds=True,
                tolerance=0.0,
                max_iterations=2,
            )
            runs.append(part_files(run.path))
        assert runs[0] == runs[1] == runs[2]


@whole_jobs
@given(problems(), st.data())
def test_relabelling_ids_changes_no_score(problem: Problem, data: st.DataObject) -> None:
    nodes = problem.graph.nodes
    new = dict(zip(nodes, data.draw(st.permutations(nodes)), strict=True))
    relabelled = RandomGraph(
        edges=tuple((new[source], new[target], *rest) for source, target, *rest in problem.graph.edges), nodes=nodes
    )
    # A fixed number of steps: rounding must not decide between stopping now and one step later.
    score = partial(
        score_queries,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        tolerance=0.0,
        max_iterations=25,
    )
    before, _ = score(problem.graph, problem.queries)
    after, _ = score(relabelled, [{new[node]: weight for node, weight in seeds.items()} for seeds in problem.queries])
    for old_ranking, new_ranking in zip(before, after, strict=True):
        assert_scores_close(dict(new_ranking), {new[node]: score for node, score in old_ranking}, 1e-12)


@whole_jobs
@given(
    problems(max_queries=3),
    st.lists(st.one_of(st.floats(1e-3, 1e3), st.sampled_from([1e-300, 1e300])), min_size=2, max_size=2),
    st.sampled_from(["sum", "none", "max"]),
)
def test_scaling_the_seed_weights_changes_nothing(
    problem: Problem, factors: list[float], normalization: Literal["sum", "none", "max"]
) -> None:
    scaled = [
        {node: weight * factor for node, weight in seeds.items()}
        for factor in [1.0, *factors]
        for seeds in problem.queries
    ]
    rankings, _ = score_queries(
        problem.graph,
        scaled,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        source_normalization=normalization,
        tolerance=0.0,
        max_iterations=25,
    )
    count = len(problem.queries)
    for place, ranking in enumerate(rankings[count:]):
        assert_scores_close(dict(ranking), dict(rankings[place % count]), 1e-12)


@whole_jobs
@given(
    problems(),
    st.sampled_from([0.0, 1e-12, 1e-6, 1e-2]),
    st.sampled_from([1, 4, 100]),
    st.sampled_from(["float32", "float64"]),
)
def test_the_error_never_exceeds_its_bound_and_mass_is_one(
    problem: Problem, tolerance: float, max_iterations: int, precision: Literal["float32", "float64"]
) -> None:
    rankings, rows = score_queries(
        problem.graph,
        problem.queries,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        precision=precision,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    for seeds, ranking, row in zip(problem.queries, rankings, rows, strict=True):
        exact, found = problem.exact(seeds), dict(ranking)
        assert found.keys() <= exact.keys()
        error = sum(abs(score - found.get(node, 0.0)) for node, score in exact.items())
        assert error <= row["error_bound"]
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12 if precision == "float64" else 1e-6)
        assert 1 <= row["iterations"] <= max_iterations
        if tolerance == 0.0:
            assert row["iterations"] == max_iterations
        # The bound is the truncation and four roundings: its own promise when it has converged.
        rounding = 4.0 * (2.0**-23 if precision == "float32" else 2.0**-52) / (1.0 - problem.damping)
        if tolerance > 0.0 and row["status"] == "ok":
            assert row["error_bound"] <= (tolerance + rounding) * (1 + 1e-12)
        elif tolerance > 0.0:
            assert row["status"] == "not_converged"
            assert row["iterations"] == max_iterations


@whole_jobs
@given(problems(), st.data())
def test_top_k_is_a_prefix_of_top_k_plus_one(problem: Problem, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(problem.graph.nodes)))
    score = partial(
        score_queries,
        problem.graph,
        problem.queries,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        precision="float32",
        include_seeds=data.draw(st.booleans()),
    )
    fewer, _ = score(top_k=k)
    more, _ = score(top_k=k + 1)
    for short, long in zip(fewer, more, strict=True):
        assert len(short) <= k
        assert short == long[:k]
        assert long == sorted(long, key=lambda candidate: (-candidate[1], candidate[0]))


@whole_jobs
@given(problems(local=True))
def test_unreachable_nodes_never_appear(problem: Problem) -> None:
    rankings, _ = score_queries(
        problem.graph,
        problem.queries,
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        tolerance=1e-13,
        max_iterations=1000,
    )
    for seeds, ranking in zip(problem.queries, rankings, strict=True):
        reachable = reference_reachable(problem.graph.edges, seeds, direction=problem.direction)
        found = {node for node, _ in ranking}
        assert seeds.keys() <= found <= reachable


@whole_jobs
@given(problems(max_queries=3, local=True))
def test_scores_mix_as_the_seeds_do(problem: Problem) -> None:
    """Unnormalised scores p are linear in the seeds, and π = p / Z.

    With d the mass of π on dangling nodes, π = α Pᵀ π + (λ + α d) s and p = α Pᵀ p + λ s, so Z = λ / (λ + α d):
    the share of single seeds in a mixture follows from their own results. Where no dangling node is reached, or
    dangling nodes keep their mass, Z is 1 and π itself is linear.
    """
    single = [{node: 1.0} for node in problem.graph.nodes]
    rankings, rows = score_queries(
        problem.graph,
        [*single, *problem.queries],
        damping=problem.damping,
        direction=problem.direction,
        dangling=problem.dangling,
        tolerance=1e-13,
        max_iterations=1000,
    )
    assert {row["status"] for row in rows} == {"ok"}
    alone = {node: dict(ranking) for node, ranking in zip(problem.graph.nodes, rankings, strict=False)}
    share = dict.fromkeys(alone, 1.0)
    if problem.dangling == "seeds":
        dangling = dangling_nodes(problem)
        restart = 1.0 - problem.damping
        for node, scores in alone.items():
            mass = sum(score for other, score in scores.items() if other in dangling)
            share[node] = restart / (restart + problem.damping * mass)
    for seeds, ranking in zip(problem.queries, rankings[len(single) :], strict=True):
        total = sum(weight * share[node] for node, weight in seeds.items())
        mixed: dict[Any, float] = {}
        for node, weight in seeds.items():
            for other, score in alone[node].items():
                mixed[other] = mixed.get(other, 0.0) + weight * share[node] / total * score
        assert_scores_close(dict(ranking), mixed, 1e-11)


def dangling_nodes(problem: Problem) -> set[Any]:
    """Nodes without an edge to follow."""
    pairs = [(source, target) for source, target, _ in reference_edges(problem.graph.edges)]
    followed = {source for source, _ in pairs} if problem.direction in ("out", "both") else set()
    if problem.direction in ("in", "both"):
        followed |= {target for _, target in pairs}
    return set(problem.graph.nodes) - followed
