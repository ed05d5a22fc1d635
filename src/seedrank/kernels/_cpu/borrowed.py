"""Arrays without reference counts, for kernels whose inner loops call other compiled functions."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _borrowed(_context: Any, value: Any) -> Any:
    """Type and code of `borrowed`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return value(value), generate


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()  # noqa: SLF001  # the name that Numba gives it
    if isinstance(kind, types.BaseTuple):
        elements: Any = kind
        for place, element in enumerate(elements):
            plain = _without_owner(context, builder, element, builder.extract_value(value, place))
            value = builder.insert_value(value, plain, place)
    return value


borrowed: Any = intrinsic(_borrowed)
"""The same arrays, alone or in (nested) tuples, without an owner; other values stay as they are.

Numba counts references to an array wherever it is handed on, with atomic operations. For small steps, and for arrays
that all threads share, that takes several times as long as the work (4 to 6 times in the traversals). Whoever borrows
makes sure that the owner stays: the arguments of a function live as long as its call.
"""
