"""Errors of the driver's own interface."""


class CUDADriverError(RuntimeError):
    """As ``cupy.cuda.driver.CUDADriverError``."""
