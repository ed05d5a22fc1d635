"""Small graphs whose personalized PageRank is known as exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

NodeId = int | str
Edge = tuple[Any, ...]
"""(src, dst), (src, dst, weight) or (src, dst, weight, type)."""


@dataclass(frozen=True, kw_only=True)
class ToyGraph:
    """A graph, one seed set, the options and the answer.

    Attributes
    ----------
    name : str
        Name on the known-answer sheet.
    about : str
        What the graph looks like and what it catches.
    edges : tuple of tuples
        (src, dst), (src, dst, weight) or (src, dst, weight, type), all of one length.
    seeds : dict
        Node id → weight, not normalised.
    expected : dict
        Node id → exact score; nodes that have no score are absent.
    nodes : tuple
        Ids that exist without an edge.
    damping : float
        α = 1 - restart probability.
    direction : "out", "in" or "both"
    dangling : "seeds", "self" or "uniform"
    duplicate_edges : "sum", "max", "min" or "mean"
    type_weights : dict or None
        Edge type → factor; types that are not named count 1.
    """

    name: str
    about: str
    edges: tuple[Edge, ...]
    seeds: dict[NodeId, float]
    expected: dict[NodeId, Fraction]
    nodes: tuple[NodeId, ...] = ()
    damping: float = 0.85
    direction: Literal["out", "in", "both"] = "out"
    dangling: Literal["seeds", "self", "uniform"] = "seeds"
    duplicate_edges: Literal["sum", "max", "min", "mean"] = "sum"
    type_weights: dict[str, float] | None = None

    @property
    def restart(self) -> float:
        """Restart probability λ = 1 - damping."""
        return 1.0 - self.damping

    def edges_table(self) -> Any:
        """Edges as a ``pyarrow.Table``: src, dst and, where the toy has them, weight and type."""
        import pyarrow as pa  # noqa: PLC0415

        names = ("src", "dst", "weight", "type")
        columns = zip(*self.edges, strict=True)
        return pa.table({name: list(column) for name, column in zip(names, columns, strict=False)})


def _shares(**parts: int) -> dict[NodeId, Fraction]:
    """Scores in proportion to whole numbers."""
    total = sum(parts.values())
    return {name: Fraction(part, total) for name, part in parts.items()}


K1 = ToyGraph(
    name="K1",
    about="one edge 1→2, seed 1; node 2 is dangling and its mass returns to the seed",
    edges=((1, 2),),
    seeds={1: 1},
    expected={1: Fraction(20, 37), 2: Fraction(17, 37)},
)
K2 = ToyGraph(
    name="K2",
    about="A→B, B→C, B→D, seed A; two dangling nodes that tie",
    edges=(("A", "B"), ("B", "C"), ("B", "D")),
    seeds={"A": 1},
    expected={
        "A": Fraction(400, 1029),
        "B": Fraction(340, 1029),
        "C": Fraction(289, 2058),
        "D": Fraction(289, 2058),
    },
)
K3 = ToyGraph(
    name="K3",
    about="the graph of K2, seed C, which is dangling itself; nothing else is reached",
    edges=K2.edges,
    seeds={"C": 1},
    expected={"C": Fraction(1)},
)
K4 = ToyGraph(
    name="K4",
    about="chain 1→2→3→4, seed 1; scores are in proportion to powers of .85",
    edges=((1, 2), (2, 3), (3, 4)),
    seeds={1: 1},
    expected={
        1: Fraction(8000, 25493),
        2: Fraction(6800, 25493),
        3: Fraction(5780, 25493),
        4: Fraction(4913, 25493),
    },
)
K5 = ToyGraph(
    name="K5",
    about="cycle 1→2→3→1 with a loop 2→2, seed 1; a dropped loop shows",
    edges=((1, 2), (2, 3), (3, 1), (2, 2)),
    seeds={1: 1},
    expected={1: Fraction(460, 1429), 2: Fraction(680, 1429), 3: Fraction(289, 1429)},
)
K6 = ToyGraph(
    name="K6",
    about="a→b twice, a→c, b→a, c→a, seed a; the repeated edge weighs double",
    edges=(("a", "b"), ("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")),
    seeds={"a": 1},
    expected={"a": Fraction(20, 37), "b": Fraction(34, 111), "c": Fraction(17, 111)},
)
K7 = ToyGraph(
    name="K7",
    about="undirected path A-B-C-D, seeds A:3 and D:1",
    edges=(("A", "B"), ("B", "C"), ("C", "D")),
    seeds={"A": 3, "D": 1},
    expected={"A": Fraction(79, 180), "B": Fraction(23, 90), "C": Fraction(13, 90), "D": Fraction(29, 180)},
    damping=0.5,
    direction="both",
)
K8 = ToyGraph(
    name="K8",
    about="undirected cycle 0-1-2-3-0, seed 0; 1 and 3 tie",
    edges=((0, 1), (1, 2), (2, 3), (3, 0)),
    seeds={0: 1},
    expected={0: Fraction(7, 12), 1: Fraction(1, 6), 2: Fraction(1, 12), 3: Fraction(1, 6)},
    damping=0.5,
    direction="both",
)
K9 = ToyGraph(
    name="K9",
    about="undirected a-b, b-c with a loop b-b, seed a; the loop counts once (twice would be .55, .40, .05)",
    edges=(("a", "b"), ("b", "c"), ("b", "b")),
    seeds={"a": 1},
    expected=_shares(a=9, b=6, c=1),
    damping=0.5,
    direction="both",
)
K10 = ToyGraph(
    name="K10",
    about="cycle 1→2→3→1, seed 1",
    edges=((1, 2), (2, 3), (3, 1)),
    seeds={1: 1},
    expected={1: Fraction(4, 7), 2: Fraction(2, 7), 3: Fraction(1, 7)},
    damping=0.5,
)
K11 = ToyGraph(
    name="K11",
    about="the cycle of K10 at damping .85; damping taken for restart would give 1 → .852878",
    edges=K10.edges,
    seeds={1: 1},
    expected={1: Fraction(400, 1029), 2: Fraction(340, 1029), 3: Fraction(289, 1029)},
)
K12 = ToyGraph(
    name="K12",
    about="a⇄b weight 2 (follows), a⇄c weight .5 (likes), seed a",
    edges=(
        ("a", "b", 2.0, "follows"),
        ("b", "a", 2.0, "follows"),
        ("a", "c", 0.5, "likes"),
        ("c", "a", 0.5, "likes"),
    ),
    seeds={"a": 1},
    expected=_shares(a=10, b=4, c=1),
    damping=0.5,
)
K12_LIKES = ToyGraph(
    name="K12 likes",
    about="K12 with the type follows removed by type weight 0; b is left without an edge",
    edges=K12.edges,
    seeds={"a": 1},
    expected=_shares(a=2, c=1),
    damping=0.5,
    type_weights={"follows": 0.0},
)

TOYS: tuple[ToyGraph, ...] = (K1, K2, K3, K4, K5, K6, K7, K8, K9, K10, K11, K12, K12_LIKES)
