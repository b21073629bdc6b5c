"""Toy environments by id. The id `tests.toy_envs:Toy/Count-v0` makes worker processes import this module."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.registration import register
from agentgym_envs.task import Task
from tests.toy import CountEnv
from tests.waiting import until

HERE = "tests.toy_envs:"
RELEASE = threading.Event()
"""Ends all waits in this process, so that a test leaves no thread behind."""


def wait_for(path: str) -> None:
    """Write a second file when the wait begins, then wait until a file exists."""
    Path(path + ".begun").touch()
    until(Path(path).exists)


class TrickyEnv(CountEnv):
    """`CountEnv` with commands that fail or wait."""

    made = itertools.count()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.serial = next(self.made)

    def _act(self, command: str) -> Transition:
        match command.split():
            case ["sleep", seconds]:
                RELEASE.wait(float(seconds))
                return Transition("slept")
            case ["await", path]:
                wait_for(path)
                return Transition("slept")
            case ["hang"]:
                RELEASE.wait(60)
                return Transition("woke up")
            case ["raise"]:
                raise ZeroDivisionError("a bug")
            case ["exit"]:
                sys.exit(3)
            case ["die"]:
                os._exit(9)
            case ["who"]:
                return Transition(f"{os.getpid()} {self.serial}")
            case ["chat"]:
                print("chatter", flush=True)
                os.write(1, b"\x00\x01\x02\x03")
                return Transition(repr(sys.stdin.readline()))
            case ["cancelled"]:
                raise asyncio.CancelledError
            case ["odd"]:
                return Transition("odd", info={"odd": lambda: None})
        return super()._act(command)


class SlowEnv(TrickyEnv):
    """`TrickyEnv` with a thread per session, or in a worker process on a server."""

    blocking = True


class AsyncEnv(CountEnv):
    """`CountEnv` whose steps wait on the event loop."""

    native_async = True

    async def _begin_async(self, task: Task, rng: np.random.Generator) -> str:
        await asyncio.sleep(0)
        return self._begin(task, rng)

    async def _act_async(self, command: str) -> Transition:
        match command.split():
            case ["sleep", seconds]:
                await asyncio.sleep(float(seconds))
                return Transition("slept")
            case ["await", path]:
                await asyncio.to_thread(wait_for, path)
                return Transition("slept")
            case ["cancelled"]:
                future = asyncio.get_running_loop().create_future()
                future.cancel()
                await future
            case ["raise"]:
                raise ZeroDivisionError("a bug")
            case ["exit"]:
                sys.exit(3)
        return self._act(command)


register("Toy/Count-v0", "tests.toy:CountEnv")
register("Toy/Tricky-v0", "tests.toy_envs:TrickyEnv")
register("Toy/Slow-v0", "tests.toy_envs:SlowEnv")
register("Toy/Async-v0", "tests.toy_envs:AsyncEnv")
