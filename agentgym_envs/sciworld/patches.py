"""Faster calls inside the simulator: its classes with some calls redirected to our own class `StepMemo`.

Half of the time of a step is spent on the names of the objects in reach, which the parser computes again for every way
of reading a command. Much of the rest is spent on the objects in a room, which are gathered again for every subgoal.
`StepMemo` (in `java_classes`, with its source) remembers both within one command. The simulator's jar stays as it is:
the changed classes are written into a small jar of their own, which comes before it on the class path. A class is
changed only if its bytes are those that the table below was made for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import IO, NamedTuple

_MEMO = "agentgym/StepMemo"
_OURS = (_MEMO, f"{_MEMO}$Known", f"{_MEMO}$Contents")
_PARSER = "scienceworld/input/InputParser$"
_OBJECT = "Lscienceworld/struct/EnvObject;"
_INVOKEVIRTUAL, _INVOKESTATIC = b"\xb6", b"\xb8"
_UTF8, _CLASS, _METHOD, _NAME_AND_TYPE = 1, 7, 10, 12
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""The bytes of a constant by its kind; texts have a length of their own."""
_WIDE = (5, 6)
"""Kinds that count twice."""


class RedirectedCall(NamedTuple):
    """A virtual call of a method of `owner` that becomes a call of a static method of `_MEMO`.

    `number` counts the calls of this method in the order of the class file, from 0.
    """

    owner: str
    method: str
    signature: str
    number: int
    static_method: str


class PatchedClass(NamedTuple):
    """A class of the simulator: the SHA-256 of its file, and its redirected calls."""

    sha256: str
    redirects: tuple[RedirectedCall, ...]


_TOKENIZE = _PARSER, "tokenize", "(Ljava/lang/String;)[Ljava/lang/String;"
_REFERENTS = _PARSER, "getObjectReferents", f"({_OBJECT}{_OBJECT})[Ljava/lang/String;"
_COLLECT = _PARSER, "collectAccessibleObjects", f"({_OBJECT}Z)Lscala/collection/mutable/Set;"
_GOALS = "scienceworld/tasks/goals/"
_TICK = f"{_GOALS}GoalSequence", "tick", f"(L{_GOALS}ObjMonitor;Lscienceworld/objects/agent/Agent;)V"
_CONTENTS = "getContainedObjectsAndPortalsRecursive"
_IN_ROOM = RedirectedCall(_OBJECT[1:-1], _CONTENTS, "(ZZ)Lscala/collection/immutable/Set;", 0, _CONTENTS)
CLASSES: Mapping[str, PatchedClass] = {
    "scienceworld/input/InputParser": PatchedClass(
        "0f4d5a84efa4ee2b7c980b7300b45f9c01c916202dd247a5569879f423b065d3",
        (
            RedirectedCall(*_TOKENIZE, 1, "begin"),
            RedirectedCall(*_REFERENTS, 1, "getObjectReferents"),
            RedirectedCall(*_COLLECT, 4, "collectUniverse"),
        ),
    ),
    _PARSER: PatchedClass(
        "8705dbd8d0f062111f10cbe661b8cf655c38be52d055e6342705a5dbb53e4c1f", (RedirectedCall(*_TOKENIZE, 0, "tokenize"),)
    ),
    "scienceworld/runtime/AgentInterface": PatchedClass(
        "c49f4b9efa58bcec4b50939f802ddf7aa1efbc202665a21b0fa141a438ce7d57",
        (RedirectedCall(*_TICK, 0, "tick"), RedirectedCall(*_TICK, 1, "tick")),
    ),
    f"{_GOALS}specificgoals/GoalLifeStageAnywhere": PatchedClass(
        "21de065976e611df457808f082624b6bf1d4017b86a713a56ea05920565e2386", (_IN_ROOM,)
    ),
    f"{_GOALS}specificgoals/GoalSpecificObjectInDirectContainer": PatchedClass(
        "466b7c2a85807c22f1df9986d4f2df40cfb1748eb9828e5a63689214205ea20b", (_IN_ROOM,)
    ),
}


