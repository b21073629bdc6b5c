"""The members of boards, while a world is generated."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import NOW
from agentgym_envs.webarena.sites.forum.subjects import Subject

ME = 1
"""Id of the agent's account."""
_MINE = 0.045
"""Share of the agent's account in the posts and comments of a board that it subscribes to."""
_HOURS = (2, 1, 1, 0, 0, 1, 3, 6, 8, 8, 7, 7, 9, 8, 6, 6, 7, 9, 11, 13, 14, 13, 9, 5)
"""Relative number of posts and comments by hour of the day."""


@dataclass(slots=True)
class ForumMember:
    """An account. `activity` is the relative number of its posts and comments; the agent's own is set elsewhere."""

    id: int
    name: str
    joined: datetime.datetime
    activity: float
    interest: str = "books"


@dataclass(slots=True)
class Board:
    """A board. `weight` is its relative number of posts."""

    id: int
    name: str
    subject: Subject
    things: tuple[str, ...]
    weight: float
    opened: datetime.datetime
    members: list[ForumMember] = field(default_factory=list)
    moderators: list[ForumMember] = field(default_factory=list)
    _weights: list[float] = field(default_factory=list)

    def author(self, rng: random.Random, moment: datetime.datetime, exclude: Sequence[ForumMember] = ()) -> ForumMember:
        """Draw a member who had an account at that time and is not in `exclude`."""
        mine = [member for member in self.members if member.id == ME]
        if mine and rng.random() < _MINE and mine[0] not in exclude:
            return mine[0]
        if not self._weights:
            self._weights = [member.activity for member in self.members]
        for _ in range(40):
            candidate = rng.choices(self.members, self._weights)[0]
            if candidate.joined < moment and candidate not in exclude:
                return candidate
        return self.moderators[0]


def moment_of_day(rng: random.Random, day: datetime.datetime) -> datetime.datetime:
    """Draw a time of that day, more often in the evening than at night, and never in the future."""
    hour = rng.choices(range(24), _HOURS)[0]
    moment = day.replace(hour=hour, minute=rng.randrange(60), second=rng.randrange(60))
    return moment if moment < NOW else moment - datetime.timedelta(days=1)


def soon_after(rng: random.Random, moment: datetime.datetime) -> datetime.datetime:
    """Draw the time of a reply: usually within a day, sometimes after weeks, rarely at night."""
    reply_time = moment + datetime.timedelta(seconds=60 + int(rng.lognormvariate(9.3, 1.5)))
    if 1 <= reply_time.hour < 6:
        reply_time += datetime.timedelta(hours=6)
    if reply_time < NOW:
        return reply_time
    room = (NOW - moment).total_seconds()
    return moment + datetime.timedelta(seconds=int(room * rng.uniform(0.1, 0.95)))
