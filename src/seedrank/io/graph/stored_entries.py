"""The entries of a graph store, read range by range, for graphs that memory does not hold."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seedrank.io.graph.array_file import ArrayFile
from seedrank.io.graph.soundness import refuse_unsound_entries, refuse_unsound_offsets
from seedrank.io.graphstore import GraphStore


class StoredEntries:
    """One CSR of a store: offsets in memory, entries read when asked for, checked as they come.

    Parameters
    ----------
    store : GraphStore
    side : which of the two.

    Attributes
    ----------
    offsets : int64 (nodes + 1)

    Raises
    ------
    InputDataError
        Offsets or lengths that no graph has.
    """

    def __init__(self, store: GraphStore, side: Literal["by_source", "by_destination"]) -> None:
        self._store, self._side = store, side
        self._files = {
            name: ArrayFile(store.path / f"{side}_{name}.npy")
            for name in ("neighbors", "weights", "types")
            if f"{side}_{name}.npy" in store.facts.files
        }
        offsets = ArrayFile(store.path / f"{side}_offsets.npy")
        self.offsets: npt.NDArray[np.int64] = offsets.read(0, len(offsets))
        lengths = {name: len(file) for name, file in self._files.items()}
        refuse_unsound_offsets(self.offsets, lengths, side, store=store.path, facts=store.facts)

    @property
    def weighted(self) -> bool:
        """Whether entries have weights."""
        return "weights" in self._files

    @property
    def typed(self) -> bool:
        """Whether entries have types."""
        return "types" in self._files

    def read(
        self, first: int, last: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64] | None, npt.NDArray[Any] | None]:
        """Read neighbors, weights and types of the entries ``first`` to ``last - 1``.

        Raises
        ------
        InputDataError
            A file ends before them, or they could not be of this graph.
        StorageError
            The system cannot read them.
        """
        found = {name: file.read(first, last) for name, file in self._files.items()}
        neighbors, types = found["neighbors"], found.get("types")
        refuse_unsound_entries(neighbors, types, self._side, store=self._store.path, facts=self._store.facts)
        return neighbors, found.get("weights"), types
