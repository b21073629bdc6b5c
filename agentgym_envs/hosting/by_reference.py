"""`PicklesByReference`: a base class for objects that are pickled by name."""

from __future__ import annotations

import secrets
import weakref
from typing import Any


class PicklesByReference:
    """Pickles by reference: unpickling returns the same object in this process and a new one in any other."""

    def __init__(self, **arguments: Any) -> None:
        """`arguments` are the constructor arguments of the class, used to make a new object in another process."""
        self._arguments = arguments
        self._register(secrets.token_hex(8))

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (type(self), self._name, self._arguments)

    def _register(self, name: str) -> None:
        self._name = name
        _by_name[name] = self


_by_name: weakref.WeakValueDictionary[str, PicklesByReference] = weakref.WeakValueDictionary()


def _find(kind: type[PicklesByReference], name: str, arguments: dict[str, Any]) -> PicklesByReference:
    found = _by_name.get(name)
    if found is None:
        found = kind(**arguments)
        found._register(name)
    return found
