"""Every error that seedrank raises on purpose, each with its exit code.

A message always has three parts: what was *found*, what was *expected*, how to *fix* it. The command line prints
them without a traceback; Python callers catch the class or the built-in that it also is.
"""

from __future__ import annotations

from typing import ClassVar

from seedrank.redaction import redacted


class SeedrankError(Exception):
    """Base of all deliberate errors.

    Parameters
    ----------
    found : str
        What is wrong, with the file, column, row group or option named.
    expected : str
        What would have been right.
    fix : str
        What the reader can do about it.

    Credentials in any of them are hidden (`seedrank.redaction`).
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, found: str, *, expected: str = "", fix: str = "") -> None:
        # Messages name URLs and quote libraries: neither may carry a credential into a log or run.json.
        self.found, self.expected, self.fix = redacted(found), redacted(expected), redacted(fix)
        lines = [self.found]
        if expected:
            lines.append(f"expected: {self.expected}")
        if fix:
            lines.append(f"fix: {self.fix}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.found, self.expected, self.fix)


def _rebuild(kind: type[SeedrankError], found: str, expected: str, fix: str) -> SeedrankError:
    """Unpickle an error (worker processes send them home)."""
    return kind(found, expected=expected, fix=fix)


class ConfigError(SeedrankError, ValueError):
    """An option, a combination of options or a configuration file is wrong (exit code 2)."""

    exit_code = 2


class InputDataError(SeedrankError, ValueError):
    """The data of an input is wrong, or does not have what an option names (exit code 3)."""

    exit_code = 3


class ResourceError(SeedrankError, RuntimeError):
    """Something that was asked for is not there: a device, an extra, memory (exit code 4)."""

    exit_code = 4


class StorageError(SeedrankError, OSError):
    """Reading or writing failed for reasons outside the data (exit code 5)."""

    exit_code = 5

    def __str__(self) -> str:
        return Exception.__str__(self)


class IncompleteRunError(SeedrankError, RuntimeError):
    """The run finished, but some queries failed or ``strict`` was violated (exit code 6)."""

    exit_code = 6


class InterruptedRunError(SeedrankError, RuntimeError):
    """The run was ended from outside before it was finished (exit code 130, as for an interrupt from the keyboard)."""

    exit_code = 130


class Terminated(BaseException):
    """The process was asked to end (SIGTERM); like `KeyboardInterrupt` no error, so ``except Exception`` misses it."""


class KernelError(SeedrankError, ArithmeticError):
    """A numerical self-check failed; the result of the block is withheld (the queries become ``failed``)."""

    exit_code = 1


def is_thread_shortage(error: BaseException) -> bool:
    """Whether Python says that the machine has no room for another thread: a resource that is missing, and no bug."""
    return isinstance(error, RuntimeError) and str(error) == "can't start new thread"