@contextlib.contextmanager
def patch_jar(simulator: Path) -> Iterator[list[str]]:
    """Write a jar with the changed classes, and remove it at the end, when Java has read it.

    Yield a list of its path, which is empty if the simulator has other classes.
    """
    number, path = tempfile.mkstemp(suffix=".jar")
    try:
        with os.fdopen(number, "wb") as jar:
            written = write_patches(simulator, jar)
        yield [path] if written else []
    finally:
        with contextlib.suppress(OSError):  # Windows does not remove an open file
            os.remove(path)


def patched_classes() -> list[str]:
    """Return the names of the classes in the jar, for Java to load them."""
    return [name.replace("/", ".") for name in (*_OURS, *CLASSES)]


def write_patches(simulator: Path, jar: IO[bytes]) -> bool:
    """Write a jar with the changed classes. Return False, and write nothing, if the simulator has other classes."""
    with zipfile.ZipFile(simulator) as archive:
        names = archive.NameToInfo
        classes = {name: archive.read(f"{name}.class") for name in CLASSES if f"{name}.class" in names}
    if {name: hashlib.sha256(data).hexdigest() for name, data in classes.items()} != {
        name: patched.sha256 for name, patched in CLASSES.items()
    }:
        return False
    folder = files("agentgym_envs.sciworld") / "java_classes"
    with zipfile.ZipFile(jar, "w") as archive:
        for name in _OURS:
            archive.writestr(f"{name}.class", (folder / f"{name}.class").read_bytes())
        for name, data in classes.items():
            archive.writestr(f"{name}.class", redirect(data, CLASSES[name].redirects))
    return True


def redirect(data: bytes, redirects: Sequence[RedirectedCall]) -> bytes:
    """Return a class file with calls redirected. The receiver becomes the first argument, so nothing else changes."""
    constants = _read_constants(data)
    end = 10 + sum(map(len, constants))
    code = bytearray(data[end:])
    original = bytes(code)
    for owner, method, signature, number, static_method in redirects:
        old = _method(constants, owner, method, signature)
        new = _method(constants, _MEMO, static_method, f"(L{owner};{signature[1:]}")
        position = -1
        for _ in range(number + 1):
            position = original.index(_INVOKEVIRTUAL + old, position + 1)
        code[position : position + 3] = _INVOKESTATIC + new
    return data[:8] + struct.pack(">H", len(constants)) + b"".join(constants) + code


def _read_constants(data: bytes) -> list[bytes]:
    """Split the constants of a class file. Those without a constant of their own (such as number 0) are empty."""
    constants, position = [b""], 10
    (count,) = struct.unpack_from(">H", data, 8)
    while len(constants) < count:
        kind = data[position]
        size = 3 + struct.unpack_from(">H", data, position + 1)[0] if kind == _UTF8 else 1 + _SIZES[kind]
        constants.append(data[position : position + size])
        position += size
        if kind in _WIDE:
            constants.append(b"")
    return constants


def _method(constants: list[bytes], owner: str, name: str, signature: str) -> bytes:
    """Return the number of the reference to a method, as two bytes. It is added if it is new."""
    named = _constant(constants, _NAME_AND_TYPE, _text(constants, name) + _text(constants, signature))
    return _constant(constants, _METHOD, _constant(constants, _CLASS, _text(constants, owner)) + named)


def _text(constants: list[bytes], text: str) -> bytes:
    return _constant(constants, _UTF8, struct.pack(">H", len(text)) + text.encode())


def _constant(constants: list[bytes], kind: int, content: bytes) -> bytes:
    constant = bytes([kind]) + content
    if constant not in constants:
        constants.append(constant)
    return struct.pack(">H", constants.index(constant))
