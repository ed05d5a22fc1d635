"""Everything that touches bytes: reading tables, the graph store, the run folder."""
