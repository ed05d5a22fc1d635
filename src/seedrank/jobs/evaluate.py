"""``evaluate``: how well the rankings of a run agree with the nodes that should have been found."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.ids import match_ids
from seedrank.io.queries import HitColumns, HitTable, read_hits
from seedrank.jobs.locations import check_output_apart, local_output
from seedrank.jobs.results import Run, open_run
from seedrank.jobs.small_table import write_small_table
from seedrank.kernels.ranking_metrics import METRICS, NEEDS_CUT, GoldRanks, ranking_metric

#: Metrics where none are named.
DEFAULT_METRICS = ("recall@2", "recall@5", "recall@10", "all@5", "ndcg@10", "mrr")
_METRIC = re.compile(r"(?P<name>[a-z]+)(?:@(?P<cut>[1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Quality:
    """Means over the evaluated queries: metric → value in 0 … 1; one for each restart probability of the run."""

    restart: float | None
    metrics: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """How good a run is.

    Attributes
    ----------
    queries : number of queries that the means are over: those of the run that have gold.
    queries_without_gold : queries of the run that have none, and are left out.
    gold_queries_not_in_run : queries of the gold that the run does not have, left out, too.
    gold : number of distinct (query, node) pairs that were looked for.
    results : the means; one, or one for each of several restart probabilities.
    per_query : table of the evaluated queries: query_id[, restart], gold, found, and a column for each metric.
    warnings : what makes the figures say less than they seem to.
    """

    queries: int
    queries_without_gold: int
    gold_queries_not_in_run: int
    gold: int
    results: list[Quality]
    per_query: pa.Table = field(repr=False)
    warnings: list[str] = field(default_factory=list)

    @property
    def metrics(self) -> dict[str, float]:
        """The means of a run with one restart probability, or those of its lowest."""
        return self.results[0].metrics

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain values, for JSON."""
        return {
            "queries": self.queries,
            "queries_without_gold": self.queries_without_gold,
            "gold_queries_not_in_run": self.gold_queries_not_in_run,
            "gold": self.gold,
            "results": [{"restart": one.restart, "metrics": one.metrics} for one in self.results],
            "warnings": self.warnings,
        }


class _Metric(NamedTuple):
    label: str
    name: str
    cut: int | None


class _Gold(NamedTuple):
    """The gold of the evaluated queries, g pairs sorted by (query, node).

    ``places`` are the positions of the evaluated queries among all queries of the gold table.
    """

    query_ids: pa.Array
    places: npt.NDArray[np.int64]
    node_ids: pa.Array
    query: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]
    gains: npt.NDArray[np.float64]


def evaluate(
    run: str | os.PathLike[str],
    *,
    gold: Any,
    metrics: Sequence[str] = DEFAULT_METRICS,
    per_query: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    query_column: str = "query_id",
    node_column: str = "node_id",
    relevance_column: str = "relevance",
) -> Evaluation:
    """Compare the candidates of a run with the nodes that should be among them.

    Queries without gold are left out of the means and counted.

    Parameters
    ----------
    run : path
        The run folder.
    gold : path, glob, URL, list of these, or any object with ``__arrow_c_stream__``
        Rows (query_id, node_id[, relevance]); a repeated pair counts once, with its highest relevance, and relevance 0
        is no gold.
    metrics : names of `seedrank.kernels.ranking_metrics.METRICS` with a cut, such as ``recall@5``; ``mrr``, ``map``
        and ``ndcg`` also without.
    per_query : path, optional
        Parquet file for the values of every query.
    overwrite : whether that file may exist already.
    query_column, node_column, relevance_column : columns of the gold.

    Raises
    ------
    ConfigError
        A metric that is not known; a file that exists already.
    InputDataError
        Not a run, bad gold, ids of another kind than the run's, or no query of the run has gold.
    """
    wanted = [_parsed(text) for text in metrics]
    opened = open_run(run)
    target = None if per_query is None else _target(per_query, opened, gold, overwrite=overwrite)
    columns = {"query_id": query_column, "node_id": node_column, "weight": relevance_column}
    defaults = {"query_id": "query_id", "node_id": "node_id", "weight": "relevance"}
    explicit = frozenset(role for role, name in columns.items() if name != defaults[role])
    table = read_hits(gold, HitColumns(**columns, explicit=explicit), what="gold")
    known = _query_ids(opened)
    judged = _judged(table, known, opened)
    ranks = _ranks(opened, judged)
    results, tables = [], []
    for restart, found in ranks.items():
        entries = GoldRanks(_offsets(judged), found, judged.gains)
        values = {metric.label: ranking_metric(entries, metric.name, metric.cut) for metric in wanted}
        results.append(Quality(restart, {name: float(column.mean()) for name, column in values.items()}))
        tables.append(_per_query(judged, entries, restart, values))
    evaluation = Evaluation(
        queries=len(judged.places),
        queries_without_gold=len(known) - len(judged.places),
        gold_queries_not_in_run=int((match_ids(table.query_ids, known) < 0).sum()),
        gold=len(judged.node),
        results=results,
        per_query=pa.concat_tables(tables),
        warnings=_warnings(opened, wanted),
    )
    if target is not None:
        write_small_table(target, evaluation.per_query)
    return evaluation


def _parsed(text: str) -> _Metric:
    match = _METRIC.fullmatch(text)
    if match is None or match["name"] not in METRICS or (match["cut"] is None and match["name"] in NEEDS_CUT):
        raise ConfigError(
            f"--metrics {text!r} is not a metric",
            expected=", ".join(f"{name}@K" if name in NEEDS_CUT else f"{name}[@K]" for name in METRICS),
            fix="for example --metrics recall@5,ndcg@10,mrr",
        )
    return _Metric(text, match["name"], None if match["cut"] is None else int(match["cut"]))


