"""The one dispatch table: what each method computes, which columns it fills, which options it uses.

A new method is a line here, a runner beside `seedrank.jobs.operators.ppr`, and its name in `seedrank.config.Method`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from seedrank.config import ScoreOptions
from seedrank.config.names import Fusion, Method
from seedrank.errors import ConfigError
from seedrank.io.candidates import FURTHER_COLUMNS, ScoreMeaning
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.graph_memory import STREAMING_BACKEND, refuse_streaming
from seedrank.jobs.operators.auto import auto_requirements, start_auto
from seedrank.jobs.operators.fuse import fuse_requirements, start_fuse
from seedrank.jobs.operators.fusion import FusingRunner, channel_options
from seedrank.jobs.operators.fusion_options import FUSION_OPTIONS, check_fusion_options
from seedrank.jobs.operators.groups import GroupingRunner
from seedrank.jobs.operators.hybrid import HYBRID_COMPONENTS, hybrid_depth, hybrid_requirements, start_hybrid
from seedrank.jobs.operators.outcome import Requirements, Runner
from seedrank.jobs.operators.ppr import PprRunner, ppr_requirements, start_ppr
from seedrank.jobs.operators.recall import recall_requirements, start_recall
from seedrank.jobs.operators.recall_kernels import check_device_budget
from seedrank.jobs.operators.reranking import RerankingRunner, deep_options
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet

#: Methods that rank the hits themselves, or groups of them: nothing is ranked around them.
_RANK_HITS = frozenset({"fuse", "auto"})
#: Columns that ``--paths`` adds, whatever the method.
PATH_COLUMNS = frozenset({"hops", "anchor_id", "path"})

#: Columns that ``--group-by`` adds, whatever the method.
GROUP_COLUMNS = frozenset({"group_id", "members"})


@dataclass(frozen=True)
class MethodEntry:
    """A method, as the job sees it.

    Attributes
    ----------
    meaning : what a score is, for the metadata of the result.
    needs_graph : whether there is nothing to compute without a graph; of hybrid, see `needs_graph`.
    options : the options that this method uses and some other does not; those of `FUSION_OPTIONS` left aside.
    candidate_columns : the columns that it adds to ``candidates``.
    backends : names of the backends that it can run on, besides ``auto``.
    requirements : (options, nodes) → who would compute, and how much a query takes.
    start : (store, queries, options, stopwatch, clock) → a runner, ready to score; ``queries`` waits for the query set,
        which is read meanwhile.
    """

    meaning: ScoreMeaning
    needs_graph: bool
    options: frozenset[str]
    candidate_columns: frozenset[str]
    backends: tuple[str, ...]
    requirements: Callable[[ScoreOptions, int], Requirements]
    start: Callable[[GraphStore, Callable[[], QuerySet], ScoreOptions, Stopwatch, Clock], Runner]


_GRAPH = frozenset(
    {"direction", "edge_type", "type_weight", "paths", "timeout_s", "fusion_depth", "fallback"} | {"seed_node_type"}
)
_BUDGET = frozenset({"max_visited_nodes", "max_visited_edges"})
#: Options that change no number of the result, or go into another one.
_NO_FACTS = frozenset({"damping", "preset", "paths", "timeout_s", "graph_memory", "hit_retriever_weight_column"})
#: Options that only a graph can answer, whatever the method.
_OF_GRAPHS = ("exclude_neighbors", "fallback_node_column")


def _recall(meaning: ScoreMeaning, *options: str, backends: tuple[str, ...] = ("cpu",)) -> MethodEntry:
    return MethodEntry(
        meaning=meaning,
        needs_graph=True,
        options=_GRAPH.union(_BUDGET, options),
        candidate_columns=frozenset({"hops", "anchor_id", "visit_count"}),
        backends=backends,
        requirements=recall_requirements,
        start=start_recall,
    )


_ALONE: Mapping[Method, MethodEntry] = {
    "ppr": MethodEntry(
        meaning=ScoreMeaning(
            "personalized PageRank of the node for the query's seeds", "probability; all nodes of a query sum to 1"
        ),
        needs_graph=True,
        options=_GRAPH
        | {"preset", "restart", "damping", "max_iterations", "tolerance", "stop", "dangling", "max_hops"}
        | {"source_normalization", "seed_source_weight", "seed_weighting", "graph_memory"},
        candidate_columns=frozenset(),
        backends=("cpu", "cugraph", "gpu", "scipy"),
        requirements=ppr_requirements,
        start=start_ppr,
    ),
    "walk": _recall(
        ScoreMeaning("share of the steps of the walk from the anchor that ended on the node", "visits / steps"),
        *("restart", "damping", "walk_steps", "random_seed", "max_hops"),
        backends=("cpu", "gpu"),
    ),
    "bfs": _recall(
        ScoreMeaning("hop decay to the power of the hops from the anchor", "1 at the anchor"),
        *("hop_decay", "max_hops"),
        backends=("cpu", "gpu"),
    ),
    "dfs": _recall(
        ScoreMeaning("hop decay to the power of the hops from the anchor", "1 at the anchor"), "hop_decay", "max_hops"
    ),
    "neighbors": _recall(
        ScoreMeaning("hop decay, as every candidate is one hop away", "1 at the anchor"),
        *("hop_decay", "neighbors_per_seed"),
    ),
    "fuse": MethodEntry(
        meaning=ScoreMeaning("fusion of the sources", "see the rule of the fusion"),
        needs_graph=False,
        options=frozenset(),
        candidate_columns=frozenset(),
        backends=("gpu",),
        requirements=fuse_requirements,
        start=start_fuse,
    ),
    "semantic": MethodEntry(
        meaning=ScoreMeaning("what the stores say of a hit, the largest of several", "as the weights of the hits"),
        needs_graph=False,
        options=frozenset({"hit_retriever_weight_column", "source_role"}),
        candidate_columns=frozenset(),
        backends=("gpu",),
        requirements=hybrid_requirements,
        start=start_hybrid,
    ),
    "hybrid": MethodEntry(
        meaning=ScoreMeaning(
            "what the stores say of a hit, and bonuses for its edges around the hits", "as the weights of the hits"
        ),
        needs_graph=True,
        options=frozenset({"hit_retriever_weight_column", "source_role", "direction", "edge_type", "type_weight"})
        | {"expand_depth", "include_expanded", "edge_bonus", "centrality_bonus"},
        candidate_columns=frozenset(),
        backends=("gpu",),
        requirements=hybrid_requirements,
        start=start_hybrid,
    ),
}


def _start_auto(
    store: GraphStore, queries: Callable[[], QuerySet], options: ScoreOptions, stopwatch: Stopwatch, clock: Clock
) -> Runner:
    return start_auto(store, queries, options, stopwatch, clock, start=start_method)


METHODS: Mapping[Method, MethodEntry] = {
    **_ALONE,
    "auto": MethodEntry(
        meaning=ScoreMeaning("score of the method that ran, see method and plan in queries", "that of the method"),
        needs_graph=False,
        options=frozenset({"budget", "source_role"}).union(*(entry.options for entry in _ALONE.values())) - {"stop"},
        candidate_columns=frozenset(),
        backends=_ALONE["ppr"].backends,
        requirements=auto_requirements,
        start=_start_auto,
    ),
}

#: What fused scores are, by rule.
FUSED: Mapping[Fusion, ScoreMeaning] = {
    "rrf": ScoreMeaning("reciprocal rank fusion of the lists that have the node", "sum of weight / (k + rank)"),
    "weighted": ScoreMeaning(
        "weighted fusion of the lists that have the node", "sum of weight * score, scaled to 0 … 1 in its list"
    ),
}


def start_method(
    store: GraphStore,
    queries: Callable[[], QuerySet],
    options: ScoreOptions,
    stopwatch: Stopwatch,
    clock: Clock,
    *,
    shared: dict[str, Runner] | None = None,
) -> Runner:
    """Start the method of the options, and what ranks around it: the fusion with hits, then the cosines of vectors.

    Parameters
    ----------
    store, queries, options, stopwatch, clock : as in `MethodEntry.start`.
    shared : runners of the job by method, under options that differ in the depth alone. PageRank is not loaded twice.
    """
    # A planner says of every plan whether it is ranked again.
    again = options.rerank != "none" and options.method != "auto"
    deep = deep_options(options) if again else options
    itself = options.method in _RANK_HITS
    wanted = deep if itself else channel_options(deep)
    there = None if shared is None else shared.get(options.method)
    if isinstance(there, PprRunner):
        channel: Runner = replace(there, query_set=queries(), options=wanted)
    else:
        channel = METHODS[options.method].start(store, queries, wanted, stopwatch, clock)
    if shared is not None:
        shared[options.method] = channel
    runner = channel
    if options.fuses_hits and not itself:
        runner = FusingRunner(channel.backend, channel, queries(), deep)
    elif options.group_by is not None and not itself:
        runner = GroupingRunner(channel, queries(), deep)
    return RerankingRunner(runner.backend, runner, queries(), options) if again else runner


def method_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes."""
    return METHODS[options.method].requirements(channel_options(deep_options(options)), nodes)


