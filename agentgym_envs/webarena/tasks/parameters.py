"""The parameters of a template's instances, and the functions of templates, which receive them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

_T = TypeVar("_T")
Params: TypeAlias = Mapping[str, Any]
"""The parameters of an instance: JSON, and only values that the intent names."""


def call_by_name(function: Callable[..., _T], values: Mapping[str, Any]) -> _T:
    """Call a function with those of the values that its parameters name."""
    return function(**{name: values[name] for name in _parameters(function) if name in values})


@lru_cache(maxsize=4_000)
def _parameters(function: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
