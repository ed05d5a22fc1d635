"""The machines that do the arithmetic, and which one a run uses."""
