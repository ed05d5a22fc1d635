"""Which kernel walks and traversals run, and with which options: of the CPU, or its twin on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, ResourceError
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.resources import processors
from seedrank.kernels.recall.depth_first import depth_first
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.one_hop import one_hop
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph

Kernel = Callable[[RecallQueries, StopFlags], RecallResult]


def on_device(options: ScoreOptions) -> bool:
    """Whether a GPU computes: it was asked for, and the method has a kernel there."""
    return options.backend == "gpu" and options.method in ("walk", "bfs")


def recall_kernel(graph: RecallGraph, query_set: QuerySet, options: ScoreOptions) -> Kernel:
    """Return the kernel of the method with everything but the queries and their flags.

    Raises
    ------
    ResourceError
        A GPU was asked for, and its memory does not hold the graph.
    """
    common: dict[str, Any] = {
        "k": max(1, min(options.top_k, graph.nodes)),
        "eligible": query_set.eligible,
        "min_score": options.min_score,
        "precision": options.precision,
    }
    limits = RecallLimits(
        max_hops=options.max_hops,
        max_visited_nodes=options.max_visited_nodes,
        max_visited_edges=options.max_visited_edges,
    )
    kernel: Callable[..., RecallResult]
    device = on_device(options)
    if not device:
        common["threads"] = options.threads or processors()
    if options.method == "walk":
        common |= {
            "restart": options.restart_probability,
            "steps": options.walk_steps,
            "random_seed": options.random_seed,
            "limits": limits,
        }
        kernel = partial(_device_walk(graph) if device else partial(random_walk, build_walk_graph(graph)), **common)
    elif options.method == "neighbors":
        common |= {"hop_decay": options.hop_decay, "per_seed": options.neighbors_per_seed, "limits": limits}
        kernel = partial(one_hop, graph, **common)
    elif device:
        kernel = partial(_device_traversal(graph), hop_decay=options.hop_decay, max_hops=options.max_hops, **common)
    else:
        traversal = breadth_first if options.method == "bfs" else depth_first
        kernel = partial(traversal, graph, hop_decay=options.hop_decay, limits=limits, **common)
    return lambda queries, flags: kernel(queries, flags=flags)


def check_device_budget(options: ScoreOptions) -> None:
    """Refuse budgets of a traversal on a GPU.

    Raises
    ------
    ConfigError
        Naming the budget.
    """
    if not on_device(options) or options.method != "bfs":
        return
    for name in ("max_visited_nodes", "max_visited_edges"):
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is given with --method bfs on a GPU, but under a budget the nodes of a level take turns, one "
                "after the other",
                expected=f"--method bfs without a budget, or {flag} together with --backend cpu",
                fix=f"drop {flag} (--max-hops is fine), or use --backend cpu",
            )


def _device_walk(graph: RecallGraph) -> Callable[..., RecallResult]:
    from seedrank.kernels.recall.gpu_walk import random_walk_on_device  # noqa: PLC0415  # imports CuPy

    walk_graph = build_walk_graph(graph)
    return partial(random_walk_on_device, _uploaded(graph, walk_graph.cumulative))


def _device_traversal(graph: RecallGraph) -> Callable[..., RecallResult]:
    from seedrank.kernels.recall.gpu_traverse import breadth_first_on_device  # noqa: PLC0415  # imports CuPy

    return partial(breadth_first_on_device, _uploaded(graph, ()))


def _uploaded(graph: RecallGraph, cumulative: tuple[Any, ...]) -> Any:
    from seedrank.kernels._gpu.recall_graph import upload_recall_graph  # noqa: PLC0415  # imports CuPy

    try:
        return upload_recall_graph(graph, cumulative)
    except MemoryError as error:
        entries = sum(len(side.neighbors) for side in graph.rows)
        raise ResourceError(
            f"the graph of {graph.nodes:,} nodes and {entries:,} entries does not fit into the free memory of the GPU",
            expected="room for the whole graph, and for queries beside it",
            fix="end other processes on the GPU, take one with more memory, or use --backend cpu",
        ) from error
