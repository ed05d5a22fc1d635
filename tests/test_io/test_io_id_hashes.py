"""Hashes of ids: fixed for ever, by text, whatever the width, layout or slice of the column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from seedrank.io.id_hashes import hash_ids


def test_the_hash_is_that_of_the_text() -> None:
    # Written down once: a walk of last year must be the walk of today.
    assert hash_ids(pa.array(["1", "22", "é"])).tolist() == [
        7335560060985733464,
        11734450086610329516,
        xxhash.xxh3_64_intdigest("é".encode()),
    ]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64()])
def test_the_width_of_integers_does_not_matter(kind: pa.DataType) -> None:
    assert hash_ids(pa.array([1, 22], kind)).tolist() == hash_ids(pa.array(["1", "22"])).tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_the_layout_of_strings_does_not_matter(kind: pa.DataType) -> None:
    texts = ["", "a", "long enough not to be inlined", "a"]
    expected = [xxhash.xxh3_64_intdigest(text.encode()) for text in texts]
    assert hash_ids(pa.array(texts, kind)).tolist() == expected
    assert hash_ids(pa.array(texts, kind).slice(1, 2)).tolist() == expected[1:3]


def test_extremes() -> None:
    assert (
        hash_ids(pa.array([-(2**63), 2**63 - 1])).tolist()
        == hash_ids(pa.array([str(-(2**63)), str(2**63 - 1)])).tolist()
    )
    assert hash_ids(pa.array([2**64 - 1], pa.uint64())).tolist() == hash_ids(pa.array([str(2**64 - 1)])).tolist()
    for empty in (pa.array([], pa.string()), pa.array([], pa.int64())):
        assert hash_ids(empty).tolist() == []
        assert hash_ids(empty).dtype == np.uint64
    assert hash_ids(pa.array(["", ""])).tolist() == [xxhash.xxh3_64_intdigest(b"")] * 2
