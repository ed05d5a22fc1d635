"""The inner loops of every CPU product, written for the vector unit.

Numba has no vector types, and LLVM does not turn a gather of whole rows into register sums on its own. The intrinsics
emit those loops: one register per 16 float32 (8 float64) columns, a prefetch that runs `AHEAD` entries ahead across row
ends so that the next data is under way, and an epilogue that scales, sums and stores without another pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 64
"""Entries between the one being added and the one being prefetched; index arrays end with this much padding."""

WIDTHS = (16, 32, 64)
"""Numbers of columns for which there are kernels; other blocks are padded to the next."""

_INTO_L2 = 2
"""Locality of the prefetch: 64 rows ahead fit the second-level cache, not the first (1.5x on RMAT 20)."""

_I1, _I8, _I32, _I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)


@dataclass
class _Emitter:
    """Builds one kernel body: `width` columns in registers of `lanes` lanes.

    The columns are ``left … left + width - 1`` of a block of `stride` columns; None: they are the whole block.
    """

    builder: Any
    width: int
    is_double: bool
    stride: Any = None
    left: Any = None

    def __post_init__(self) -> None:
        self.scalar = ir.DoubleType() if self.is_double else ir.FloatType()
        self.lanes = 8 if self.is_double else 16
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.wide = ir.VectorType(ir.DoubleType(), self.lanes)
        self.strips = range(self.width // self.lanes)

    def pointer(self, base: Any, offset: Any, strip: int, kind: Any) -> Any:
        """Address of a strip, `offset` elements after `base`."""
        place = self.builder.add(offset, _I64(strip * self.lanes))
        return self.builder.bitcast(self.builder.gep(base, [place]), kind.as_pointer())

    def load(self, base: Any, offset: Any, strip: int, *, kind: Any = None, aligned: bool = False) -> Any:
        kind = kind or self.vector
        loaded = self.builder.load(self.pointer(base, offset, strip, kind))
        loaded.align = 64 if aligned else 8
        return loaded

    def store(self, value: Any, base: Any, offset: Any, strip: int, *, kind: Any = None, aligned: bool = False) -> Any:
        stored = self.builder.store(value, self.pointer(base, offset, strip, kind or self.vector))
        stored.align = 64 if aligned else 8
        return stored

    def spread(self, value: Any) -> Any:
        """All lanes equal to a scalar."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(nothing, value, _I32(0))
        return self.builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes))

    def row_offset(self, row: Any) -> Any:
        """Element at which the columns of a row start."""
        if self.stride is None:
            return self.builder.mul(row, _I64(self.width))
        return self.builder.add(self.builder.mul(row, self.stride), self.left)

    def sum_rows(self, columns: Any, values: Any, first: Any, last: Any, block: Any) -> list[Any]:
        """Sum the rows of `block` that ``columns[first:last]`` names, in order; one register a strip."""
        builder = self.builder
        prefetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32]),
            "llvm.prefetch.p0",
        )
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in self.strips]
        for slot in sums:
            builder.store(zero, slot)

        def start_of(entry: Any) -> Any:
            return self.row_offset(builder.sext(builder.load(builder.gep(columns, [entry])), _I64))

        with cgutils.for_range_slice(builder, first, last, _I64(1), inc=True) as (entry, _):
            ahead = start_of(builder.add(entry, _I64(AHEAD)))
            # A cache line holds one strip in either precision.
            for strip in self.strips:
                builder.call(prefetch, [self.pointer(block, ahead, strip, _I8), _I32(0), _I32(_INTO_L2), _I32(1)])
            factor = None if values is None else self.spread(builder.load(builder.gep(values, [entry])))
            start = start_of(entry)
            for strip, slot in enumerate(sums):
                term = self.load(block, start, strip, aligned=True)
                term = term if factor is None else builder.fmul(factor, term)
                builder.store(builder.fadd(builder.load(slot), term), slot)
        return [builder.load(slot) for slot in sums]

    def add_to(self, total: Any, sums: list[Any]) -> None:
        """Add registers to float64 totals in memory."""
        for strip, value in enumerate(sums):
            wide = value if self.is_double else self.builder.fpext(value, self.wide)
            before = self.load(total, _I64(0), strip, kind=self.wide)
            self.store(self.builder.fadd(before, wide), total, _I64(0), strip, kind=self.wide)

    def narrowed(self, total: Any) -> list[Any]:
        """Load float64 totals as registers of the block's precision."""
        sums = [self.load(total, _I64(0), strip, kind=self.wide) for strip in self.strips]
        return sums if self.is_double else [self.builder.fptrunc(value, self.vector) for value in sums]

    def magnitude(self, value: Any) -> Any:
        name = f"llvm.fabs.v{self.lanes}f{64 if self.is_double else 32}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(self.vector, [self.vector]), name
        )
        return self.builder.call(function, [value])


