"""Which options of fusion go together, checked before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError

_Needs = tuple[Callable[[ScoreOptions], bool], str]

#: When an option of fusion is used, and by what.
_NEEDS: Mapping[str, _Needs] = {
    "source_weight": (lambda options: options.fuses_hits, "--fusion or --fallback rrf"),
    "rrf_k": (lambda options: options.ranks_reciprocally, "--fusion rrf or --fallback rrf"),
    "hit_rank_column": (lambda options: options.uses_ranks, "--fusion rrf, --fallback rrf or --seed-weighting rank"),
    "fusion_depth": (lambda options: options.fusion != "none", "--fusion"),
}

#: Options that change fused scores.
FUSION_OPTIONS = frozenset({"fusion", "fallback", "source_weight", "rrf_k", "fusion_depth", "lower_is_better"})


def check_fusion_options(options: ScoreOptions) -> None:
    """Refuse options of fusion that nothing uses, and values that contradict each other.

    Raises
    ------
    ConfigError
        Naming both sides.
    """
    for name, (used, by) in _NEEDS.items():
        if name in options.model_fields_set and not used(options):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is given, but nothing is fused",
                expected=f"{flag} together with {by}",
                fix=f"drop {flag}, or turn fusion on",
            )
    _check_hit_scores(options)
    _check_one_ranking(options)
    _check_distances(options)
    if options.fusion == "none" and options.min_score > 1 and not options.scores_hits:
        raise ConfigError(
            f"option 'min_score' has the value {options.min_score}, but --method {options.method} gives none above 1",
            expected="at most 1 without fusion",
            fix="lower --min-score",
        )


def _check_hit_scores(options: ScoreOptions) -> None:
    """Methods that rank hits by their own scores leave nothing to fuse, and take no distances."""
    if not options.scores_hits:
        return
    given = {
        "--fusion": options.fusion != "none",
        "--fallback": options.fallback != "none",
        "--lower-is-better": bool(options.lower_is_better),
        "--exclude-seeds": not options.include_seeds,
    }
    reasons = {
        "--fusion": "which ranks the hits by itself",
        "--fallback": "which ranks the hits by itself",
        "--lower-is-better": "whose scores are the weights of the hits: distances are none",
        "--exclude-seeds": "which ranks the hits themselves",
    }
    for flag in (name for name, there in given.items() if there):
        raise ConfigError(
            f"{flag} is given with --method {options.method}, {reasons[flag]}",
            expected="one of the two",
            fix=f"drop {flag}, or use --method fuse",
        )


def _check_one_ranking(options: ScoreOptions) -> None:
    asked = f"--fusion {options.fusion}" if options.fusion != "none" else "--fallback rrf"
    if options.method == "fuse" and options.fusion == "none":
        raise ConfigError(
            "--fusion none is given with --method fuse, which does nothing else",
            expected="rrf or weighted",
            fix="drop --fusion, or choose another --method",
        )
    if options.fusion != "none" and not options.include_seeds:
        raise ConfigError(
            f"--exclude-seeds is given with {asked}, which ranks the hits themselves",
            expected="one of the two",
            fix="drop one of the two",
        )
    if options.fuses_hits and len(options.restart_probabilities) > 1:
        raise ConfigError(
            f"{len(options.restart_probabilities)} restart probabilities are given with {asked}",
            expected="one: there is one ranking a query",
            fix="give one --restart (or --damping), or score once for each",
        )
    if options.fusion != "none" and options.stop != "tolerance":
        raise ConfigError(
            f"--stop top-k is given with {asked}: it proves which nodes are the best of the graph, not of the fusion",
            expected="one of the two",
            fix="drop one of the two",
        )


def _check_distances(options: ScoreOptions) -> None:
    """Distances are no personalization weights, unless a rule makes them so."""
    if options.seed_weighting in ("uniform", "rank"):
        return
    seeding = [name for name in options.lower_is_better if options.seed_source_weight.get(name) != 0]
    if options.method in ("ppr", "auto") and seeding and options.source_normalization != "minmax":
        raise ConfigError(
            f"--lower-is-better {seeding[0]} is given with --source-normalization {options.source_normalization}, "
            "which would give the worst hits the largest weight",
            expected="--source-normalization minmax, which turns distances into weights from 1 to 0, or "
            "--seed-weighting rank",
            fix=f"pass it, or leave the source out of the seeds: --seed-source-weight {seeding[0]}=0",
        )
