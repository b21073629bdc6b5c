"""Infos of many environments in Gymnasium's form: a dict of arrays, each with a mask beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS = (bool, int, float)


def columns(infos: Sequence[dict[str, Any]], places: Sequence[int], size: int) -> dict[str, Any]:
    """What Gymnasium's vector environments make of `infos`, built a key at a time instead of a value at a time.

    The info at `infos[k]` is that of place `places[k]` in arrays of length `size`. A key `x` has an array `x` and a
    boolean mask `_x` of the places that have it; a dict among the values becomes a dict of arrays.

    Unlike Gymnasium, an array has a number type only if all its values are of that type: Gymnasium takes the type of
    the first, and cuts 0.5 down to 0 where an int came first.
    """
    return _columns(infos, np.asarray(places, dtype=np.intp), size)


def _columns(infos: Sequence[dict[str, Any]], places: NDArray[np.intp], size: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if not infos:
        return out
    first = infos[0].keys()
    if all(info.keys() == first for info in infos):
        for key in first:
            out[key], out[f"_{key}"] = _column(key, [info[key] for info in infos], places, size)
        return out
    for key in dict.fromkeys(key for info in infos for key in info):
        having = [number for number, info in enumerate(infos) if key in info]
        values = [infos[number][key] for number in having]
        out[key], out[f"_{key}"] = _column(key, values, places[having], size)
    return out


def _column(key: str, values: list[Any], places: NDArray[np.intp], size: int) -> tuple[Any, NDArray[np.bool_]]:
    full = len(values) == size
    mask = np.ones(size, dtype=np.bool_) if full else np.zeros(size, dtype=np.bool_)
    if not full:
        mask[places] = True
    kind = type(values[0])
    if kind is dict and all(type(value) is dict for value in values):
        return _columns(values, places, size), mask
    if kind in _NUMBERS and all(type(value) is kind for value in values):
        column = np.array(values) if kind is not int else _integers(values)
    else:
        column = np.fromiter(values, dtype=object, count=len(values))
    if full:
        return (column, mask) if _in_order(places) else (_spread(column, places, size), mask)
    return _spread(column, places, size), mask


def _integers(values: list[int]) -> NDArray[Any]:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.fromiter(values, dtype=object, count=len(values))


def _in_order(places: NDArray[np.intp]) -> bool:
    return bool(places[0] == 0 and (np.diff(places) == 1).all())


def _spread(column: NDArray[Any], places: NDArray[np.intp], size: int) -> NDArray[Any]:
    array = np.full(size, None, dtype=object) if column.dtype == object else np.zeros(size, dtype=column.dtype)
    array[places] = column
    return array
