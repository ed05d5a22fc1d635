"""The planner of ``--method auto``: from what a query is like to what is run for it."""
