"""What a backend that streams a graph asks of the place where its entries wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from seedrank.kernels.arrays import Int32Array, ScoreArray


class SlabStore(Protocol):
    """Entries of a matrix, int32 columns and, where they carry them, values: written once, read in every pass."""

    def write(self, first: int, columns: Int32Array, values: ScoreArray | None) -> None:
        """Keep the entries from `first` on; every entry is written once, in any order."""
        ...

    def slabs(
        self, bounds: Sequence[tuple[int, int]], *, padding: int
    ) -> Iterator[tuple[Int32Array, ScoreArray | None]]:
        """Read ranges of entries, in the order given; each is good until the next is asked for.

        Parameters
        ----------
        bounds : sequence of (first, last)
        padding : int
            Columns that the arrays have beyond the range, with any content.
        """
        ...
