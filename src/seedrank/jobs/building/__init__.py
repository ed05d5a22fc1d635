"""What ``build`` does with an edge list, in memory or beside it."""
