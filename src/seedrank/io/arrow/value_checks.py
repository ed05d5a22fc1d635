"""Whether the values of a column are what its type says: Arrow trusts that, and readers of files do not see to it."""

from __future__ import annotations

import pyarrow as pa

from seedrank.errors import InputDataError


def refuse_broken_values(array: pa.Array, place: str) -> None:
    """Refuse text that is not UTF-8, indices that leave their dictionary, offsets of lists that go backwards.

    Numbers of a fixed width can be anything, and are not looked at; the rest costs a small part of what encoding it
    costs (4 M short texts: 25 ms).

    Parameters
    ----------
    array : pyarrow.Array
        Rows of a column.
    place : str
        File and column, for messages.

    Raises
    ------
    InputDataError
        There are such values.
    """
    if pa.types.is_primitive(array.type) and not pa.types.is_boolean(array.type):
        return
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        raise InputDataError(
            f"{place} of type {array.type} holds values that this type does not allow ({error})",
            expected="text in UTF-8, and dictionaries that have every entry that rows point at",
            fix="the file is damaged, or bytes were written as text: write it again, text as UTF-8",
        ) from error
