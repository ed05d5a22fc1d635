"""Tables of hits: layouts, values, order, fingerprints."""
