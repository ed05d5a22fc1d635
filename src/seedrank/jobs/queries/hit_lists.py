"""Hits as ranked lists, one a source: what fusion and fallback rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.config.names import GRAPH_CHANNEL, ROLES_BY_NAME
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.queries import HitTable
from seedrank.kernels.fuse import RankedLists, largest_fused_score
from seedrank.kernels.runs import gather, offsets_of

#: What hits without a source are called, in options and columns.
UNNAMED_SOURCE = "hits"


@dataclass(frozen=True)
class HitLists:
    """The lists of all queries of a job.

    Attributes
    ----------
    names : of the L lists: the sources, then `GRAPH_CHANNEL` where the graph takes part in the fusion.
    entries : the hits of every query, those without a node left out. Their scores are the weights of the hits, times
        their retriever weights where the method has such, of which those below 0 count 0.
    weights, lower_is_better : float64 (L,), bool (L,).
    usable : bool (q,): a list of positive weight has something for the query.
    """

    names: tuple[str, ...]
    entries: RankedLists
    weights: npt.NDArray[np.float64]
    lower_is_better: npt.NDArray[np.bool_]
    usable: npt.NDArray[np.bool_]

    def of(self, queries: npt.NDArray[np.int64]) -> RankedLists:
        """Return the lists of some queries, in the order given."""
        entries = self.entries
        offsets, chosen = gather(entries.offsets, queries)
        return RankedLists(
            offsets=offsets,
            lists=entries.lists[chosen],
            nodes=entries.nodes[chosen],
            scores=entries.scores[chosen],
            ranks=None if entries.ranks is None else entries.ranks[chosen],
            returnable=entries.returnable[chosen],
        )


def source_names(names: Sequence[str | None], hits: str) -> tuple[str, ...]:
    """Return the names of sources as options and columns have them; a table without sources is one of them.

    ``hits`` is what messages call the hits.

    Raises
    ------
    InputDataError
        A source has the name of hits without a source, and there are such hits.
    """
    if not names:
        return (UNNAMED_SOURCE,)
    if None in names and UNNAMED_SOURCE in names:
        raise InputDataError(
            f"queries: some hits have no source and others the source {UNNAMED_SOURCE!r}, which is what the former "
            f"are called ({hits})",
            expected="another name, or a source in every row",
            fix="rename the source",
        )
    return tuple(UNNAMED_SOURCE if name is None else name for name in names)


def check_source_names(option: str, given: Sequence[str], known: Sequence[str], hits: str) -> None:
    """Refuse names in an option that no source has; ``hits`` is what messages call the hits.

    Raises
    ------
    InputDataError
        Naming the first one.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InputDataError(
            f"{option} {unknown[0]!r}: no hit has this source ({hits})",
            expected="one of " + ", ".join(map(repr, known[:20])),
            fix="correct the name",
        )


def build_hit_lists(
    hits: HitTable, nodes: npt.NDArray[np.int32], returnable: npt.NDArray[np.bool_], options: ScoreOptions
) -> HitLists:
    """Make lists of hits.

    Parameters
    ----------
    hits : h hits.
    nodes : int32 (h,), node of each hit in the space of the job; -1 without a node.
    returnable : bool (h,), whether the query may return the node.
    options : fusion, fallback and what belongs to them.

    Raises
    ------
    ConfigError
        All lists have weight 0; ``min_score`` is more than any fusion of them can give.
    InputDataError
        An option names a source that no hit has; a source has the name of the graph's channel.
    """
    names = source_names(hits.source_names, hits.name)
    if options.method != "fuse" and options.fusion != "none":
        if GRAPH_CHANNEL in names:
            raise InputDataError(
                f"queries: a source is called {GRAPH_CHANNEL!r} ({hits.name}), which is what the graph's own "
                "candidates are called",
                expected="another name",
                fix=f"rename the source, or leave it out (--source) if --method {options.method} finds the same",
            )
        names = (*names, GRAPH_CHANNEL)
    check_source_names("--source-weight", list(options.source_weight), names, hits.name)
    weights = np.array([options.source_weight.get(name, 1.0) for name in names], dtype=np.float64)
    _check_reach(names, weights, options)
    present = nodes >= 0
    if options.scores_hits:
        present = present & _semantic(hits, names, options)
    lists = np.zeros(len(nodes), np.int32) if hits.source is None else hits.source
    scores = hits.weight
    if hits.retriever_weight is not None:
        scores = scores * np.maximum(hits.retriever_weight, 0.0)
    offsets = offsets_of(np.bincount(hits.query[present], minlength=len(hits.query_ids)))
    heard = present & (weights[lists] > 0)
    return HitLists(
        names=names,
        entries=RankedLists(
            offsets=offsets,
            lists=lists[present],
            nodes=nodes[present],
            scores=scores[present],
            ranks=None if hits.rank is None else hits.rank[present],
            returnable=returnable[present],
        ),
        weights=weights,
        lower_is_better=np.array([name in options.lower_is_better for name in names], dtype=np.bool_),
        usable=np.bincount(hits.query[heard], minlength=len(hits.query_ids)) > 0,
    )


def _semantic(hits: HitTable, names: Sequence[str], options: ScoreOptions) -> npt.NDArray[np.bool_]:
    """Mask of the hits whose weights are semantic scores: those of dense sources, if a source is said to be one."""
    check_source_names("--source-role", list(options.source_role), names, hits.name)
    if "dense" not in options.source_role.values():
        return np.ones(len(hits.query), dtype=np.bool_)
    roles = [options.source_role.get(name, ROLES_BY_NAME.get(name)) for name in names]
    dense = np.array([role == "dense" for role in roles], dtype=np.bool_)
    return dense[np.zeros(len(hits.query), np.int32) if hits.source is None else hits.source]


def _check_reach(names: Sequence[str], weights: npt.NDArray[np.float64], options: ScoreOptions) -> None:
    """Refuse weights and a threshold under which no query could have a candidate."""
    if not weights.any():
        raise ConfigError(
            f"--source-weight is 0 for every source: {', '.join(names)}",
            expected="a positive weight for one of them",
            fix="raise a weight, or leave the option out",
        )
    if options.fusion == "none":
        return
    largest = largest_fused_score(rule=options.fusion, rrf_k=options.rrf_k, weights=weights)
    if options.min_score > largest:
        raise ConfigError(
            f"--min-score {options.min_score} is above {largest:.6g}, the score of a node that is first in every list",
            expected=f"at most {largest:.6g} with --fusion {options.fusion} of {', '.join(names)}",
            fix="lower --min-score: scores of fused lists are no probabilities or similarities",
        )
