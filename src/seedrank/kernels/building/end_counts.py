"""What a build counts of distinct edges that come in sorted pieces: degrees, and nodes with an edge to themselves."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import Int64Array
from seedrank.kernels.building.edge_keys import EdgeKeys
from seedrank.kernels.runs import run_lengths, run_starts


class EndCounts:
    """Counts of the ends of edges; pieces are added in ascending order of their keys.

    Parameters
    ----------
    keys : EdgeKeys
        How edges are packed.

    Attributes
    ----------
    entries : int
        Distinct (source, target, type).
    out_degree, in_degree : int64 (nodes)
        Entries by source and by target.
    self_loops : int
        Nodes with at least one edge to themselves, of whatever type.
    """

    def __init__(self, keys: EdgeKeys) -> None:
        self._keys = keys
        self.entries = 0
        self.out_degree: Int64Array = np.zeros(keys.nodes, dtype=np.int64)
        self.in_degree: Int64Array = np.zeros(keys.nodes, dtype=np.int64)
        self.self_loops = 0
        self._last_loop = -1

    def add(self, key: Int64Array) -> None:
        """Count distinct edges, all behind those that were added before: int64 (m), m > 0, ascending."""
        row, other = self._keys.row(key), self._keys.other(key)
        starts = run_starts(row)
        self.entries += len(key)
        self.out_degree[row[starts]] += run_lengths(starts, len(row))
        np.add.at(self.in_degree, other, 1)
        loops = row[row == other]
        if len(loops):
            # Loops of several types are neighbours, perhaps in two pieces, and count once.
            self.self_loops += len(run_starts(loops)) - int(loops[0] == self._last_loop)
            self._last_loop = int(loops[-1])
