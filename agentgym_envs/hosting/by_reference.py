"""`PicklesByReference`: what goes to another process by its name, since a pickle of it would be none."""

from __future__ import annotations

import secrets
import weakref
from typing import Any


class PicklesByReference:
    """Its pickle is its name: in the same process it comes back as itself, in another as a new one."""

    def __init__(self, **arguments: Any) -> None:
        """`arguments` are those of the class, for another process."""
        self._arguments = arguments
        self._register(secrets.token_hex(8))

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (type(self), self._name, self._arguments)

    def _register(self, name: str) -> None:
        self._name = name
        _named[name] = self


_named: weakref.WeakValueDictionary[str, PicklesByReference] = weakref.WeakValueDictionary()


def _find(kind: type[PicklesByReference], name: str, arguments: dict[str, Any]) -> PicklesByReference:
    found = _named.get(name)
    if found is None:
        found = kind(**arguments)
        found._register(name)
    return found