def _data(context: Any, builder: Any, kinds: Any, arguments: Any) -> list[Any]:
    """Data pointer of every array argument; None for None; other arguments as they are."""
    found = []
    for kind, argument in zip(kinds, arguments, strict=True):
        if isinstance(kind, types.Array):
            found.append(context.make_array(kind)(context, builder, argument).data)
        else:
            found.append(None if isinstance(kind, types.NoneType) else argument)
    return found


def _emitter(builder: Any, width: int, block: Any) -> _Emitter:
    return _Emitter(builder, width, block.dtype == types.float64)


def _finish(emitter: _Emitter, sums: list[Any], data: list[Any], where: dict[str, Any]) -> None:
    """Scale a row's sums, add them to the column sums, compare with the old row, store: see `whole_row`."""
    builder = emitter.builder
    factor, back = (emitter.spread(where[name]) for name in ("factor", "back"))
    row, zero = emitter.row_offset(where["row"]), _I64(0)
    block, following, damping, everywhere, norm, column_sums, differences = data
    values = []
    for strip, total in enumerate(sums):
        value = builder.fmul(total, emitter.load(damping, zero, strip))
        value = builder.fadd(value, emitter.load(everywhere, zero, strip))
        emitter.store(builder.fadd(emitter.load(column_sums, zero, strip), value), column_sums, zero, strip)
        values.append(value)
    with builder.if_then(builder.trunc(where["measure"], _I1)):
        for strip, value in enumerate(values):
            old = builder.fmul(emitter.load(block, row, strip, aligned=True), back)
            old = builder.fmul(old, emitter.load(norm, zero, strip))
            change = emitter.magnitude(builder.fsub(value, old))
            emitter.store(builder.fadd(emitter.load(differences, zero, strip), change), differences, zero, strip)
    scaled = [builder.fmul(value, factor) for value in values]
    with builder.if_else(builder.trunc(where["stream"], _I1)) as (past_the_cache, through_it):
        with past_the_cache:
            for strip, value in enumerate(scaled):
                stored = emitter.store(value, following, row, strip, aligned=True)
                stored.set_metadata("nontemporal", builder.module.add_metadata([_I32(1)]))
        with through_it:
            for strip, value in enumerate(scaled):
                emitter.store(value, following, row, strip, aligned=True)


def _whole_row(width: int) -> Any:
    @intrinsic
    def whole_row(
        typingctx: Any, columns: Any, values: Any, first: Any, last: Any, block: Any, following: Any, damping: Any,
        everywhere: Any, norm: Any, column_sums: Any, differences: Any, row: Any, factor: Any, back: Any, measure: Any,
        stream: Any,
    ) -> Any:  # fmt: skip
        signature = types.void(
            columns, values, first, last, block, following, damping, everywhere, norm, column_sums, differences, row,
            factor, back, measure, stream,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[4])
            sums = emitter.sum_rows(data[0], data[1], data[2], data[3], data[4])
            names = ("row", "factor", "back", "measure", "stream")
            _finish(emitter, sums, data[4:11], dict(zip(names, data[11:], strict=True)))
            return context.get_dummy_value()

        return signature, generate

    return whole_row


def _add_segment(width: int) -> Any:
    @intrinsic
    def add_segment(typingctx: Any, columns: Any, values: Any, first: Any, last: Any, block: Any, total: Any) -> Any:
        signature = types.void(columns, values, first, last, block, total)

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[4])
            emitter.add_to(data[5], emitter.sum_rows(*data[:5]))
            return context.get_dummy_value()

        return signature, generate

    return add_segment


def _finish_row(width: int) -> Any:
    @intrinsic
    def finish_row(
        typingctx: Any, total: Any, block: Any, following: Any, damping: Any, everywhere: Any, norm: Any,
        column_sums: Any, differences: Any, row: Any, factor: Any, back: Any, measure: Any, stream: Any,
    ) -> Any:  # fmt: skip
        signature = types.void(
            total, block, following, damping, everywhere, norm, column_sums, differences, row, factor, back, measure,
            stream,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[1])
            names = ("row", "factor", "back", "measure", "stream")
            _finish(emitter, emitter.narrowed(data[0]), data[1:8], dict(zip(names, data[8:], strict=True)))
            return context.get_dummy_value()

        return signature, generate

    return finish_row


