"""The running episodes. All of them share one server; each has its own database."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from dataclasses import dataclass, field

from agentgym_envs.webarena.browser.per_process import once_per_process
from agentgym_envs.webarena.sites.world import World, open_image

HEADER = "x-episode"
"""The header with which a browser sends the token of its episode."""


@dataclass(eq=False)
class Episode:
    """One copy of a world. Hold `lock` while you use `database`."""

    world: World
    token: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    database: sqlite3.Connection = field(init=False, repr=False)
    failures: list[str] = field(default_factory=list)
    """Errors in the handlers of the sites. They are bugs in this package, never the agent's fault."""
    closed: bool = False

    def __post_init__(self) -> None:
        self.database = open_image(self.world.image)

    def copy(self) -> sqlite3.Connection:
        """Return a copy of the current database, for scoring; the world's own one if nothing has changed."""
        with self.lock:
            image = self.database.serialize()
        return self.world.database if image == self.world.image else open_image(image)


class Episodes:
    """The running episodes of this process, by token."""

    def __init__(self) -> None:
        self._running: dict[str, Episode] = {}

    def __len__(self) -> int:
        return len(self._running)

    def open(self, world: World) -> Episode:
        """Start an episode in a world."""
        episode = Episode(world)
        self._running[episode.token] = episode
        return episode

    def find(self, token: str) -> Episode | None:
        """Return the running episode with this token, or None."""
        return self._running.get(token)

    def close(self, episode: Episode) -> None:
        """End an episode and free its database. Closing it again has no effect."""
        if self._running.pop(episode.token, None) is not None:
            with episode.lock:
                episode.closed = True
                episode.database.close()


@once_per_process
def episodes() -> Episodes:
    """Return the episodes of this process."""
    return Episodes()
