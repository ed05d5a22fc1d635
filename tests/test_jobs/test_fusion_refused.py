"""Options and names of fusion that are refused, each by what it contradicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError

Fuse = Callable[..., Any]
#: a → b → c → d, and x, which nothing leads to; the graph brings a, b, c, d from the seed a.
CHAIN = pa.table({"src": ["a", "b", "c", "x"], "dst": ["b", "c", "d", "a"]})


@pytest.mark.parametrize("rank", [0, -1, None, 1.5])
def test_ranks_that_are_none(fuse: Fuse, rank: Any) -> None:
    with pytest.raises(
        InputDataError, match=r"row 1 \(query_id='q', node_id='b', rank=.*no whole number|rank that is null"
    ):
        fuse([("a", 1.0), ("b", rank)], columns=("rank",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fusion": "none", "method": "fuse"}, "does nothing else"),
        ({"include_seeds": False, "method": "fuse"}, "--exclude-seeds is given with --fusion rrf"),
        ({"include_seeds": False, "fusion": "rrf"}, "--exclude-seeds is given with --fusion rrf"),
        ({"restart": (0.2, 0.5), "fusion": "rrf"}, "one ranking a query"),
        ({"restart": (0.2, 0.5), "fallback": "rrf"}, "one ranking a query"),
        ({"stop": "top-k", "fusion": "rrf"}, "--stop top-k is given with --fusion rrf"),
        ({"rrf_k": 2}, "--rrf-k is given, but nothing is fused"),
        ({"fusion_depth": 2, "fallback": "rrf"}, "--fusion-depth is given"),
        ({"source_weight": {"L1": 2}}, "--source-weight is given"),
        ({"hit_rank_column": "rank", "fusion": "weighted"}, "--hit-rank-column is given"),
        ({"fusion_depth": 2, "method": "fuse"}, "--method fuse does not use it"),
        ({"direction": "both", "method": "fuse"}, "--method fuse does not use it"),
        ({"backend": "cpu", "method": "fuse"}, "--backend cpu does not have --method fuse"),
        ({"preset": "hipporag", "method": "walk"}, "--preset is given"),
        ({"lower_is_better": ["L1"], "fusion": "rrf"}, "--source-normalization minmax"),
    ],
)
def test_options_that_do_not_go_together(fuse: Fuse, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fuse({"L1": "a"}, CHAIN, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_weight": {"L9": 1}}, "--source-weight 'L9': no hit has this source"),
        ({"source_weight": {"graph": 1}}, "--source-weight 'graph': no hit has this source"),
        ({"lower_is_better": ["L9"]}, "--lower-is-better 'L9': no hit has this source"),
    ],
)
def test_names_that_no_source_has(fuse: Fuse, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        fuse({"L1": "a"}, **options)


def test_names_that_are_taken(fuse: Fuse) -> None:
    with pytest.raises(InputDataError, match="a source is called 'graph'"):
        fuse({"graph": "a"}, CHAIN, fusion="rrf")
    assert fuse({"graph": "a"}).column("score_graph") == {"a": 1 / 61}
    with pytest.raises(InputDataError, match="some hits have no source"):
        fuse([("a", None, 1.0), ("b", "hits", 1.0)])
    assert fuse([("a", None, 1.0), ("b", "x.y", 1.0)]).run.candidates.schema.names[-2:] == [
        "score_x.y", "score_hits",
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{"fusion": "rrf"}, {"fallback": "rrf"}, {"method": "fuse"}])
def test_queries_of_all_nodes_have_no_hits_to_rank(tmp_path: Path, options: Any) -> None:
    with pytest.raises(ConfigError, match="ranks hits, but --all-nodes has none"):
        seedrank.score(CHAIN, all_nodes="page", out=tmp_path / "run", **options)


def test_without_a_graph_other_methods_and_graph_options_are_refused(fuse: Fuse) -> None:
    with pytest.raises(ConfigError, match="no graph is given, but --method ppr needs one"):
        fuse({"L1": "a"}, method="ppr")
    with pytest.raises(ConfigError, match="--src-column is given without a graph"):
        fuse({"L1": "a"}, src_column="from")
    with pytest.raises(ConfigError, match="--nodes is given without a graph"):
        fuse({"L1": "a"}, nodes=pa.table({"id": ["a"]}))