def _relax(emitter: _Emitter, sums: list[Any], data: list[Any], where: dict[str, Any]) -> None:
    """Move a row of the block towards what its neighbours say: see `relax_row`."""
    builder = emitter.builder
    damping, factor, back, gain = (emitter.spread(where[name]) for name in ("damping", "factor", "back", "gain"))
    row, zero = emitter.row_offset(where["row"]), _I64(0)
    block, relaxation, restart, column_sums = data
    for strip, total in enumerate(sums):
        stored = emitter.load(block, row, strip, aligned=True)
        old = builder.fmul(stored, back)
        target = builder.fadd(builder.fmul(total, damping), emitter.load(restart, zero, strip))
        omega = emitter.load(relaxation, zero, strip)
        value = builder.fadd(old, builder.fmul(builder.fmul(omega, gain), builder.fsub(target, old)))
        emitter.store(builder.fadd(emitter.load(column_sums, zero, strip), value), column_sums, zero, strip)
        # A column that rests keeps its bits: going through the out-weight and back would round.
        moves = builder.fcmp_ordered("!=", omega, ir.Constant(emitter.vector, [0.0] * emitter.lanes))
        emitter.store(builder.select(moves, builder.fmul(value, factor), stored), block, row, strip, aligned=True)


def _relax_row(width: int) -> Any:
    @intrinsic
    def relax_row(
        typingctx: Any, columns: Any, values: Any, first: Any, last: Any, block: Any, relaxation: Any, restart: Any,
        column_sums: Any, row: Any, left: Any, stride: Any, damping: Any, factor: Any, back: Any, gain: Any,
    ) -> Any:  # fmt: skip
        signature = types.void(
            columns, values, first, last, block, relaxation, restart, column_sums, row, left, stride, damping, factor,
            back, gain,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[4])
            emitter.left, emitter.stride = data[9], data[10]
            sums = emitter.sum_rows(*data[:5])
            where = {"row": data[8], "damping": data[11], "factor": data[12], "back": data[13], "gain": data[14]}
            _relax(emitter, sums, data[4:8], where)
            return context.get_dummy_value()

        return signature, generate

    return relax_row


def _add_strip_segment(width: int) -> Any:
    @intrinsic
    def add_strip_segment(
        typingctx: Any, columns: Any, values: Any, first: Any, last: Any, block: Any, total: Any, left: Any, stride: Any
    ) -> Any:
        signature = types.void(columns, values, first, last, block, total, left, stride)

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[4])
            emitter.left, emitter.stride = data[6], data[7]
            emitter.add_to(data[5], emitter.sum_rows(*data[:5]))
            return context.get_dummy_value()

        return signature, generate

    return add_strip_segment


def _relax_total(width: int) -> Any:
    @intrinsic
    def relax_total(
        typingctx: Any, total: Any, block: Any, relaxation: Any, restart: Any, column_sums: Any, row: Any, left: Any,
        stride: Any, damping: Any, factor: Any, back: Any, gain: Any,
    ) -> Any:  # fmt: skip
        signature = types.void(
            total, block, relaxation, restart, column_sums, row, left, stride, damping, factor, back, gain
        )

        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            data = _data(context, builder, sig.args, arguments)
            emitter = _emitter(builder, width, sig.args[1])
            emitter.left, emitter.stride = data[6], data[7]
            where = {"row": data[5], "damping": data[8], "factor": data[9], "back": data[10], "gain": data[11]}
            _relax(emitter, emitter.narrowed(data[0]), data[1:5], where)
            return context.get_dummy_value()

        return signature, generate

    return relax_total


# ``whole_row(columns, values, first, last, block, following, damping, everywhere, norm, column_sums, differences, row,
# factor, back, measure, stream)``: following[row] = factor · v, v = damping · Σ block[columns[e]] (· values[e]) +
# everywhere; column_sums += v; with measure, differences += |v - norm · back · block[row]|; stream: past the cache.
whole_row_16, whole_row_32, whole_row_64 = (_whole_row(width) for width in WIDTHS)
# ``add_segment(columns, values, first, last, block, total)``: total (float64) += Σ block[columns[e]] (· values[e]).
add_segment_16, add_segment_32, add_segment_64 = (_add_segment(width) for width in WIDTHS)
# ``finish_row(total, block, …)``: `whole_row` from a float64 total.
finish_row_16, finish_row_32, finish_row_64 = (_finish_row(width) for width in WIDTHS)
# ``relax_row(columns, values, first, last, block, relaxation, restart, column_sums, row, left, stride, damping, factor,
# back, gain)``: for a strip of columns in place, old = back · block[row]; v = old + gain · relaxation · (damping · Σ …
# + restart - old); block[row] = factor · v; column_sums += v. The other two do the same by way of a float64 total.
relax_row_16, relax_row_32, relax_row_64 = (_relax_row(width) for width in WIDTHS)
add_strip_segment_16, add_strip_segment_32, add_strip_segment_64 = (_add_strip_segment(width) for width in WIDTHS)
relax_total_16, relax_total_32, relax_total_64 = (_relax_total(width) for width in WIDTHS)
