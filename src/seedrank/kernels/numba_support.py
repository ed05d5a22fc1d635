"""Whether compiled kernels can run here: Numba is a dependency, but some machines have none that works."""

from __future__ import annotations

from functools import cache

from seedrank.errors import ResourceError


@cache
def why_not_compiled() -> str | None:
    """Say why Numba cannot be imported, or return None where it can; imports it."""
    try:
        import numba  # noqa: F401, PLC0415  # half a second that not every call needs
    except ImportError as error:
        return f"numba cannot be imported: {error}"
    return None


def require_compiled(what: str) -> None:
    """Refuse what only compiled kernels do where there are none.

    Raises
    ------
    ResourceError
        With the reason.
    """
    reason = why_not_compiled()
    if reason is not None:
        raise ResourceError(
            f"{what} needs compiled kernels, and {reason}",
            expected="a Numba that works with this Python and NumPy; it is a dependency of seedrank",
            fix="pip install numba (or --force-reinstall it)",
        )
