"""How good rankings are on real questions and commits, configuration by configuration; the tables of docs/quality.md.

    python benchmarks/quality.py --data ../shared/data            # measures and rewrites docs/quality.md
    python benchmarks/quality.py --data ../shared/data --sets graphrag_hotpot_train100 --print

Every row is one `seedrank score` and one `seedrank evaluate`; nothing else is computed here. Data sets that are not
there are left out, and their tables in docs/quality.md stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import seedrank

PAGE = Path(__file__).resolve().parents[1] / "docs" / "quality.md"
RETRIEVAL_METRICS = {"R@2": "recall@2", "R@5": "recall@5", "R@10": "recall@10", "all@5": "all@5"}
CODE_METRICS = {"R@5": "recall@5", "R@10": "recall@10", "R@20": "recall@20", "all@10": "all@10"}
#: Metric here → its name in the baselines.
BASELINE_METRICS = {"all@5": "AllR@5", "all@10": "AllR@10"}
SHARE = "0.05"
HYBRID_EDGE_BONUSES = {
    "edge bonus .01": 0.01,
    "edge bonus .003": 0.003,
    "edge bonus .001": 0.001,
    "no edge bonus": 0.0,
}
WEIGHTED = "PPR .6, imports and contains x .1, tests x .5"
Options = dict[str, Any]


class Configuration(NamedTuple):
    """One row of a table: its name, the options of ``score``, and the baseline that it reproduces, if any."""

    name: str
    options: Options
    baseline: str | None = None


class DataSet(NamedTuple):
    """One table: what is measured on a folder of data, and how."""

    name: str
    title: str
    metrics: Mapping[str, str]
    configurations: tuple[Configuration, ...]


def _ppr(name: str, damping: float, *sources: str, baseline: str | None = None, **more: Any) -> Configuration:
    """PageRank from some sources, in both directions; dense passages are seeds with little weight, and may be found."""
    options: Options = {"damping": damping, "source": list(sources), "direction": "both", "include_seeds": True, **more}
    if "passage_dense" in sources and len(sources) > 1:
        options |= {"seed_source_weight": {"passage_dense": float(SHARE)}, "source_normalization": "max"}
    return Configuration(name, options, baseline)


def _or_dense(name: str, source: str, baseline: str) -> Configuration:
    """PageRank from one source; questions without a seed get the passages that the vectors found."""
    options: Options = {"seed_source_weight": {"dense": 0.0}, "fallback": "rrf"}
    return _ppr(name, 0.5, source, "dense", baseline=baseline, **options)


def _graphrag(*sources: str, titles: bool) -> tuple[Configuration, ...]:
    first = sources[0]
    title: Options = {"type_weight": {"title": 3.0}} if titles else {}
    title_name = ", title = 3" if titles else ""
    both = {"direction": "both"}
    seeds = {"source": [first], **both}
    fused: Options = {"fusion": "rrf", "seed_source_weight": {"dense": 0.0}, "source_weight": {first: 0.0}}
    roles = {"source": [first, "dense"], "source_role": {first: "sparse", "dense": "dense"}}
    return (
        Configuration("dense vectors alone", {"method": "semantic", "source": ["dense"]}, "dense MiniLM-L6"),
        *(_or_dense(f"PPR .5, {source}, else dense", source, f"PPR d=0.5 seeds={source} (idf)") for source in sources),
        _ppr("PPR .5, passage_dense", 0.5, "passage_dense"),
        *(
            _ppr(f"PPR .5, {source} + {SHARE} passage_dense", 0.5, source, "passage_dense", baseline=baseline)
            for source in sources
            for baseline in [f"PPR d=0.5 seeds={source}+{SHARE}*passage_dense"]
        ),
        _ppr(
            f"PPR .85, {first} + {SHARE} passage_dense",
            0.85,
            first,
            "passage_dense",
            baseline=f"PPR d=0.85 seeds={first}+{SHARE}*passage_dense",
        ),
        _ppr(f"PPR .85, {first}", 0.85, first),
        *([_ppr(f"PPR .85, {first}{title_name}", 0.85, first, **title)] if titles else []),
        _ppr(f"one step of PPR, {first}", 0.5, first, max_iterations=1, tolerance=0.0),
        Configuration(f"neighbors, {first}", {"method": "neighbors", **seeds}),
        Configuration(f"bfs to 3 hops, {first}", {"method": "bfs", "max_hops": 3, **seeds}),
        Configuration(f"walk of 10,000 steps, {first}", {"method": "walk", "walk_steps": 10_000, **seeds}),
        Configuration("hybrid, dense", {"method": "hybrid", "source": ["dense"], **both}),
        *(
            Configuration(
                f"hybrid, dense, {name}", {"method": "hybrid", "source": ["dense"], "edge_bonus": bonus, **both}
            )
            for name, bonus in HYBRID_EDGE_BONUSES.items()
        ),
        _ppr(f"RRF of dense and PPR .85, {first}{title_name}", 0.85, first, "dense", **title, **fused),
        Configuration(
            f"auto, damping .85, {first} and dense{title_name}",
            {"method": "auto", "damping": 0.85, **roles, **title, **both},
        ),
    )


def _code() -> tuple[Configuration, ...]:
    weights = {"co_changed": 1.0, "imports": 0.1, "tests": 0.5, "contains": 0.1}
    plain = {"direction": "both", "node_type": ["module", "test"]}
    structure = {"edge_type": ["imports", "tests", "contains"]}
    return (
        Configuration("PPR .5", {"damping": 0.5, **plain}, "PPR all edge types d=0.5"),
        Configuration("PPR .85", {"damping": 0.85, **plain}, "PPR all edge types d=0.85"),
        Configuration(
            "PPR .5, structure alone", {**plain, "damping": 0.5, **structure}, "PPR structure only (no history) d=0.5"
        ),
        Configuration(WEIGHTED, {"damping": 0.6, "type_weight": weights, **plain}),
    )


DATA_SETS = (
    DataSet(
        "graphrag_2wiki1000",
        "2WikiMultiHopQA, 1,000 questions, 6,119 passages",
        RETRIEVAL_METRICS,
        _graphrag("entity_string", "entity_ner_dense", titles=True),
    ),
    DataSet(
        "graphrag_musique_train100",
        "MuSiQue, 100 questions of the tuning set, 1,890 passages",
        RETRIEVAL_METRICS,
        _graphrag("fact_dense", "entity_ner_dense", "entity_string", titles=False),
    ),
    DataSet(
        "graphrag_hotpot_train100",
        "HotpotQA, 100 questions of the tuning set, 994 passages",
        RETRIEVAL_METRICS,
        _graphrag("entity_string", "entity_ner_dense", titles=True),
    ),
    DataSet("code_networkx", "networkx: which files a commit changes beside one", CODE_METRICS, _code()),
    DataSet("code_dask", "Dask: which files a commit changes beside one", CODE_METRICS, _code()),
)

#: Of arXiv:2405.14831, tables 2, 5 and 6, and arXiv:2502.14802; the same questions and passages of 2Wiki.
PUBLISHED = {
    "graphrag_2wiki1000": (
        ("BM25", 51.8, 61.9, None, None),
        ("Contriever", 46.6, 57.5, None, None),
        ("ColBERTv2", 59.2, 68.2, None, 37.1),
        ("HippoRAG (ColBERTv2), PPR .5", 70.7, 89.1, None, 75.7),
        ("HippoRAG, query nodes and neighbours", 53.4, 74.7, None, None),
        ("HippoRAG without node specificity", 70.1, 88.8, None, None),
        ("HippoRAG 2", None, 90.4, None, None),
    )
}


class Inputs(NamedTuple):
    """What all configurations of a data set read; ``info`` names every question, also those without a hit."""

    graph: seedrank.GraphStore
    hits: pa.Table
    info: pa.Table | None
    gold: pa.Table


def read_inputs(folder: Path, scratch: Path) -> Inputs:
    """Build the graph of a data set, and put its dense list beside its other sources."""
    graph = seedrank.build(folder / "edges.parquet", nodes=folder / "nodes.parquet", out=scratch / "graph")
    columns = ["query_id", "node_id", "weight", "source"]
    hits = pq.read_table(folder / "queries.parquet", columns=columns)
    if (folder / "dense_top100.parquet").is_file():
        dense = pq.read_table(folder / "dense_top100.parquet", columns=["query_id", "node_id", "score"])
        dense = dense.rename_columns({"score": "weight"}).append_column("source", pa.array(["dense"] * len(dense)))
        hits = pa.concat_tables([hits, dense.cast(hits.schema)])
    info = None
    if (folder / "questions.parquet").is_file():
        questions = pq.read_table(folder / "questions.parquet", columns=["query_id", "question"])
        info = questions.rename_columns({"question": "text"})
    return Inputs(graph, hits, info, pq.read_table(folder / "gold.parquet", columns=["query_id", "node_id"]))


def measure(inputs: Inputs, data_set: DataSet, configuration: Configuration, out: Path) -> dict[str, float]:
    """Score and evaluate one configuration; the metrics in percent."""
    options: Options = {"top_k": 20, **configuration.options}
    if data_set.metrics is RETRIEVAL_METRICS:
        options["node_type"] = ["passage"]
    hits = inputs.hits
    if "source" in options:
        hits = hits.filter(pc.is_in(hits["source"], pa.array(options["source"])))
    run = seedrank.score(inputs.graph, queries=hits, query_info=inputs.info, out=out, overwrite=True, **options)
    found = seedrank.evaluate(run.path, gold=inputs.gold, metrics=list(data_set.metrics.values()))
    return {name: 100.0 * found.metrics[label] for name, label in data_set.metrics.items()}


def measured(data: Path, names: Iterable[str]) -> Iterator[tuple[DataSet, dict[str, dict[str, float]]]]:
    """Measure every configuration of the named data sets that are there."""
    for data_set in DATA_SETS:
        if data_set.name not in names or not (data / data_set.name).is_dir():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            inputs = read_inputs(data / data_set.name, Path(scratch))
            rows = {}
            for configuration in data_set.configurations:
                rows[configuration.name] = measure(inputs, data_set, configuration, Path(scratch) / "run")
                print(data_set.name, configuration.name, rows[configuration.name], file=sys.stderr)
        yield data_set, rows


def table(data_set: DataSet, rows: Mapping[str, Mapping[str, float]], baselines: Mapping[str, Any]) -> str:
    """Return the Markdown table of a data set, with what plain SciPy and the papers have beside it."""
    header = ["configuration", *data_set.metrics, "baseline " + " / ".join(data_set.metrics)]
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for configuration in data_set.configurations:
        found = rows[configuration.name]
        best = baselines.get(configuration.baseline, {}) if configuration.baseline else {}
        known = " / ".join(
            f"{best[key]:.1f}" if (key := BASELINE_METRICS.get(name, name)) in best else "–" for name in found
        )
        cells = [configuration.name, *(f"{value:.1f}" for value in found.values()), known if best else "–"]
        lines.append("| " + " | ".join(cells) + " |")
    for name, *values in PUBLISHED.get(data_set.name, ()):
        cells = [f"*published:* {name}", *("–" if value is None else f"{value:.1f}" for value in values), "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _replaced(text: str, match: re.Match[str]) -> str:
    return f"{match[1]}{text}{match[2]}"


def main() -> None:
    """Measure, then rewrite the page, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets, with baselines.json")
    parser.add_argument("--sets", nargs="+", default=[one.name for one in DATA_SETS], help="data sets (default: all)")
    parser.add_argument("--print", action="store_true", dest="only_print", help="leave docs/quality.md alone")
    given = parser.parse_args()
    baselines = json.loads((given.data / "baselines.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for data_set, rows in measured(given.data, given.sets):
        text = table(data_set, rows, baselines.get(data_set.name, {}))
        print(f"{data_set.title}\n\n{text}")
        block = re.compile(rf"(<!-- measured: {data_set.name} -->\n).*?(<!-- end: {data_set.name} -->\n)", re.DOTALL)
        page = block.sub(partial(_replaced, text), page)
    if not given.only_print:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
