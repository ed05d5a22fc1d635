"""The life of a run: its parts, its key, what an earlier attempt left, what is recorded."""
