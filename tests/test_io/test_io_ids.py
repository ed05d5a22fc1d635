"""Ids of every type: exact, sorted, never converted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.errors import InputDataError
from seedrank.io import ids
from seedrank.io.edge_list import encoders
from seedrank.io.ids import IdEncoder, common_id_type, match_ids

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def integer_type(name: str) -> pa.DataType:
    return getattr(pa, name)()


def bounds(name: str) -> tuple[int, int]:
    information = np.iinfo(name)
    return int(information.min), int(information.max)


def encode(id_type: pa.DataType, *arrays: pa.Array) -> tuple[list[int], list[Any]]:
    encoder = IdEncoder(id_type)
    for array in arrays:
        encoder.append(array)
    (codes,), values = encoder.finish()
    assert codes.dtype == np.int32
    assert values.type == id_type
    return codes.tolist(), values.to_pylist()


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("as_dictionary", [False, True], ids=["plain", "dictionary"])
def test_every_integer_width_up_to_its_bounds(name: str, *, as_dictionary: bool) -> None:
    low, high = bounds(name)
    array = pa.array([high, 3, low, None, 3, high - 1], integer_type(name))
    array = array.dictionary_encode() if as_dictionary else array
    expected = sorted({low, 3, high - 1, high})
    codes, values = encode(integer_type(name), array, array.slice(2))
    assert values == expected
    assert codes == [3, 1, 0, -1, 1, 2, 0, -1, 1, 2]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_strings_of_every_layout(kind: str) -> None:
    texts = ["b", "", "é", None, "a\u0000", "b", "😀", "\uffff", "007", "7"]
    layout = pa.string() if kind == "dictionary" else getattr(pa, kind)()
    array = pa.array(texts, layout)
    array = array.dictionary_encode() if kind == "dictionary" else array
    id_type = pa.large_string() if kind == "large_string" else pa.string()
    codes, values = encode(id_type, array, array.slice(1, 3))
    # Code point order is Python's; UTF-16 order would put the emoji before U+FFFF.
    assert values == sorted({text for text in texts if text is not None})
    assert [None if code < 0 else values[code] for code in codes] == texts + texts[1:4]


def test_case_10_leading_zeros_keep_ids_apart() -> None:
    assert encode(pa.string(), pa.array(["007", "7"])) == ([0, 1], ["007", "7"])


@pytest.mark.parametrize(
    "values",
    [[2**53, 2**53 + 1, 2**53 + 2], [2**64 - 1, 2**64 - 2, 0], [2**63, 2**63 - 1, 2**63 + 1]],
    ids=["beyond-float", "uint64-max", "around-the-sign-bit"],
)
def test_large_integers_survive_bit_for_bit(values: list[int]) -> None:
    codes, found = encode(pa.uint64(), pa.array(values, pa.uint64()), pa.array(values[::-1], pa.uint64()))
    assert found == sorted(values)
    assert [found[code] for code in codes] == values + values[::-1]


def test_case_13_gaps_cost_nothing() -> None:
    far = [10**15 + 3, 10**15, -(10**18), 10**15 + 2**40]
    codes, values = encode(pa.int64(), pa.array(far), pa.array([5]))
    assert values == sorted([*far, 5])
    assert [values[code] for code in codes] == [*far, 5]


def test_unused_and_repeated_dictionary_entries_are_no_ids() -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([1, 4, None, 3, 0], pa.int8()), pa.array(["x", "b", "ghost", None, "x"])
    )
    assert encode(pa.string(), array) == ([0, 1, -1, -1, 1], ["b", "x"])


def test_dictionaries_that_differ_from_batch_to_batch() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.uint16()), pa.array(["m", "a"], pa.large_string()))
    second = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int64()), pa.array(["a", "z"]))
    assert encode(pa.large_string(), first, second, pa.array(["k"])) == ([2, 0, 2, 3, 0, 1], ["a", "k", "m", "z"])


def test_columns_share_numbers_and_included_ids_have_no_rows() -> None:
    encoder = IdEncoder(pa.int64(), columns=2)
    encoder.include(pa.array([50, 2]), pa.array([7]))
    encoder.append(pa.array([9, 2]), pa.array([2, 1]))
    encoder.append(pa.array([1]), pa.array([50]))
    (source, target), values = encoder.finish()
    assert values.to_pylist() == [1, 2, 7, 9, 50]
    assert (source.tolist(), target.tolist()) == ([3, 1, 0], [1, 0, 4])


def test_id_out_of_reach_after_batches_of_near_ones() -> None:
    """The change from distances to hashes keeps rows, columns and included ids."""
    encoder = IdEncoder(pa.int64(), columns=2)
    encoder.append(pa.array([3, None]), pa.array([], pa.int64()))
    encoder.include(pa.array([4]))
    encoder.append(pa.array([], pa.int64()), pa.array([2, 3]))
    encoder.append(pa.array([2**53 + 1]), pa.array([-(2**60), 3]))
    encoder.include(pa.array([2**53]))
    (source, target), values = encoder.finish()
    assert values.to_pylist() == [-(2**60), 2, 3, 4, 2**53, 2**53 + 1]
    assert (source.tolist(), target.tolist()) == ([2, -1, 5], [1, 2, 0, 2])


def test_nothing_appended() -> None:
    for id_type in (pa.int64(), pa.string(), pa.uint8()):
        assert encode(id_type) == ([], [])
        assert encode(id_type, pa.array([], id_type), pa.nulls(2)) == ([-1, -1], [])


texts = st.text(max_size=3)
numbers = st.one_of(
    st.integers(0, 20), st.integers(-(2**63), 2**63 - 1), st.integers(2**31 - 3, 2**31 + 3), st.integers(-4, 0)
)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), batches=st.integers(0, 6))
@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize("merge_entries", [1, 1 << 22], ids=["merge-always", "merge-once"])
def test_encoding_equals_sorted_distinct(kind: str, merge_entries: int, data: st.DataObject, batches: int) -> None:
    """Against ``sorted(set(...))``, with dictionaries in between, merged at every batch or at the end."""
    id_type = pa.int64() if kind == "int64" else pa.string()
    element = st.one_of(st.none(), numbers if kind == "int64" else texts)
    rows = [data.draw(st.lists(element, max_size=6)) for _ in range(batches)]
    arrays = [pa.array(row, id_type) for row in rows]
    arrays = [array.dictionary_encode() if data.draw(st.booleans()) else array for array in arrays]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "MERGE_ENTRIES", merge_entries)
        patch.setattr(encoders, "TABLE_ENTRIES", data.draw(st.sampled_from([0, 1 << 10])))
        codes, values = encode(id_type, *arrays)
    flat: list[Any] = [value for row in rows for value in row]
    assert values == sorted({value for value in flat if value is not None})
    assert [None if code < 0 else values[code] for code in codes] == flat


def test_case_54_more_ids_than_int32_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "MAX_IDS", 2)
    with pytest.raises(InputDataError, match="3 distinct values"):
        encode(pa.int64(), pa.array([1, 2, 3]))


def test_bytes_that_are_not_utf8_are_refused() -> None:
    broken = pa.array([b"\xff\xfe"]).cast(pa.binary()).view(pa.string())
    with pytest.raises(InputDataError, match="UTF-8"):
        encode(pa.string(), broken)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([], pa.int64()),
        ([pa.int8(), pa.int16()], pa.int16()),
        ([pa.uint8(), pa.uint64()], pa.uint64()),
        ([pa.uint32(), pa.int64()], pa.int64()),
        ([pa.uint32(), pa.int8()], pa.int64()),
        ([pa.uint8(), pa.int8()], pa.int16()),
        ([pa.null(), pa.int32()], pa.int32()),
        ([pa.string(), pa.string_view()], pa.string()),
        ([pa.string_view(), pa.large_string()], pa.large_string()),
        ([pa.dictionary(pa.int8(), pa.string()), pa.string()], pa.string()),
        ([pa.dictionary(pa.int8(), pa.uint16()), pa.uint8()], pa.uint16()),
    ],
    ids=str,
)
def test_common_type(types: list[pa.DataType], expected: pa.DataType) -> None:
    for order in (types, types[::-1]):
        assert common_id_type([(entry, "somewhere") for entry in order]) == expected


def test_case_10_integer_against_string_names_both_places() -> None:
    with pytest.raises(InputDataError, match=r"a\.parquet.*int64.*b\.parquet.*string") as caught:
        common_id_type([(pa.int64(), "a.parquet, column 'src'"), (pa.string(), "b.parquet, column 'src'")])
    assert "nothing is converted silently" in str(caught.value)


def test_uint64_against_signed_is_refused() -> None:
    with pytest.raises(InputDataError, match=r"b has int8 ids, a has uint64 ids"):
        common_id_type([(pa.uint64(), "a"), (pa.int8(), "b")])


@pytest.mark.parametrize(
    "refused",
    [pa.float64(), pa.bool_(), pa.binary(), pa.timestamp("s"), pa.decimal128(5, 0), pa.list_(pa.int64())],
    ids=str,
)
def test_types_that_are_no_ids(refused: pa.DataType) -> None:
    with pytest.raises(InputDataError, match=r"somewhere has type .* cannot be an id"):
        common_id_type([(refused, "somewhere")])


@pytest.mark.parametrize("wanted_name", INTEGERS)
@pytest.mark.parametrize("known_name", INTEGERS)
def test_match_by_value_across_widths(wanted_name: str, known_name: str) -> None:
    wanted = sorted({*bounds(wanted_name), 0, 5})
    known = sorted({*bounds(known_name), 0, 7})
    found = match_ids(pa.array([*wanted, None], integer_type(wanted_name)), pa.array(known, integer_type(known_name)))
    assert found.dtype == np.int32
    assert found.tolist() == [known.index(value) if value in known else -1 for value in wanted] + [-1]


def test_match_beyond_float_precision() -> None:
    known = pa.array([2**53, 2**53 + 2], pa.int64())
    assert match_ids(pa.array([2**53 + 1, 2**53 + 2], pa.uint64()), known).tolist() == [-1, 1]


def test_match_strings_of_all_layouts() -> None:
    layouts = [pa.string(), pa.large_string(), pa.string_view()]
    for wanted_type, known_type in [*pairwise(layouts), *pairwise(layouts[::-1])]:
        known = pa.array(["007", "7"], known_type)
        assert match_ids(pa.array(["7", "07", None, "007"], wanted_type), known).tolist() == [1, -1, -1, 0]


def test_case_10_match_of_integer_and_string_is_an_error_not_all_missing() -> None:
    with pytest.raises(InputDataError, match=r"the hits has string ids, the graph has int64 ids"):
        match_ids(pa.array(["1"]), pa.array([1]), wanted_place="the hits", known_place="the graph")


def test_match_nothing() -> None:
    assert match_ids(pa.nulls(2), pa.array([1])).tolist() == [-1, -1]
    assert match_ids(pa.array([1]), pa.array([], pa.int64())).tolist() == [-1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_few_strings_among_many_are_found_as_many_are(kind: pa.DataType) -> None:
    known = pa.array(sorted([f"k{2 * i}" for i in range(2000)] + ["", "é", "😀", "\uffff"]))
    few = pa.array(["k10", None, "k11", "", "z", "😀", "k10", "\uffff\uffff", "é"], kind)
    many = pa.concat_arrays([few.cast(pa.string())] * 300)
    found = match_ids(few, known)
    assert found.tolist() == match_ids(many, known).tolist()[: len(few)]
    assert [known[i].as_py() if i >= 0 else None for i in found] == [
        "k10", None, None, "", None, "😀", "k10", None, "é",
    ]  # fmt: skip
    assert match_ids(few, known.slice(0, 0)).tolist() == [-1] * len(few)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()])
def test_few_integers_among_many_are_found_as_many_are(kind: pa.DataType) -> None:
    """Bisection and hash table agree: unknown below, between and above, null, repeats, the last digit at 2^53."""
    first = 2**53 - 40
    known = pa.array([first + 2 * i for i in range(500)], pa.uint64() if kind == pa.uint64() else pa.int64())
    wanted: list[int | None] = (
        [3, None, 3] if kind == pa.int8() else [first + 41, first + 40, None, first + 998, first - 1]
    )
    if kind != pa.int8():
        wanted += [first + 1000, first]
    few, many = pa.array(wanted, kind), pa.array(wanted * 200, kind)
    found = match_ids(few, known)
    assert found.dtype == np.int32
    assert found.tolist() == match_ids(many, known).tolist()[: len(wanted)]
    if kind != pa.int8():
        assert found.tolist() == [-1, 20, -1, 499, -1, -1, 0]
    assert match_ids(few, known.slice(0, 0)).tolist() == [-1] * len(wanted)
