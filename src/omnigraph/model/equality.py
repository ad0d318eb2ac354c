"""When two values are the same value.

Null is the same as null, and what is not a number the same as itself, at any depth; the function
for columns and the one for single values agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


def same(one: Any, two: Any) -> bool:
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (one != one and two != two)
    return bool(one == two)


def same_row(one: Mapping[str, Any] | None, two: Mapping[str, Any] | None) -> bool:
    """Whether two rows hold the same values; no row is the same as no row."""
    if one is None or two is None:
        return one is two
    return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())


def same_columns(one: pa.ChunkedArray, two: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Row by row, whether two columns of one type hold the same value."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from omnigraph.model.temporal import python_values

    kind = one.type
    if pa.types.is_fixed_size_list(kind):
        return _same_vectors(_whole(one), _whole(two))
    if pa.types.is_nested(kind):
        pairs = zip(python_values(one), python_values(two), strict=True)
        return np.fromiter((same(a, b) for a, b in pairs), bool, len(one))
    equal = pc.fill_null(pc.equal(one, two), False)
    if pa.types.is_floating(kind):
        neither = pc.and_(pc.is_nan(one), pc.is_nan(two))
        equal = pc.or_(equal, pc.fill_null(neither, False))
    both_null = pc.and_(pc.is_null(one), pc.is_null(two))
    result: npt.NDArray[np.bool_] = _whole(pc.or_(equal, both_null)).to_numpy(zero_copy_only=False)
    return result


def _same_vectors(one: pa.Array, two: pa.Array) -> npt.NDArray[np.bool_]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    valid_one, valid_two = (pc.is_valid(side).to_numpy(zero_copy_only=False) for side in (one, two))
    alike: npt.NDArray[np.bool_] = valid_one == valid_two
    both = np.flatnonzero(valid_one & valid_two)
    if len(both):
        width = one.type.list_size
        left = one.take(pa.array(both)).flatten().to_numpy(zero_copy_only=False)
        right = two.take(pa.array(both)).flatten().to_numpy(zero_copy_only=False)
        equal = (left == right) | (np.isnan(left) & np.isnan(right))
        alike[both] = equal.reshape(-1, width).all(axis=1)
    return alike


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
