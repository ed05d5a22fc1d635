"""The folder or prefix of a run: parts, ranges, locks, publication."""
