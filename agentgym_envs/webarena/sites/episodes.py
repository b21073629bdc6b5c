"""The worlds that are being played in, each a database of its own behind one server."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from dataclasses import dataclass, field

from agentgym_envs.webarena.browser.per_process import once_per_process
from agentgym_envs.webarena.sites.world import World, opened

HEADER = "x-episode"
"""The header by which a browser says which episode its requests are of."""


@dataclass(eq=False)
class Episode:
    """One copy of a world. Whoever uses `database` holds `lock`."""

    world: World
    token: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    database: sqlite3.Connection = field(init=False, repr=False)
    failures: list[str] = field(default_factory=list)
    """What went wrong in the sites themselves; never the agent's fault."""
    closed: bool = False

    def __post_init__(self) -> None:
        self.database = opened(self.world.image)

    def copy(self) -> sqlite3.Connection:
        """The database as it is now, for whoever scores the episode."""
        with self.lock:
            return opened(self.database.serialize())


class Episodes:
    """Those that run in this process, by their tokens."""

    def __init__(self) -> None:
        self._running: dict[str, Episode] = {}

    def __len__(self) -> int:
        return len(self._running)

    def open(self, world: World) -> Episode:
        """Begin one."""
        episode = Episode(world)
        self._running[episode.token] = episode
        return episode

    def find(self, token: str) -> Episode | None:
        """The one of a token, if it runs."""
        return self._running.get(token)

    def close(self, episode: Episode) -> None:
        """End one and free its database; twice is fine."""
        if self._running.pop(episode.token, None) is not None:
            with episode.lock:
                episode.closed = True
                episode.database.close()


@once_per_process
def episodes() -> Episodes:
    """The episodes of this process."""
    return Episodes()
