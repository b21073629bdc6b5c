"""Recording of what the Python code of this process does to its surroundings: connections, files and processes.

Python's audit events are the source, so the code of C extensions and of other processes is not seen.
"""

from __future__ import annotations

import ipaddress
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.truncate", "os.link", "os.symlink", "sqlite3.connect")
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system")
_NO_HOST = ("", "0.0.0.0", "::", "localhost")


@dataclass
class Watch:
    """The events between the begin and the end of `watching`, each once and in order."""

    hosts: dict[str, None] = field(default_factory=dict)
    """Hosts outside this machine that were looked up, connected to or sent to."""
    written: dict[str, None] = field(default_factory=dict)
    """Files and folders that were opened for writing, made, moved or removed."""
    processes: dict[str, None] = field(default_factory=dict)
    """Programs that were started."""
    changed: dict[str, None] = field(default_factory=dict)
    """Variables of the process's environment that were set or deleted, and the working directory if it was changed."""
    global_rng: list[str] = field(default_factory=list)
    """The global random generators that were used."""


_active: list[Watch] = []
_lock = threading.Lock()
_installed = False


@contextmanager
def watching() -> Iterator[Watch]:
    """Record the events of this process in the context. Contexts must not overlap."""
    _install()
    watch, generators = Watch(), _global_generators()
    _active.append(watch)
    try:
        yield watch
    finally:
        _active.remove(watch)
        watch.global_rng = [name for name, state in _global_generators().items() if generators[name] != state]


def joined(*watches: Watch) -> Watch:
    """The events of several contexts."""
    found = Watch()
    for watch in watches:
        found.hosts |= watch.hosts
        found.written |= watch.written
        found.processes |= watch.processes
        found.changed |= watch.changed
        found.global_rng = list(dict.fromkeys([*found.global_rng, *watch.global_rng]))
    return found


def written_outside(watch: Watch) -> list[str]:
    """The written paths that are neither temporary nor in a cache."""
    allowed = [Path(tempfile.gettempdir()).resolve(), *_caches(), Path("/dev"), Path("/proc")]
    paths = [Path(path) for path in watch.written if "__pycache__" not in path]
    return [str(path) for path in paths if not any(_absolute(path).is_relative_to(folder) for folder in allowed)]


def refuse_network() -> None:
    """Make every further attempt to reach another machine fail, until the process ends."""
    _install()
    _active.append(_Refusing())


class _RefusedHosts(dict[str, None]):
    def __setitem__(self, host: str, value: None) -> None:
        raise OSError(f"no network here, so {host} cannot be reached")


class _Refusing(Watch):
    def __init__(self) -> None:
        super().__init__(hosts=_RefusedHosts())


def _caches() -> list[Path]:
    return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve()]


def _absolute(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _global_generators() -> dict[str, Any]:
    name, keys, *rest = np.random.get_state()
    return {"random": random.getstate(), "numpy.random": (name, bytes(keys), *rest)}  # type: ignore[arg-type]


def _install() -> None:
    """Add the audit hook, which Python cannot remove again."""
    global _installed
    with _lock:
        if not _installed:
            sys.addaudithook(_hook)
            _installed = True


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _active and (note := _NOTES.get(event)):
        for watch in tuple(_active):
            note(watch, arguments)


def _connect(watch: Watch, arguments: tuple[Any, ...]) -> None:
    address = arguments[1]
    _reach(watch, address[0] if isinstance(address, tuple) else None)


def _look_up(watch: Watch, arguments: tuple[Any, ...]) -> None:
    _reach(watch, arguments[0])


def _reach(watch: Watch, host: Any) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if isinstance(name, str) and not is_local(name):
        watch.hosts[name] = None


def is_local(host: str) -> bool:
    """True for this machine."""
    try:
        return host in _NO_HOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.endswith(".localhost")


def _open(watch: Watch, arguments: tuple[Any, ...]) -> None:
    path, _, flags = arguments
    if isinstance(flags, int) and flags & _WRITES:
        _change(watch, (path,))


def _change(watch: Watch, arguments: tuple[Any, ...]) -> None:
    path = arguments[0]
    text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
    if text and not text.startswith((":memory:", "file:")):
        watch.written[text] = None


def _start(watch: Watch, arguments: tuple[Any, ...]) -> None:
    watch.processes[os.path.basename(str(arguments[0])) if arguments else "a copy of this process"] = None


def _set(watch: Watch, arguments: tuple[Any, ...]) -> None:
    watch.changed[f"the variable {os.fsdecode(arguments[0])}"] = None


def _enter(watch: Watch, arguments: tuple[Any, ...]) -> None:
    watch.changed["the working directory"] = None


_NOTES: dict[str, Callable[[Watch, tuple[Any, ...]], None]] = {
    "socket.connect": _connect,
    "socket.sendto": _connect,
    "socket.getaddrinfo": _look_up,
    "socket.gethostbyname": _look_up,
    "open": _open,
    "os.chdir": _enter,
    "os.putenv": _set,
    "os.unsetenv": _set,
    **dict.fromkeys(_CHANGES, _change),
    **dict.fromkeys(_STARTS, _start),
}
