"""Edges as one integer each, for lists that are sorted piece by piece because they do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Int32Array, Int64Array, UnsignedArray

KEY_BITS = 63
"""Bits that a packed edge may use: the non-negative part of int64."""


@dataclass(frozen=True)
class EdgeKeys:
    """How (row node, other node, type) is packed into int64, from the highest bits to the lowest.

    Keys compare as the triples do.

    Parameters
    ----------
    nodes : int
        Number of nodes, < 2**31.
    types : int
        Number of type codes; 1 for untyped edges.
    """

    nodes: int
    types: int

    @property
    def node_bits(self) -> int:
        """Bits of one node."""
        return max(self.nodes - 1, 1).bit_length()

    @property
    def type_bits(self) -> int:
        """Bits of the type."""
        return max(self.types - 1, 0).bit_length()

    @property
    def fits(self) -> bool:
        """Whether an edge of such a graph fits one integer."""
        return 2 * self.node_bits + self.type_bits <= KEY_BITS

    @property
    def row_shift(self) -> int:
        """Position of the lowest bit of the row node."""
        return self.node_bits + self.type_bits

    def pack(self, row: Int32Array, other: Int32Array, edge_type: Int32Array | UnsignedArray | None) -> Int64Array:
        """Keys of edges: int64 (m)."""
        key = row.astype(np.int64)
        key <<= self.node_bits
        key |= other
        key <<= self.type_bits
        if edge_type is not None:
            key |= edge_type
        return key

    def row(self, key: Int64Array) -> Int64Array:
        """Row nodes of keys: int64 (m)."""
        return key >> self.row_shift

    def other(self, key: Int64Array) -> Int32Array:
        """Other nodes of keys: int32 (m)."""
        other = key >> self.type_bits
        other &= (1 << self.node_bits) - 1
        return other.astype(np.int32)

    def edge_type(self, key: Int64Array) -> UnsignedArray:
        """Type codes of keys, in the smallest unsigned integers that hold all codes: (m)."""
        codes = key & ((1 << self.type_bits) - 1)
        return codes.astype(np.min_scalar_type(max(self.types - 1, 0)))

    def renamed(self, key: Int64Array, names: Int32Array) -> tuple[Int64Array, Int64Array]:
        """Give the nodes other numbers.

        Parameters
        ----------
        key : int64 (m)
        names : int32 (nodes)
            New number of each node.

        Returns
        -------
        int64 (m), int64 (m)
            Keys of the same edges, and of the same edges with row and other node exchanged.
        """
        row, other = names[self.row(key)], names[self.other(key)]
        code = key & ((1 << self.type_bits) - 1)
        forwards = (row.astype(np.int64) << self.node_bits | other) << self.type_bits | code
        backwards = (other.astype(np.int64) << self.node_bits | row) << self.type_bits | code
        return forwards, backwards
