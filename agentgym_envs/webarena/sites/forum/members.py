"""Who takes part in which board, while a world is being made."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import NOW
from agentgym_envs.webarena.sites.forum.subjects import Subject

ME = 1
"""The account that the agent has."""
_MINE = 0.045
"""The share of the agent's account in what is written on a board that it subscribes to."""
_HOURS = (2, 1, 1, 0, 0, 1, 3, 6, 8, 8, 7, 7, 9, 8, 6, 6, 7, 9, 11, 13, 14, 13, 9, 5)
"""How much is written in each hour of the day."""


@dataclass(slots=True)
class Member:
    """Somebody with an account. `activity` weighs how much they write; the agent's is not drawn by it."""

    id: int
    name: str
    joined: datetime.datetime
    activity: float
    interest: str = "books"


@dataclass(slots=True)
class Board:
    """A board. `weight` says how lively it is."""

    id: int
    name: str
    subject: Subject
    things: tuple[str, ...]
    weight: float
    opened: datetime.datetime
    members: list[Member] = field(default_factory=list)
    moderators: list[Member] = field(default_factory=list)
    _weights: list[float] = field(default_factory=list)

    def author(self, rng: random.Random, moment: datetime.datetime, but: Sequence[Member] = ()) -> Member:
        """A member who had an account at that moment, and is none of some."""
        mine = [member for member in self.members if member.id == ME]
        if mine and rng.random() < _MINE and mine[0] not in but:
            return mine[0]
        if not self._weights:
            self._weights = [member.activity for member in self.members]
        for _ in range(40):
            found = rng.choices(self.members, self._weights)[0]
            if found.joined < moment and found not in but:
                return found
        return self.moderators[0]


def moment_of_day(rng: random.Random, day: datetime.datetime) -> datetime.datetime:
    """A moment of that day, rather in the evening than at night, and not in the future."""
    hour = rng.choices(range(24), _HOURS)[0]
    moment = day.replace(hour=hour, minute=rng.randrange(60), second=rng.randrange(60))
    return moment if moment < NOW else moment - datetime.timedelta(days=1)


def soon_after(rng: random.Random, moment: datetime.datetime) -> datetime.datetime:
    """When somebody answers: mostly within the day, sometimes after weeks, hardly ever at night."""
    answer = moment + datetime.timedelta(seconds=60 + int(rng.lognormvariate(9.3, 1.5)))
    if 1 <= answer.hour < 6:
        answer += datetime.timedelta(hours=6)
    if answer < NOW:
        return answer
    room = (NOW - moment).total_seconds()
    return moment + datetime.timedelta(seconds=int(room * rng.uniform(0.1, 0.95)))
