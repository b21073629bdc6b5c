"""The program run in this process, and in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest

from agentgym_envs.cli import main

ROOT = Path(__file__).parents[2]
TOY = "Toy/CliCount-v0"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")  # and put back, as --debug sets it
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
    """Runs, expects exit code 2 and one clear line on stderr, and returns the outcome."""

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
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


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