def _target(per_query: str | os.PathLike[str], run: Run, gold: Any, *, overwrite: bool) -> Path:
    path = local_output(per_query)
    check_output_apart(path, {"the run": run.path, "the gold": gold})
    if path.is_dir() or (path.exists() and not overwrite):
        raise ConfigError(
            f"--per-query {path} exists already",
            expected="a file that does not exist yet",
            fix="choose another name" + ("" if path.is_dir() else ", or pass --overwrite"),
        )
    return path


def _query_ids(run: Run) -> pa.Array:
    """Every query of the run, sorted, each once."""
    column = run.queries.to_arrow().column("query_id")
    return pa.chunked_array(column.chunks, column.type).unique()


def _judged(table: HitTable, known: pa.Array, run: Run) -> _Gold:
    """Keep the gold of the run's queries: distinct pairs of positive relevance, each with its highest."""
    place = "query_id of the gold", f"query_id of {run.path}"
    in_run = match_ids(table.query_ids, known, wanted_place=place[0], known_place=place[1]) >= 0
    kept = (table.node >= 0) & (table.weight > 0) & in_run[table.query]
    query, node, gain = table.query[kept].astype(np.int64), table.node[kept].astype(np.int64), table.weight[kept]
    order = np.lexsort((-gain, node, query))
    query, node, gain = query[order], node[order], gain[order]
    first = np.append(True, (query[1:] != query[:-1]) | (node[1:] != node[:-1]))[: len(query)]
    query, node, gain = query[first], node[first], gain[first]
    places, query = np.unique(query, return_inverse=True)
    if not len(places):
        raise InputDataError(
            f"no query of {run.path} has gold",
            expected="rows (query_id, node_id) of the run's queries",
            fix="check that the gold has the query ids of the run",
        )
    return _Gold(table.query_ids.take(pa.array(places)), places, table.node_ids, query, node, gain)


def _ranks(run: Run, gold: _Gold) -> dict[float | None, npt.NDArray[np.int64]]:
    """Best rank of every gold pair, 0 where the run does not have it, by restart probability."""
    nodes = max(len(gold.node_ids), 1)
    keys = gold.query * nodes + gold.node
    several = "restart" in run.candidates.schema.names
    best: dict[float | None, npt.NDArray[np.int64]] = {None: _none_found(keys)} if not several else {}
    for query, node, rank, restart in _candidates(run, gold, several=several):
        wanted = query.astype(np.int64) * nodes + node
        place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        hit = keys[place] == wanted
        for value in np.unique(restart) if several else (None,):
            mine = hit if value is None else hit & (restart == value)
            found = best.setdefault(None if value is None else float(value), _none_found(keys))
            np.minimum.at(found, place[mine], rank[mine])
    if several:
        # A restart probability under which no query has a candidate.
        for value in run.manifest.options["restart"].value:
            best.setdefault(float(value), _none_found(keys))
    missing = np.iinfo(np.int64).max
    in_order = sorted(best.items(), key=lambda item: item[0] or 0.0)
    return {value: np.where(ranks == missing, 0, ranks) for value, ranks in in_order}


def _none_found(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.full(len(keys), np.iinfo(np.int64).max)


def _candidates(run: Run, gold: _Gold, *, several: bool) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Evaluated query, gold node, rank and restart of the candidates that are gold for some query."""
    columns = ["query_id", "node_id", "rank", *(["restart"] if several else [])]
    for batch in run.candidates.batches(columns):
        query = match_ids(_plain(batch["query_id"]), gold.query_ids)
        node = match_ids(
            _plain(batch["node_id"]),
            gold.node_ids,
            wanted_place=f"node_id of {run.path}",
            known_place="node_id of the gold",
        )
        kept = (query >= 0) & (node >= 0)
        rank = batch["rank"].to_numpy()[kept].astype(np.int64)
        restart = batch["restart"].to_numpy()[kept] if several else rank
        yield query[kept], node[kept], rank, restart


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _offsets(gold: _Gold) -> npt.NDArray[np.int64]:
    return np.searchsorted(gold.query, np.arange(len(gold.places) + 1))


def _per_query(
    gold: _Gold, entries: GoldRanks, restart: float | None, values: dict[str, npt.NDArray[np.float64]]
) -> pa.Table:
    count = len(gold.places)
    columns: dict[str, Any] = {"query_id": gold.query_ids}
    if restart is not None:
        columns["restart"] = pa.repeat(pa.scalar(restart), count)
    columns["gold"] = np.diff(entries.offsets).astype(np.int32)
    columns["found"] = np.add.reduceat(entries.ranks > 0, entries.offsets[:-1], dtype=np.int32)
    return pa.table({**columns, **values})


def _warnings(run: Run, wanted: Sequence[_Metric]) -> list[str]:
    found = []
    manifest = run.manifest
    if manifest.state != "finished":
        found.append(f"the run is {manifest.state}: queries without a part are not evaluated")
    top_k = manifest.options["top_k"].value
    deeper = [metric.label for metric in wanted if metric.cut is not None and metric.cut > top_k]
    if deeper:
        found.append(f"the run has {top_k} candidates a query (--top-k), fewer than {', '.join(deeper)} looks at")
    failed = pc.sum(pc.equal(run.queries.to_arrow()["status"], "failed")).as_py()
    if failed:
        found.append(f"{failed} queries failed and count as having found nothing")
    return found
