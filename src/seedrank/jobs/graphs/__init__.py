"""The graph of a job: where it is, and whether memory holds it."""
