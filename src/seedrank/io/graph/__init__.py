"""The files of a graph store, and its nodes' attributes."""
