"""A small scenario that passes every check, and a subclass of it for each defect.

`DEFECTS` says which checks find which defect. `tests.validate.toy:CorridorEnv` is a subject in every process.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from agentgym_envs.core import StopReason, TextEnv, Transition
from agentgym_envs.errors import EnvError, InvalidAction, NoOracle
from agentgym_envs.grammar import BareGrammar, Parsed
from agentgym_envs.registration import register
from agentgym_envs.task import Difficulty, Split, Task, TaskTable

SPLITS: tuple[Split, ...] = ("train", "validation", "test")
TASKS = [
    Task(f"corridor/{n}/{i}", SPLITS[i % 3], "short" if n < 6 else "long", f"pass {n} doors", {"doors": n})
    for n in range(3, 9)
    for i in range(6)
]


class CorridorTasks(TaskTable):
    """The tasks, with the number of doors as their difficulty."""

    def difficulty(self, task: Task) -> Difficulty | None:
        return Difficulty(task.data["doors"])


class CorridorEnv(TextEnv):
    """Follow the lamp through doors. A wrong door ends the episode."""

    tasks: CorridorTasks = CorridorTasks("corridor", 1, TASKS)
    rules = "At each door a lamp is lit. Write the side of the lamp: west or east"

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.path = [("west", "east")[side] for side in rng.integers(2, size=task.data["doors"]).tolist()]
        self.at, self.lost = 0, False
        return f"You pass {len(self.path)} doors. {self._lamp()}"

    def _act(self, command: str) -> Transition:
        if command not in ("west", "east"):
            raise InvalidAction("Write: west or east")
        self.lost = command != self.path[self.at]
        if self.lost:
            return Transition("A wall.", 0.0, True, success=False)
        self.at += 1
        solved = self.at == len(self.path)
        return Transition("Outside!" if solved else self._lamp(), float(solved), solved)

    def _lamp(self) -> str:
        return f"The lamp is in the {self.path[self.at]}."

    def _state(self) -> str:
        return f"{self.path} {self.at} {self.lost}"

    def _plan(self) -> Sequence[str]:
        return self.path[self.at :]

    def random_command(self, rng: random.Random) -> str:
        return rng.choice(("west", "east"))


class ResetCrash(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        raise KeyError("a bug")


class ResetFails(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        raise EnvError("no power")


class SeedIgnored(CorridorEnv):
    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        return super()._choose(options, 0)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return super()._begin(task, np.random.default_rng(1))


class Unseeded(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return f"{super()._begin(task, rng)} {random.SystemRandom().random()}"


class GlobalRng(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        random.random()
        return super()._begin(task, rng)


class SharedState(CorridorEnv):
    places: dict[str, int] = {}  # noqa: RUF012

    @property
    def at(self) -> int:
        return self.places["at"]

    @at.setter
    def at(self, value: int) -> None:
        self.places["at"] = value


class Leftover(CorridorEnv):
    junk = 0

    def _act(self, command: str) -> Transition:
        if command not in ("west", "east"):
            self.junk += 1
        return super()._act(command)

    def _lamp(self) -> str:
        return super()._lamp() + " Again?" * min(self.junk, 1)


class OracleFails(CorridorEnv):
    def _plan(self) -> Sequence[str]:
        *first, last = super()._plan()
        return [*first, "west" if last == "east" else "east"]


class RewardNan(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=float("nan")) if done.reward else done


class RewardTooLarge(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=2 * done.reward)


class HighFloor(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return super()._act(command) if command else Transition("Fine.", 1.0, True)


class LeakedPlan(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return f"{super()._begin(task, rng)}\n(solution: {', '.join(self.path)})"


class LeakedInInfo(CorridorEnv):
    def _details(self) -> Mapping[str, Any]:
        return {"doors": list(self.path)}


class LeakedByCommand(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return Transition(" ".join(self.path)) if command == "hint" else super()._act(command)


class CheatCode(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return Transition("You win.", 1.0, True) if command == "win" else super()._act(command)


_BEGAN = time.time()


class ClockVerdict(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=0.95) if done.reward and time.time() > _BEGAN + 80_000 else done


class SetOrder(CorridorEnv):
    def _lamp(self) -> str:
        return f"{super()._lamp()} Doors: {' '.join({'oak', 'iron', 'glass', 'paper', 'straw', 'stone', 'silk'})}"


class TimeZone(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=done.reward * (0.95 if time.tzname[0] in ("+13", "+14", "-11", "WST") else 1.0))


class Phones(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.connect(("192.0.2.1", 9))  # a documentation address, and a datagram socket sends nothing here
        return super()._begin(task, rng)


class VerdictByPhone(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
                line.connect(("192.0.2.1", 9))
        except OSError:
            return done._replace(reward=0.95 * done.reward)
        return done


class Writes(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        os.close(os.open(__file__, os.O_RDWR))
        return super()._begin(task, rng)


class ChangesVariable(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        os.environ["CORRIDOR"] = str(self.episode_seed)
        return super()._begin(task, rng)


class Hoards(CorridorEnv):
    kept: list[Any] = []  # noqa: RUF012

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.kept.append(bytearray(600_000))
        return super()._begin(task, rng)


class OpensFiles(CorridorEnv):
    files: list[int] = []  # noqa: RUF012

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.files.append(os.open(os.devnull, os.O_RDONLY))
        return super()._begin(task, rng)


class StartsThreads(CorridorEnv):
    release = threading.Event()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        threading.Thread(target=self.release.wait, args=(60,), daemon=True).start()
        return super()._begin(task, rng)


class StartsProcess(CorridorEnv):
    started = 0

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        if not self.started:  # one per environment, as it takes milliseconds
            self.started = 1
            subprocess.run(["true"], check=True)
        return super()._begin(task, rng)


class Surrogate(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return super()._begin(task, rng) + "\ud800"


class WrongTurn(CorridorEnv):
    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._info(details), "turn": 0}


class InfoNotJson(CorridorEnv):
    def _details(self) -> Mapping[str, Any]:
        return {"doors": (1, 2)}  # JSON has lists only


class InfoObject(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return super()._act(command)._replace(info={"doors": {1}})


class ScoreDrifts(CorridorEnv):
    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        return {**info, "score": info["score"] / 2}


class RefusedPlan(CorridorEnv):
    def _plan(self) -> Sequence[str]:
        return ["hop", *super()._plan()]


class ShoutingGrammar(BareGrammar):
    def parse(self, text: str) -> Parsed:
        return Parsed("", text.strip().upper())


class LossyGrammar(CorridorEnv):
    grammars = {**TextEnv.grammars, "shouting": ShoutingGrammar}  # noqa: RUF012


class MiscountedTasks(CorridorTasks):
    def counts(self) -> dict[str, dict[Split, int]]:
        return {"short": {"train": 99}}


class WrongCounts(CorridorEnv):
    tasks = MiscountedTasks("corridor", 1, TASKS)


class RestlessTasks(CorridorTasks):
    draws = 0

    def draw(self, key: int, **selection: Any) -> Task:
        RestlessTasks.draws += 1
        return super().draw(key + RestlessTasks.draws, **selection)


class RestlessDraw(CorridorEnv):
    tasks = RestlessTasks("corridor", 1, TASKS)


class UnversionedTasks(CorridorEnv):
    tasks = CorridorTasks("corridor", 0, TASKS)


class EndlessSteps(CorridorEnv):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._stop in (StopReason.SUCCESS, StopReason.FAILURE):
            return "It is over.", 0.0, True, False, self._info({"invalid_action": None})
        return super().step(action)


class NeverCloses(CorridorEnv):
    def close(self) -> None:
        pass


class AnyTask(CorridorEnv):
    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        known = options.get("task") in {task.id for task in TASKS} or not options
        return super()._choose(options if known else {}, key)


class LongNumbers(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return Transition("A number.") if command.isdigit() and int(command) >= 0 else super()._act(command)


class CarelessSave(CorridorEnv):
    def _save(self) -> Any:
        return list(self.path)

    def _load(self, state: Any) -> None:
        self.path, self.at, self.lost = list(state), 0, False


class Unpicklable(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.key = lambda: None
        return super()._begin(task, rng)


class ConstantState(CorridorEnv):
    def _state(self) -> str:
        return "somewhere"


class PlanningMoves(CorridorEnv):
    def _plan(self) -> Sequence[str]:
        plan = list(super()._plan())
        self.path = [*self.path, "east"]
        return plan


class NoRandomCommand(CorridorEnv):
    def random_command(self, rng: random.Random) -> str:
        return TextEnv.random_command(self, rng)


class OwnDice(CorridorEnv):
    def random_command(self, rng: random.Random) -> str:
        return random.SystemRandom().choice(("west", "east"))


class DrawsNothing(CorridorEnv):
    def _draw(self) -> str:
        return ""


class Unsolvable(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        assert self.task is not None
        return done._replace(reward=0.0, success=False) if done.terminated and self.task.group == "long" else done

    def _plan(self) -> Sequence[str]:
        assert self.task is not None
        if self.task.group == "long":
            raise NoOracle("walled in")
        return super()._plan()


class ReversedTasks(CorridorTasks):
    def difficulty(self, task: Task) -> Difficulty | None:
        return Difficulty(20 - task.data["doors"])


class WrongDifficulty(CorridorEnv):
    tasks = ReversedTasks("corridor", 1, TASKS)


class EveryDoorOpens(CorridorEnv):
    def _act(self, command: str) -> Transition:
        return super()._act(self.path[self.at] if command in ("west", "east") else command)


class Lottery(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        text = super()._begin(task, rng)
        self.prize = float(self.episode_seed % 2)
        return text

    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=self.prize, success=True) if done.reward else done


class Gullible(CorridorEnv):
    def _act(self, command: str) -> Transition:
        assert self.task is not None
        return Transition("Indeed.", 1.0, True) if command == self.task.goal else super()._act(command)


class Consolation(CorridorEnv):
    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(reward=1.0) if self.lost else done


class NoRules(CorridorEnv):
    rules = ""
    grammars = {**TextEnv.grammars, "bare": lambda: BareGrammar(instructions="")}  # noqa: RUF012


class WrongRemoteOptions(CorridorEnv):
    remote_options = TextEnv.remote_options | {"recipes"}


class NumberDeclared(CorridorEnv):
    heavy = 1  # type: ignore[assignment]


class DependsOnOptions(CorridorEnv):
    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        self.named = bool(options)
        return super()._choose(options, key)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return super()._begin(task, rng) + (" You chose it." if self.named else "")


class MainThreadOnly(CorridorEnv):
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        here = threading.current_thread() is threading.main_thread()
        return super()._begin(task, rng) + ("" if here else " It is dark.")


class IgnoresGenerator(CorridorEnv):
    def _seed_episode(self, seed: int | None) -> int:
        episode_seed = super()._seed_episode(None)
        return episode_seed if seed is None else seed


class Stuck(CorridorEnv):
    def _act(self, command: str) -> Transition:
        threading.Event().wait(60)
        return super()._act(command)


class Echo(gym.Env[str, str]):
    """A plain Gymnasium environment with texts: repeat the word."""

    observation_space = spaces.Text(20)
    action_space = spaces.Text(8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.word = "".join(self.np_random.choice(list("abcdef"), 4))
        return self.word, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "done", float(action == self.word), True, False, {}


class DeafEcho(Echo):
    """It does not use the seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        _, info = super().reset(seed=seed)
        self.word = "".join(random.SystemRandom().choices("abcdef", k=4))
        return self.word, info


register("Toy/Corridor-v0", "tests.validate.toy:CorridorEnv")
register("Toy/Unversioned", "tests.validate.toy:CorridorEnv")
register("Toy/MainThread-v0", "tests.validate.toy:MainThreadOnly")


def cleanup() -> Iterator[None]:
    """Release what the defective environments keep, after a test."""
    yield
    StartsThreads.release.set()
    StartsThreads.release = threading.Event()
    Hoards.kept.clear()
    while OpensFiles.files:
        os.close(OpensFiles.files.pop())
    os.environ.pop("CORRIDOR", None)
