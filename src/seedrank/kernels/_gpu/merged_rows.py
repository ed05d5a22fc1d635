"""The summands of a transition as one matrix, which is made piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.kernels._gpu.staging import HostArray
from seedrank.kernels.arrays import Float64Array, Int64Array
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import SparseRows, Transition


@dataclass(frozen=True)
class MergedRows:
    """A matrix whose rows have the entries of the first summand, then those of the next.

    Attributes
    ----------
    products : tuple of SparseRows
        The summands, one or more.
    inverse_out_weight : float64 (n)
        Value of an entry of summands without values, where others have them.
    offsets : int64 (n + 1)
        Bounds of the rows; may exceed 2**31.
    """

    products: tuple[SparseRows, ...]
    inverse_out_weight: Float64Array
    offsets: Int64Array

    @classmethod
    def of(cls, transition: Transition) -> MergedRows:
        """The matrix of a transition; its entries are not looked at."""
        first, *others = transition.products
        offsets: Int64Array = sum((other.offsets for other in others), start=np.asarray(first.offsets, dtype=np.int64))
        return cls(transition.products, transition.inverse_out_weight, offsets)

    @property
    def entries(self) -> int:
        """Number of entries."""
        return int(self.offsets[-1])

    @property
    def valued(self) -> bool:
        """Whether a summand has values; where none has, an entry is worth the factor of its column."""
        return any(product.probabilities is not None for product in self.products)

    def write_columns(self, first: int, last: int, into: HostArray) -> None:
        """Write the columns of the entries ``first … last - 1`` into an int32 array of that length."""
        for product, entries, places in self._parts(first, last):
            into[places] = product.columns[entries]

    def write_values(self, first: int, last: int, into: HostArray) -> None:
        """Write the values of these entries, rounded to the type of the array."""
        for product, entries, places in self._parts(first, last):
            values = product.probabilities
            into[places] = self.inverse_out_weight[product.columns[entries]] if values is None else values[entries]

    def _parts(self, first: int, last: int) -> Iterator[tuple[SparseRows, slice, slice | npt.NDArray[np.int64]]]:
        """By summand, which of its entries are among these, and where they stand among them."""
        if len(self.products) == 1:
            yield self.products[0], slice(first, last), slice(0, last - first)
            return
        # Rows that have some of these entries: of the first and the last one, a part may be outside.
        top = int(np.searchsorted(self.offsets, first, side="right")) - 1
        bottom = int(np.searchsorted(self.offsets, last, side="left"))
        begin = self.offsets[top:bottom].copy()
        for product in self.products:
            bounds = np.asarray(product.offsets[top : bottom + 1])
            lengths = np.diff(bounds)
            before, upto = np.clip(first - begin, 0, lengths), np.clip(last - begin, 0, lengths)
            counts = upto - before
            ends = offsets_of(counts)
            places = np.repeat(begin + before - first - ends[:-1], counts) + np.arange(ends[-1])
            start = int(bounds[0] + before[0])
            yield product, slice(start, start + int(ends[-1])), places
            begin += lengths
