"""The queries of a job: from hits and exclusions to arrays, a segment at a time."""
