"""String views (the layout of polars and DuckDB) as ordinary strings.

Arrow can compare and encode views, but has no kernels that select rows of them. What is asked for is brought to
``large_string`` batch by batch, also inside lists, structs and dictionaries; all other types stay as they are.
"""

from __future__ import annotations

import pyarrow as pa


def without_views(array: pa.Array) -> pa.Array:
    """Return the array itself, or a copy whose string views are large strings."""
    data_type = _viewless(array.type)
    return array if data_type == array.type else array.cast(data_type)


def _viewless(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(data_type):
        return pa.large_string()
    if pa.types.is_dictionary(data_type):
        return pa.dictionary(data_type.index_type, _viewless(data_type.value_type), data_type.ordered)
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_viewless(field.type)) for field in data_type.fields])
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_viewless_element(data_type), data_type.list_size)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        make = pa.list_ if pa.types.is_list(data_type) else pa.large_list
        return make(_viewless_element(data_type))
    return data_type


def _viewless_element(data_type: pa.DataType) -> pa.Field:
    return data_type.value_field.with_type(_viewless(data_type.value_type))