def check_method_options(options: ScoreOptions, graph: Any) -> None:
    """Refuse a missing graph, options that were given although nothing uses them, and values that do not go together.

    Raises
    ------
    ConfigError
        Naming the methods that would do.
    """
    entry = METHODS[options.method]
    if graph is None and needs_graph(options):
        raise ConfigError(
            f"no graph is given, but --method {options.method} needs one",
            expected="a graph store, or an edge list",
            fix="name it as the first argument; --method fuse and semantic rank the hits alone",
        )
    for name in _OF_GRAPHS if graph is None else ():
        if getattr(options, name):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is given without a graph", expected=f"{flag} together with a graph", fix=f"drop {flag}"
            )
    if options.group_by is not None and options.stop != "tolerance":
        raise ConfigError(
            f"--stop {options.stop} is given with --group-by: it proves which nodes are the best, not which groups",
            expected="one of the two",
            fix="drop one of the two",
        )
    check_fusion_options(options)
    if options.method == "auto" and options.min_score > 0:
        raise ConfigError(
            f"--min-score {options.min_score} is given with --method auto, whose plans have scores of different units",
            expected="no threshold",
            fix="drop it, or choose one --method",
        )
    for name in ScoreOptions.model_fields:
        users = [method for method, other in METHODS.items() if name in other.options]
        given = name in options.model_fields_set and getattr(options, name) is not None
        if given and users and name not in entry.options:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is given, but --method {options.method} does not use it",
                expected=f"{flag} together with --method {' or '.join(users)}",
                fix=f"drop {flag}, or choose another --method",
            )
    if options.method != "ppr" and len(options.restart_probabilities) > 1:
        raise ConfigError(
            f"{len(options.restart_probabilities)} restart probabilities are given with --method {options.method}",
            expected="one; --method ppr takes several",
            fix="give one --restart (or --damping), or score once for each",
        )
    # Workers on GPUs compute there.
    flag, backend = "--backend", options.backend
    if options.workers == "gpu" and backend == "auto":
        flag, backend = "--workers", "gpu"
    if backend not in ("auto", *entry.backends):
        raise ConfigError(
            f"{flag} {backend} does not have --method {options.method}",
            expected=f"--backend auto or {' or '.join(entry.backends)}",
            fix=f"drop {flag}, or choose another --method",
        )
    if options.graph_memory == "streamed" and options.backend not in ("auto", STREAMING_BACKEND):
        refuse_streaming(options.backend, options.backend)
    if options.backend == "cugraph":
        _check_cugraph_options(options)
    check_device_budget(options.model_copy(update={"backend": backend}))


