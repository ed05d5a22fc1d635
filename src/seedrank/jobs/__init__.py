"""What the commands do: orchestration of io and kernels."""
