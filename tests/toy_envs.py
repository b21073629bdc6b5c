"""Toy environments by id, also for worker processes: `tests.toy_envs:Toy/Count-v0` makes them import this module."""

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
"""Ends every hang in this process, so that a test leaves no thread behind."""


def wait_for(path: str) -> None:
    """Say in a file beside it that the wait has begun, and wait until a file is there."""
    Path(path + ".begun").touch()
    until(Path(path).exists)


class TrickyEnv(CountEnv):
    """`CountEnv` that fails and dawdles on command."""

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
    """`TrickyEnv` of which every session has a thread, and on a server a place in a worker process."""

    blocking = True


class AsyncEnv(CountEnv):
    """`CountEnv` that waits on the event loop."""

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
