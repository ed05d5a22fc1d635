"""Hypothesis strategies for files that should not be there: tables of every type and shape, and damaged bytes.

What reads them has to end well or say what is wrong; see ``tests/fuzzing.py``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import reject
from hypothesis import strategies as st

#: Columns that each kind of input is made of, and some that only look like them.
ROLES: dict[str, tuple[str, ...]] = {
    "edges": ("src", "dst", "weight", "type"),
    "nodes": ("id", "type", "path"),
    "hits": ("query_id", "node_id", "weight", "source", "rank"),
    "lists": ("query_id", "seeds", "weight", "source"),
    "exclusions": ("query_id", "node_id"),
    "query_info": ("query_id", "text", "structural", "lexical", "budget", "method", "exclude"),
    "vectors": ("id", "vector"),
}
ODD_NAMES = (
    "",
    " ",
    "src ",
    "SRC",
    "weight.type",
    "a\nb",
    "\x1b[31mred",
    "\x00",
    "\u202eevil",
    "ü" * 300,
    "seeds.list.element",
)
_EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

Values = Callable[[np.random.Generator, int], list[Any]]


def _numbers(low: int, high: int) -> Values:
    def draw(generator: np.random.Generator, rows: int) -> list[Any]:
        ends = [low, high - 1, 0, 1, 2, 3]
        return [ends[i] if i < len(ends) else i % 7 for i in generator.integers(0, 20, rows)]

    return draw


def _texts(generator: np.random.Generator, rows: int) -> list[Any]:
    texts = ["", "a", "b", "007", "7", "\x00", "é", "\U0001f600", "x" * 500, "a\nb", "\x1b[2J", "0"]
    return [texts[i] for i in generator.integers(0, len(texts), rows)]


def _floats(generator: np.random.Generator, rows: int) -> list[Any]:
    values = [0.0, -0.0, 1.0, 0.5, -1.0, float("nan"), float("inf"), 1e308, 5e-324, 2.5]
    return [values[i] for i in generator.integers(0, len(values), rows)]


def _good_weights(generator: np.random.Generator, rows: int) -> list[Any]:
    return [float(value) for value in generator.random(rows)]


def _any(values: Sequence[Any]) -> Values:
    return lambda generator, rows: [values[i] for i in generator.integers(0, len(values), rows)]


_DAYS = _any([dt.date(1, 1, 1), dt.date(2026, 1, 1), dt.date(9999, 12, 31)])
_TIMES = _any([_EPOCH, _EPOCH + dt.timedelta(days=9)])

#: Plain types with values for them.
PLAIN: list[tuple[pa.DataType, Values]] = [
    *[(getattr(pa, f"int{bits}")(), _numbers(-(1 << bits - 1), 1 << bits - 1)) for bits in (8, 16, 32, 64)],
    *[(getattr(pa, f"uint{bits}")(), _numbers(0, 1 << bits)) for bits in (8, 16, 32, 64)],
    (pa.float32(), _any([0.0, 1.0, -1.0, float("nan"), float("inf"), 1e30])),
    (pa.float64(), _floats),
    (pa.float64(), _good_weights),
    (pa.bool_(), _any([True, False])),
    (pa.string(), _texts),
    (pa.large_string(), _texts),
    (pa.string_view(), _texts),
    (pa.binary(), _any([b"", b"\xff\xfe", b"a"])),
    (pa.large_binary(), _any([b"", b"\xff\xfe"])),
    (pa.binary(4), _any([b"abcd", b"\x00\xff\x00\xff"])),
    (pa.decimal128(10, 2), _any([decimal.Decimal("1.50"), decimal.Decimal("-7.00")])),
    (pa.decimal256(50, 0), _any([decimal.Decimal(10) ** 40, decimal.Decimal(0)])),
    (pa.date32(), _DAYS),
    (pa.date64(), _DAYS),
    (pa.timestamp("us", "UTC"), _TIMES),
    (pa.timestamp("ns"), _any([0, 1, 2**62])),
    (pa.timestamp("s"), _any([0, -1, 2**40])),
    (pa.time64("us"), _any([0, 5])),
    (pa.duration("ms"), _any([0, -5])),
    (pa.null(), _any([None])),
]


def _nested(generator: np.random.Generator, rows: int) -> pa.Array:
    """Lists, structs and maps of plain values, of which some are what hits may be."""
    kind, values = PLAIN[generator.integers(len(PLAIN))]
    elements = int(generator.integers(0, 4))

    def one(names: Sequence[str]) -> Any:
        if generator.random() < 0.1:
            return None
        drawn = values(generator, len(names))
        return dict(zip(names, drawn, strict=True))

    names = [("node_id",), ("node_id", "weight", "source"), ("other",), ("node_id", "weight", "rank"), ()]
    fields = names[generator.integers(len(names))]
    struct = pa.struct([pa.field(name, kind) for name in fields])
    depth = int(generator.integers(2, 60))
    deep = pa.int64()
    for _ in range(depth):
        deep = pa.list_(deep)
    choices: list[Callable[[], pa.Array]] = [
        lambda: pa.array([values(generator, elements) for _ in range(rows)], pa.list_(kind)),
        lambda: pa.array([values(generator, elements) for _ in range(rows)], pa.large_list(kind)),
        lambda: pa.array([values(generator, 2) for _ in range(rows)], pa.list_(kind, 2)),
        lambda: pa.array([one(fields) for _ in range(rows)], struct),
        lambda: pa.array([[one(fields) for _ in range(elements)] for _ in range(rows)], pa.list_(struct)),
        lambda: pa.array([[("k", 1)] for _ in range(rows)], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([None] * rows, deep),
    ]
    return choices[generator.integers(len(choices))]()


def _dictionary(generator: np.random.Generator, array: pa.Array) -> pa.Array:
    encoded = array.dictionary_encode()
    if generator.random() < 0.3 and len(encoded.dictionary):  # a null that only the dictionary knows
        values = pa.array([None, *encoded.dictionary.to_pylist()[1:]], array.type)
        return pa.DictionaryArray.from_arrays(encoded.indices, values)
    return encoded


def _likely(name: str, generator: np.random.Generator, rows: int) -> pa.Array | None:
    """A column as a reader expects it; None for a name that no reader knows."""
    texts, numbers = ("a", "b", "c"), generator.integers(0, 6, rows)
    if name in ("src", "dst", "node_id", "id"):
        kind = (pa.int64(), pa.int32(), pa.uint64())[generator.choice(3, p=(0.8, 0.1, 0.1))]
        return pa.array(np.arange(rows) if name == "id" else numbers, kind)
    if name in ("budget", "method"):
        texts = ("fast", "balanced", "thorough") if name == "budget" else ("ppr", "fuse", "bfs")
    if name in ("type", "source", "path", "text", "budget", "method"):
        return pa.array([texts[number % 3] for number in numbers])
    if name == "query_id":
        return pa.array([f"q{row}" for row in range(rows)])
    if name == "vector":
        kind = pa.list_(pa.float32(), 2) if generator.random() < 0.5 else pa.list_(pa.float64())
        return pa.array(generator.standard_normal((rows, 2)).tolist(), kind)
    if name in ("seeds", "exclude"):
        return pa.array([numbers[: generator.integers(0, 4)].tolist() for _ in range(rows)], pa.list_(pa.int64()))
    plain = {"rank": numbers + 1, "weight": numbers + 1, "structural": numbers > 2, "lexical": numbers > 2}
    return pa.array(plain[name]) if name in plain else None


def odd_array(name: str, generator: np.random.Generator, rows: int) -> pa.Array:
    """A column: mostly what its name lets expect, otherwise of any type; with nulls, as a dictionary, now and then.

    Were all of it odd, nothing would ever get past the first check.
    """
    array = _likely(name, generator, rows) if generator.random() < 0.85 else None
    if array is None and generator.random() < 0.4:
        return _nested(generator, rows)
    if array is None:
        kind, values = PLAIN[generator.integers(len(PLAIN))]
        array = pa.array(values(generator, rows), kind)
    if generator.random() < 0.1:
        array = pc.if_else(pa.array(generator.random(rows) < 0.3), pa.scalar(None, array.type), array)
    return _dictionary(generator, array) if generator.random() < 0.1 else array


@st.composite
def odd_files(draw: st.DrawFn, role: str) -> bytes:
    """Parquet files of tables whose columns are of any type, missing, repeated, or called anything."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.sampled_from([0, 1, 2, 7, 40]))
    names = [name for name in ROLES[role] if generator.random() < 0.97]
    names += [ODD_NAMES[generator.integers(len(ODD_NAMES))] for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
    if draw(st.integers(0, 29)) == 0 and names:
        names.append(names[0])
    try:
        arrays = [odd_array(name, generator, rows) for name in names]
        return parquet_bytes(pa.Table.from_arrays(arrays, names=names), generator)
    except (pa.ArrowException, OverflowError, ValueError):
        reject()  # what cannot be written cannot be read


def parquet_bytes(table: pa.Table, generator: np.random.Generator) -> bytes:
    """Write a table under options that are drawn: row groups, codecs, pages, encodings."""
    stream = io.BytesIO()
    pq.write_table(
        table,
        stream,
        row_group_size=int(generator.choice([1, 3, 1000])),
        compression=str(generator.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"])),
        data_page_version=str(generator.choice(["1.0", "2.0"])),
        version=str(generator.choice(["1.0", "2.4", "2.6"])),
        use_dictionary=bool(generator.random() < 0.5),
        write_statistics=bool(generator.random() < 0.5),
        store_schema=bool(generator.random() < 0.7),
        write_page_index=bool(generator.random() < 0.2),
        write_page_checksum=bool(generator.random() < 0.2),
    )
    return stream.getvalue()


@st.composite
def damaged_files(draw: st.DrawFn, table: pa.Table) -> bytes:
    """Bytes of a good table's Parquet file of which some are other ones, missing or too many; most in the footer."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    data = parquet_bytes(table, generator)
    # The footer says how much there is of everything.
    return draw(damaged(data, len(data) - int.from_bytes(data[-8:-4], "little") - 8, len(data), generator))


#: Shapes, types and orders of arrays, of which two dimensions of floats are vectors.
_SHAPES = ((6, 2), (6, 2), (6, 2), (0, 2), (2, 0), (4,), (), (2, 3, 2), (1000, 40))
_TYPES = ("<f4", "<f4", "<f8", "<f2", ">f4", "<i8", "?", "<c8", "<U3", "<M8[s]", "V5")


@st.composite
def array_files(draw: st.DrawFn) -> bytes:
    """Bytes of ``.npy`` files: of any shape, type and order, and damaged, most in the header."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = np.zeros(draw(st.sampled_from(_SHAPES)), draw(st.sampled_from(_TYPES)))
    if array.dtype.kind == "f" and array.size:
        array[...] = generator.standard_normal(array.shape)
        if draw(st.integers(0, 9)) == 0:
            array.flat[0] = draw(st.sampled_from([np.nan, np.inf]))
    stream = io.BytesIO()
    np.save(stream, np.asfortranarray(array) if draw(st.booleans()) else array)
    data = stream.getvalue()
    return data if draw(st.booleans()) else draw(damaged(data, 0, min(len(data), 128), generator))


@st.composite
def damaged(draw: st.DrawFn, good: bytes, first: int, last: int, generator: np.random.Generator) -> bytes:
    """Bytes of which some are other ones, missing or too many, half of them between ``first`` and ``last``."""
    data = bytearray(good)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3, 8]))):
        if not data:
            break
        low, high = (first, last) if draw(st.booleans()) and first < len(data) else (0, len(data))
        place = int(generator.integers(low, min(high, len(data))))
        length = int(generator.choice([1, 1, 2, 4, 8, 40]))
        kind = draw(st.sampled_from(["flip", "flip", "set", "large", "cut", "repeat", "zero", "end", "insert"]))
        if kind == "flip":
            data[place] ^= 1 << int(generator.integers(8))
        elif kind == "set":
            data[place] = int(generator.integers(256))
        elif kind == "large":  # a number in variable length that goes on
            data[place : place + length] = b"\xff" * (length - 1) + b"\x7f"
        elif kind == "cut":
            del data[place : place + length]
        elif kind == "repeat":
            data[place:place] = data[place : place + length]
        elif kind == "zero":
            data[place : place + length] = bytes(length)
        elif kind == "end":
            del data[place:]
        else:
            data[place:place] = generator.bytes(length)
    return bytes(data)
