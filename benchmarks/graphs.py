"""The graphs that the benchmarks measure on, as one kind of object: directed, simple, without weights.

Duplicate edges and self loops are dropped and undirected edges are listed both ways before anybody sees the graph, so
that all programs compute on the same edges whatever they do with duplicates, loops or directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from generate import rmat_edges

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where public data sets lie when they are there; nothing of them is part of the repository."""

PUBLIC = {
    "soc-Slashdot0902": ("graphs/soc-Slashdot0902_edges.parquet", False),
    "cit-HepTh": ("graphs/cit-HepTh_edges.parquet", False),
    "wordnet30": ("wordnet30/edges.parquet", True),
    "graphrag_2wiki1000": ("graphrag_2wiki1000/edges.parquet", True),
}
"""Edge list, and whether it is taken as undirected."""

SEEDS_PER_QUERY = 5
RMAT_EDGE_FACTOR = 16
RANDOM_SEED = 42


@dataclass(frozen=True)
class SimpleGraph:
    """A directed graph on the nodes 0 … nodes - 1.

    Attributes
    ----------
    name : str
    nodes : int
    source, target : int32 (m)
        Sorted by source, then target; every pair once, no loops.
    undirected : bool
        Whether the edges were mirrored.
    """

    name: str
    nodes: int
    source: Int32Array
    target: Int32Array
    undirected: bool

    @property
    def edges(self) -> int:
        """Number of directed edges m."""
        return len(self.source)

    @property
    def out_degree(self) -> Int64Array:
        """int64 (n)."""
        return np.bincount(self.source, minlength=self.nodes)

    def facts(self) -> dict[str, Any]:
        """What a result names of its graph."""
        return {
            "name": self.name,
            "nodes": self.nodes,
            "edges": self.edges,
            "undirected": self.undirected,
            "dangling": int(np.count_nonzero(self.out_degree == 0)),
        }


def available_graphs(shared: Path) -> list[str]:
    """Names of the public graphs that are on this machine."""
    return [name for name, (file, _) in PUBLIC.items() if (shared / file).is_file()]


def load_graph(name: str, *, shared: Path, cache: Path | None) -> SimpleGraph:
    """Read a public graph, or generate ``rmatSCALE`` (16 edges a node, as Graph500 draws them).

    Parameters
    ----------
    name : str
        ``rmat17``, ``rmat20``, … or a key of `PUBLIC`.
    shared : Path
        Folder of the public data sets.
    cache : Path, optional
        Existing folder in which generated graphs are kept between runs.
    """
    if not name.startswith("rmat"):
        file, undirected = PUBLIC[name]
        table = pq.read_table(shared / file, columns=["src", "dst"])
        # Position among the sorted ids is what seedrank calls the tie rank.
        source_ids, target_ids = table["src"].combine_chunks(), table["dst"].combine_chunks()
        ids = pc.unique(pa.concat_arrays([source_ids, target_ids]))
        ids = ids.take(pc.sort_indices(ids))
        source, target = (pc.index_in(column, ids).to_numpy() for column in (source_ids, target_ids))
        return _simple(name, source, target, len(ids), undirected=undirected)
    stored = None if cache is None else cache / f"{name}.npz"
    scale = int(name.removeprefix("rmat"))
    if stored is not None and stored.is_file():
        with np.load(stored) as arrays:
            return SimpleGraph(name, 1 << scale, arrays["source"], arrays["target"], undirected=False)
    chunks = list(rmat_edges(scale, RMAT_EDGE_FACTOR << scale, RANDOM_SEED))
    graph = _simple(
        name,
        np.concatenate([source for source, _ in chunks]),
        np.concatenate([target for _, target in chunks]),
        1 << scale,
        undirected=False,
    )
    if stored is not None:
        np.savez(stored, source=graph.source, target=graph.target)
    return graph


def make_queries(graph: SimpleGraph, count: int) -> Int32Array:
    """Draw `count` seed sets: (count, 5) distinct nodes with out-edges, ascending in a row, all of weight 1/5."""
    generator = np.random.default_rng([RANDOM_SEED, 3])
    candidates = np.flatnonzero(graph.out_degree).astype(np.int32)
    rows = [np.sort(generator.choice(candidates, SEEDS_PER_QUERY, replace=False)) for _ in range(count)]
    return np.stack(rows)


def _simple(name: str, source: Int64Array, target: Int64Array, nodes: int, *, undirected: bool) -> SimpleGraph:
    keys = source.astype(np.int64) * nodes + target
    if undirected:
        keys = np.concatenate((keys, target.astype(np.int64) * nodes + source))
    keys = np.unique(keys)
    first, second = np.divmod(keys, nodes)
    no_loop = first != second
    return SimpleGraph(
        name, nodes, first[no_loop].astype(np.int32), second[no_loop].astype(np.int32), undirected=undirected
    )
