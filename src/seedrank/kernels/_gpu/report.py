"""Column sums of a step on their way from the device."""

from __future__ import annotations

import weakref
from contextlib import suppress
from functools import cached_property

import cupy

from seedrank.kernels._gpu.device import DEVICE_ERRORS, device_errors
from seedrank.kernels._gpu.staging import HostArray, host_memory
from seedrank.kernels.arrays import Float64Array


class DeviceReport:
    """A `seedrank.kernels.backend.StepReport` that waits for its step when it is read first.

    The copy is started at once, behind the step, so it holds the sums of this step whatever is started after it.

    Parameters
    ----------
    sums : device float64 (3 · b)
        Mass, mass on dangling nodes and differences, once the kernels that were started have run.
    """

    def __init__(self, sums: cupy.ndarray) -> None:
        self._host = host_memory(sums.nbytes).view(sums.dtype)
        sums.get(out=self._host, blocking=False)
        self._copied = cupy.cuda.get_current_stream().record()
        # Where nobody reads the sums, CuPy would give the buffer to the next copy while this one is still on its way.
        weakref.finalize(self, _outlive, self._copied, self._host).atexit = False

    @cached_property
    def _sums(self) -> Float64Array:
        with device_errors():
            self._copied.synchronize()
        sums: Float64Array = self._host.reshape(3, -1)
        return sums

    @property
    def mass(self) -> Float64Array:
        """See `StepReport`."""
        mass: Float64Array = self._sums[0]
        return mass

    @property
    def dangling_mass(self) -> Float64Array:
        """See `StepReport`."""
        dangling_mass: Float64Array = self._sums[1]
        return dangling_mass

    @property
    def difference(self) -> Float64Array:
        """See `StepReport`."""
        difference: Float64Array = self._sums[2]
        return difference


def _outlive(copied: cupy.cuda.Event, _buffer: HostArray) -> None:
    """Hold a buffer until what is copied into it has arrived."""
    with suppress(*DEVICE_ERRORS):
        copied.synchronize()
