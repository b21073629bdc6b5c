"""Fixtures that run the program in this process and in a subprocess."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest

from agentgym_envs.cli import main
from tests.plugins.startup import python_path
from tests.waiting import SECONDS, until

ROOT = Path(__file__).parents[2]
TOY = "Toy/CliCount-v0"
PAUSED_AT, TASKS = 10, 20
"""Episodes after which the paused run waits, and its total number of episodes."""
PAUSING_POLICY = """
import asyncio, os, random
from pathlib import Path


class Guessing:
    made = 0

    def __init__(self):
        Guessing.made += 1
        self.number = Guessing.made

    async def act(self, env, messages):
        while "PAUSE_AT" in os.environ and self.number > int(os.environ["PAUSE_AT"]):
            Path("paused").touch()
            await asyncio.sleep(0.02)
        return random.Random(env.episode_seed + len(messages)).choice(["inventory", "get 1 stick"])
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]
Start = Callable[..., tuple[subprocess.Popen[str], str, Path]]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")  # restored after the test, as --debug sets it
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> Outcome:
        code = main([str(word) for word in words])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture
def refuses(run: Run) -> Run:
    """Run a command, expect exit code 2 and one line on stderr, and return the outcome."""

    def call(*words: object) -> Outcome:
        outcome = run(*words)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("agentgym: ")
        assert outcome.err.count("\n") == 1
        return outcome

    return call


@pytest.fixture
def toy() -> Iterator[str]:
    gym.register(TOY, "tests.toy:CountEnv", disable_env_checker=True, order_enforce=False)
    yield TOY
    del gym.registry[TOY]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "agentgym_envs", *map(str, words)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": python_path(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a server and wait until its output contains `says`; return the process, its URL and the output file."""
    started: list[subprocess.Popen[str]] = []

    def call(*words: object, says: str = "\n", **variables: str) -> tuple[subprocess.Popen[str], str, Path]:
        shown = tmp_path / "out.txt"
        with shown.open("w") as out:  # a file, so that it can be read while the process runs and afterwards
            process = subprocess.Popen(
                command(*words, "--port", 0),
                cwd=tmp_path,
                env={**environment(), **variables},
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )
        started.append(process)
        until(
            lambda: says in shown.read_text() or process.poll() is not None, 3 * SECONDS
        )  # serving all environments takes 6 s
        assert process.poll() is None, process.communicate()
        found = re.match(r"Serving at ((?:http://|unix:/)\S+) until Ctrl-C\n", shown.read_text())
        assert found, shown.read_text()
        return process, found[1], shown

    yield call
    for process in started:
        process.kill()
        process.communicate()


class PausedRun(NamedTuple):
    """A run of eval that waits to be stopped. `words` and a folder start it again."""

    words: tuple[object, ...]
    process: subprocess.Popen[str]


@pytest.fixture
def paused_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PausedRun]:
    """A run in the folder `out` that has played `PAUSED_AT` of `TASKS` episodes and waits in the next one."""
    (tmp_path / "pausing.py").write_text(PAUSING_POLICY)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words: tuple[object, ...] = ("eval", "textcraft", "--policy", "pausing:Guessing", "--tasks", TASKS)
    words += ("--max-turns", 4, "--concurrency", 1, "--out")
    variables = {**environment(), "PAUSE_AT": str(PAUSED_AT)}
    process = subprocess.Popen(
        command(*words, "out"), cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        until(lambda: (tmp_path / "paused").exists() or process.poll() is not None)
        yield PausedRun(words, process)
    finally:
        process.kill()
        process.communicate()
        sys.modules.pop("pausing", None)


@pytest.fixture
def spawn(tmp_path: Path) -> Run:
    def call(*words: object, stdin: str = "", **options: Any) -> Outcome:
        done = subprocess.run(
            command(*words),
            input=stdin,
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call
