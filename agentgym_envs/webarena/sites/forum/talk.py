"""A thread of comments: who says what to whom."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.forum.members import Board, Member, soon_after
from agentgym_envs.webarena.sites.forum.subjects import Topic
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import ASIDES, LEADS, QUERIES, SAYINGS

_MOST, _DEEPEST = 32, 5
_FIRST = {
    "trouble": {"answer": 7, "same": 1, "query": 2, "remark": 1},
    "choice": {"answer": 9, "both": 2, "query": 1, "remark": 1},
    "wish": {"answer": 7, "same": 1, "query": 1, "remark": 1},
    "show": {"praise": 6, "query": 2, "remark": 2},
    "tip": {"grateful": 4, "remark": 3, "doubt": 1, "query": 1},
    "news": {"reaction": 5, "remark": 3, "query": 1},
    "welcome": {"hello": 1},
}
"""What a comment on a post of a kind does, with weights."""
_NEXT = {
    "answer": {"thanks": 4, "confirm": 3, "doubt": 2},
    "seconded": {"agree": 1, "disagree": 1},
    "same": {"agree": 1},
    "query": {"told": 1},
    "told": {"agree": 2, "remark": 1},
    "thanks": {"welcome": 1},
    "disagree": {"disagree": 2, "agree": 1, "remark": 1},
    "doubt": {"disagree": 2, "agree": 1, "remark": 1},
    "agree": {"remark": 2, "agree": 1},
    "confirm": {"remark": 2, "agree": 1},
    "praise": {"pleased": 2, "agree": 1},
    "grateful": {"pleased": 2, "agree": 1},
    "welcome": {"pleased": 1},
    "hello": {"greet": 1},
    "greet": {"pleased": 1},
}
"""What a reply to such a comment does."""
_ELSE = {"agree": 3, "disagree": 2, "remark": 2}
_LONELY = ("thanks", "told", "welcome", "pleased", "greet")
"""What nobody says twice to the same comment."""
_FROM_ASKED = ("thanks", "told", "welcome", "pleased")
"""What only whoever was spoken to says."""


@dataclass(slots=True)
class Comment:
    """A comment as it is made. `role` is what it does."""

    parent: Comment | None
    role: str
    author: Member
    created: datetime.datetime
    body: str = ""
    edited: datetime.datetime | None = None
    score: int = 1
    id: int = 0
    replied: bool = False
    told: tuple[str, ...] = ()
    """What may be told to whoever asks this."""

    @property
    def depth(self) -> int:
        """How many comments are above it."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass(slots=True)
class Talk:
    """The talk below one post."""

    rng: random.Random
    board: Board
    topic: Topic
    slots: Slots
    author: Member
    created: datetime.datetime
    _comments: list[Comment] = field(default_factory=list)
    _answers: list[str] = field(default_factory=list)
    _remarks: list[str] = field(default_factory=list)
    _said: dict[str, None] = field(default_factory=dict)
    """Sayings that were used, so that a thread does not repeat itself while it need not."""

    def held(self) -> list[Comment]:
        """All comments, each after the one that it answers."""
        if self.topic.kind != "tip":
            self._answers.extend((*self.topic.says, *self.topic.counters))
        self._remarks.extend(self.board.subject.remarks)
        self.rng.shuffle(self._answers)
        self.rng.shuffle(self._remarks)
        for _ in range(min(_MOST, int(self.rng.lognormvariate(1.6, 0.9)))):
            comment = self._comment()
            comment.body = self._words(comment)
            self._comments.append(comment)
        return self._comments

    def _comment(self) -> Comment:
        """Somebody's comment, still without words."""
        rng = self.rng
        parent = self._parent() if self._comments and rng.random() < 0.55 else None
        weights = _FIRST[self.topic.kind] if parent is None else self._replies(parent)
        role = self._possible(rng.choices(list(weights), list(weights.values()))[0], parent)
        created = soon_after(rng, self.created if parent is None else parent.created)
        comment = Comment(parent, role, self._speaker(role, parent, created), created)
        if rng.random() < 0.06:
            comment.edited = soon_after(rng, created)
        if parent is not None and role in _LONELY:
            parent.replied = True
        return comment

    def _possible(self, role: str, parent: Comment | None) -> str:
        """What is done instead once all answers are given or all remarks made."""
        if role == "answer" and not self._answers:
            role = "seconded" if self.rng.random() < 0.6 else "remark"
        if role == "remark" and not self._remarks:
            role = "agree" if parent is not None else {"show": "praise", "tip": "grateful"}.get(self.topic.kind, role)
            role = "seconded" if role == "remark" else role
        if role == "seconded" and not any(said.role == "answer" for said in self._comments):
            role = "reaction"
        return role

    def _replies(self, comment: Comment) -> dict[str, int]:
        """What a reply may do: to an opinion, nobody says that it helped."""
        opinion = comment.role == "answer" and self.topic.kind == "choice"
        return _NEXT["seconded" if opinion else comment.role] if comment.role in _NEXT else _ELSE

    def _parent(self) -> Comment | None:
        """A comment that may still be answered, or none."""
        found = self.rng.choice(self._comments[-8:])
        only = set(self._replies(found)) <= set(_LONELY)
        return None if found.depth >= _DEEPEST or (only and found.replied) else found

    def _speaker(self, role: str, parent: Comment | None, moment: datetime.datetime) -> Member:
        """Thanks and explanations come from whoever was spoken to; nobody answers themselves."""
        if parent is None:
            spoken = [comment.author for comment in self._comments if comment.parent is None]
            return self.board.author(self.rng, moment, (self.author, *spoken))
        asked = self.author if parent.parent is None else parent.parent.author
        if role in _FROM_ASKED and asked is not parent.author:
            return asked
        return self.board.author(self.rng, moment, (parent.author,))

    def _words(self, comment: Comment) -> str:
        rng, slots = self.rng, self.slots.copy()
        if comment.role == "remark":
            return slots.fill(self._remarks.pop())
        if comment.role == "answer":
            lead = slots.fill(rng.choice(LEADS)) if rng.random() < 0.2 else ""
            text = lead + slots.fill(self._answers.pop())
        else:
            slots["user"] = rng.choice([said.author.name for said in self._comments if said.role == "answer"] or [""])
            text = slots.fill(self._saying(comment))
        if self._remarks and rng.random() < 0.2:
            return f"{text} {slots.fill(self._remarks.pop())}"
        return f"{text} {slots.fill(self._unsaid(ASIDES))}" if rng.random() < 0.4 else text

    def _saying(self, comment: Comment) -> str:
        """A saying for a role, an unused one if there is one left."""
        if comment.role == "told" and comment.parent is not None:
            return self.rng.choice(comment.parent.told)
        queries = QUERIES.get(self.topic.kind, {})
        choices = list(queries) if comment.role == "query" else SAYINGS[comment.role]
        saying = self._unsaid(choices)
        comment.told = queries.get(saying, ())
        return saying

    def _unsaid(self, choices: Sequence[str]) -> str:
        saying = self.rng.choice([choice for choice in choices if choice not in self._said] or choices)
        self._said[saying] = None
        return saying
