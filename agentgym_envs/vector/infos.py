"""Infos of many environments in Gymnasium's form: a dict of arrays, each with a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ABSENT = object()  # no JSON value has the type `object`, so the types of the values show where a key is missing


def batch_infos(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Convert infos to the dict of arrays of Gymnasium's vector environments, one key at a time.

    `infos[k]` is the info of environment k, {} if it has none. A key `x` becomes an array `x` of shape (len(infos),)
    and a boolean mask `_x` of the environments that have it. Dicts become a dict of arrays.

    Unlike in Gymnasium, an array has a number type only if all its values have that type; otherwise it is an array of
    objects. Gymnasium uses the type of the first value: it truncates 0.5 to 0 after an int, and fails at a None or a
    dict after another type. Values that are arrays are not stacked.
    """
    out: dict[str, Any] = {}
    by_key = _values_by_key(infos)
    masks = np.ones((len(by_key), len(infos)), np.bool_)  # in one piece: many small arrays cost more than a step
    for (key, values), mask in zip(by_key.items(), masks, strict=True):
        kinds = set(map(type, values))
        absent = object in kinds
        kinds.discard(object)
        kind = kinds.pop() if len(kinds) == 1 else object
        dtype = kind if kind in (int, float, bool) or issubclass(kind, np.number) else object
        if absent:
            mask[:] = np.fromiter([value is not _ABSENT for value in values], np.bool_, len(values))
            nothing = None if dtype is object and kind is not dict else kind()
            values = [nothing if value is _ABSENT else value for value in values]
        out[key] = batch_infos(values) if kind is dict else _column(values, dtype)
        out[f"_{key}"] = mask
    return out


def _values_by_key(infos: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    if len(set(map(len, infos))) == 1:
        try:
            return {key: list(map(itemgetter(key), infos)) for key in infos[0]}
        except KeyError:
            pass  # equally many keys, but different ones
    keys = dict[str, Any]()
    for info in infos:
        keys.update(info)
    return {key: [info.get(key, _ABSENT) for info in infos] for key in keys}


def _column(values: list[Any], dtype: type) -> NDArray[Any]:
    try:
        return np.fromiter(values, dtype, len(values))
    except OverflowError:  # an int beyond 64 bits
        return np.fromiter(values, object, len(values))
