"""seedrank: personalized PageRank for many weighted seed sets at once, from Parquet to Parquet.

Everything the command line does is one call here, with the same words. Names are loaded on first use, so that
``import seedrank`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from seedrank._version import __version__

if TYPE_CHECKING:
    from seedrank.io.graphstore import GraphStore
    from seedrank.jobs.build import build
    from seedrank.jobs.check import CheckReport, check
    from seedrank.jobs.demo import demo
    from seedrank.jobs.evaluate import Evaluation, evaluate
    from seedrank.jobs.explain import explain
    from seedrank.jobs.explanation import Explanation
    from seedrank.jobs.graphs.stores import open_graph
    from seedrank.jobs.info import info
    from seedrank.jobs.plan import Plan, plan
    from seedrank.jobs.ranker import Ranker, rerank
    from seedrank.jobs.results import Run, open_run
    from seedrank.jobs.score import score

_HOME = {
    "GraphStore": ("seedrank.io.graphstore", "GraphStore"),
    "open_graph": ("seedrank.jobs.graphs.stores", "open_graph"),
    "build": ("seedrank.jobs.build", "build"),
    "CheckReport": ("seedrank.jobs.check", "CheckReport"),
    "check": ("seedrank.jobs.check", "check"),
    "demo": ("seedrank.jobs.demo", "demo"),
    "Evaluation": ("seedrank.jobs.evaluate", "Evaluation"),
    "evaluate": ("seedrank.jobs.evaluate", "evaluate"),
    "Explanation": ("seedrank.jobs.explanation", "Explanation"),
    "explain": ("seedrank.jobs.explain", "explain"),
    "info": ("seedrank.jobs.info", "info"),
    "Plan": ("seedrank.jobs.plan", "Plan"),
    "plan": ("seedrank.jobs.plan", "plan"),
    "Ranker": ("seedrank.jobs.ranker", "Ranker"),
    "rerank": ("seedrank.jobs.ranker", "rerank"),
    "Run": ("seedrank.jobs.results", "Run"),
    "open_run": ("seedrank.jobs.results", "open_run"),
    "score": ("seedrank.jobs.score", "score"),
}

__all__ = [
    "CheckReport",
    "Evaluation",
    "Explanation",
    "GraphStore",
    "Plan",
    "Ranker",
    "Run",
    "__version__",
    "build",
    "check",
    "demo",
    "evaluate",
    "explain",
    "info",
    "open_graph",
    "open_run",
    "plan",
    "rerank",
    "score",
]


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'seedrank' has no attribute {name!r}") from None
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