def _check_cugraph_options(options: ScoreOptions) -> None:
    """Refuse what cuGraph's PageRank does not compute."""
    others = "--backend gpu, cpu or scipy"
    if options.dangling == "uniform":
        raise ConfigError(
            "--dangling uniform is given with --backend cugraph, which returns the mass of dangling nodes to the seeds",
            expected="--dangling seeds or self",
            fix=f"drop --dangling, or use {others}",
        )
    if len(options.restart_probabilities) > 1:
        raise ConfigError(
            f"{len(options.restart_probabilities)} restart probabilities are given with --backend cugraph",
            expected="one: only vectors of our own can be shared",
            fix=f"score once for each, or use {others}",
        )


def needs_graph(options: ScoreOptions) -> bool:
    """Whether there is nothing to compute without a graph."""
    if options.method == "hybrid":
        return hybrid_depth(options) > 0
    return METHODS[options.method].needs_graph


def component_names(options: ScoreOptions, query_set: QuerySet) -> tuple[str, ...]:
    """Name the terms of a score that have a column of their own."""
    methods = methods_that_run(options, query_set)
    of_lists = query_set.components if options.fusion != "none" else ()
    # A source may be called like a term of hybrid.
    return tuple(dict.fromkeys((*of_lists, *(HYBRID_COMPONENTS if "hybrid" in methods else ()))))


def methods_that_run(options: ScoreOptions, query_set: QuerySet) -> frozenset[Method]:
    """Name the methods whose columns the result has: of a planner, those of its plans and those that queries name."""
    if query_set.plans is None:
        return frozenset({options.method})
    return frozenset({"auto", *(job.options.method for job in query_set.plans.jobs)})


def candidate_columns(options: ScoreOptions, methods: Iterable[Method]) -> tuple[str, ...]:
    """Name the columns that follow ``score``, in the order of the schema, when these methods run."""
    filled = (PATH_COLUMNS if options.paths else frozenset()).union(
        *(METHODS[method].candidate_columns for method in methods)
    )
    filled |= GROUP_COLUMNS if options.group_by is not None else frozenset()
    filled |= {"cosine"} if options.rerank != "none" else frozenset()
    return tuple(name for name in FURTHER_COLUMNS if name in filled)


def score_meaning(options: ScoreOptions) -> ScoreMeaning:
    """Say what the column ``score`` holds."""
    if options.rerank != "none":
        meaning = _meaning(options)
        return ScoreMeaning(f"{meaning.description}; ranks are by the column cosine first", meaning.unit)
    return _meaning(options)


def _meaning(options: ScoreOptions) -> ScoreMeaning:
    if options.fusion != "none" and options.method != "auto":
        return FUSED[options.fusion]
    meaning = METHODS[options.method].meaning
    if options.fallback == "none" or options.method == "auto":
        return meaning
    return ScoreMeaning(
        f"{meaning.description}; of queries with status fallback_rrf {FUSED['rrf'].description}",
        f"{meaning.unit}; of fallback_rrf {FUSED['rrf'].unit}",
    )


def table_facts(options: ScoreOptions) -> dict[str, Any]:
    """Return the parameters that the metadata of both result tables names: those that make the numbers."""
    values = options.model_dump(mode="json")
    entry = METHODS[options.method]
    used = entry.options - _NO_FACTS - FUSION_OPTIONS
    if options.fuses_hits:
        used |= FUSION_OPTIONS if entry.needs_graph or options.method == "auto" else FUSION_OPTIONS - _GRAPH
    if options.rerank != "none":
        used |= {"rerank", "rerank_depth"}
    own = {name: values[name] for name in sorted(used)}
    if "restart" in own:
        several = options.restart_probabilities
        own["restart"] = list(several) if len(several) > 1 else several[0]
    always = ("method", "precision", "top_k", *(["group_by"] if options.group_by is not None else []))
    return {**{name: values[name] for name in always}, **own}
