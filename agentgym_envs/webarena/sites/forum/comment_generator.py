"""Generation of comment threads."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.forum.members import Board, ForumMember, soon_after
from agentgym_envs.webarena.sites.forum.subjects import Topic
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import ASIDES, LEADS, QUERIES, SAYINGS

_MAX_COMMENTS, _MAX_DEPTH = 32, 5
_TOP_LEVEL_ROLES = {
    "trouble": {"answer": 7, "same": 1, "query": 2, "remark": 1},
    "choice": {"answer": 9, "both": 2, "query": 1, "remark": 1},
    "wish": {"answer": 7, "same": 1, "query": 1, "remark": 1},
    "show": {"praise": 6, "query": 2, "remark": 2},
    "tip": {"grateful": 4, "remark": 3, "doubt": 1, "query": 1},
    "news": {"reaction": 5, "remark": 3, "query": 1},
    "welcome": {"hello": 1},
}
"""Roles of comments on a post, by kind of the post, with weights."""
_REPLY_ROLES = {
    "answer": {"thanks": 4, "confirm": 3, "doubt": 2},
    "seconded": {"agree": 1, "disagree": 1},
    "same": {"agree": 1},
    "query": {"explanation": 1},
    "explanation": {"agree": 2, "remark": 1},
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
"""Roles of replies, by role of the comment above, with weights."""
_OTHER_REPLY_ROLES = {"agree": 3, "disagree": 2, "remark": 2}
_ONCE_PER_COMMENT = ("thanks", "explanation", "welcome", "pleased", "greet")
"""Roles that at most one reply to a comment has."""
_FROM_ADDRESSEE = ("thanks", "explanation", "welcome", "pleased")
"""Roles that only the author of the comment above the parent has, or the author of the post."""


@dataclass(slots=True)
class ForumComment:
    """A comment during generation. `role` is its function in the thread."""

    parent: ForumComment | None
    role: str
    author: ForumMember
    created: datetime.datetime
    body: str = ""
    edited: datetime.datetime | None = None
    score: int = 1
    id: int = 0
    replied: bool = False
    explanations: tuple[str, ...] = ()
    """Possible texts of a reply that explains."""

    @property
    def depth(self) -> int:
        """Number of comments above it."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass(slots=True)
class CommentGenerator:
    """Generates the comments on one post."""

    rng: random.Random
    board: Board
    topic: Topic
    slots: Slots
    author: ForumMember
    created: datetime.datetime
    _comments: list[ForumComment] = field(default_factory=list)
    _answers: list[str] = field(default_factory=list)
    _remarks: list[str] = field(default_factory=list)
    _used_sayings: dict[str, None] = field(default_factory=dict)
    """Used phrases. A thread repeats a phrase only after all phrases are used."""

    def generate(self) -> list[ForumComment]:
        """Return all comments, each after its parent."""
        if self.topic.kind != "tip":
            self._answers.extend((*self.topic.says, *self.topic.counters))
        self._remarks.extend(self.board.subject.remarks)
        self.rng.shuffle(self._answers)
        self.rng.shuffle(self._remarks)
        for _ in range(min(_MAX_COMMENTS, int(self.rng.lognormvariate(1.6, 0.9)))):
            comment = self._comment()
            comment.body = self._write(comment)
            self._comments.append(comment)
        return self._comments

    def _comment(self) -> ForumComment:
        """Draw the parent, role, author and time of a comment; its text is still empty."""
        rng = self.rng
        parent = self._parent() if self._comments and rng.random() < 0.55 else None
        weights = _TOP_LEVEL_ROLES[self.topic.kind] if parent is None else self._replies(parent)
        role = self._feasible_role(rng.choices(list(weights), list(weights.values()))[0], parent)
        created = soon_after(rng, self.created if parent is None else parent.created)
        comment = ForumComment(parent, role, self._author(role, parent, created), created)
        if rng.random() < 0.06:
            comment.edited = soon_after(rng, created)
        if parent is not None and role in _ONCE_PER_COMMENT:
            parent.replied = True
        return comment

    def _feasible_role(self, role: str, parent: ForumComment | None) -> str:
        """Replace a role for which no answer or remark is left."""
        if role == "answer" and not self._answers:
            role = "seconded" if self.rng.random() < 0.6 else "remark"
        if role == "remark" and not self._remarks:
            role = "agree" if parent is not None else {"show": "praise", "tip": "grateful"}.get(self.topic.kind, role)
            role = "seconded" if role == "remark" else role
        if role == "seconded" and not any(comment.role == "answer" for comment in self._comments):
            role = "reaction"
        return role

    def _replies(self, comment: ForumComment) -> dict[str, int]:
        """Return the weights of the roles of a reply. Thanks and confirmations do not follow an opinion."""
        opinion = comment.role == "answer" and self.topic.kind == "choice"
        return (
            _REPLY_ROLES["seconded" if opinion else comment.role]
            if comment.role in _REPLY_ROLES
            else _OTHER_REPLY_ROLES
        )

    def _parent(self) -> ForumComment | None:
        """Draw a comment that may still get a reply, or None."""
        candidate = self.rng.choice(self._comments[-8:])
        only = set(self._replies(candidate)) <= set(_ONCE_PER_COMMENT)
        return None if candidate.depth >= _MAX_DEPTH or (only and candidate.replied) else candidate

    def _author(self, role: str, parent: ForumComment | None, moment: datetime.datetime) -> ForumMember:
        """Draw the author. Thanks and explanations come from the addressee; authors never reply to themselves."""
        if parent is None:
            spoken = [comment.author for comment in self._comments if comment.parent is None]
            return self.board.author(self.rng, moment, (self.author, *spoken))
        addressee = self.author if parent.parent is None else parent.parent.author
        if role in _FROM_ADDRESSEE and addressee is not parent.author:
            return addressee
        return self.board.author(self.rng, moment, (parent.author,))

    def _write(self, comment: ForumComment) -> str:
        rng, slots = self.rng, self.slots.copy()
        if comment.role == "remark":
            return slots.fill(self._remarks.pop())
        if comment.role == "answer":
            lead = slots.fill(rng.choice(LEADS)) if rng.random() < 0.2 else ""
            text = lead + slots.fill(self._answers.pop())
        else:
            slots["user"] = rng.choice(
                [other.author.name for other in self._comments if other.role == "answer"] or [""]
            )
            text = slots.fill(self._choose_saying(comment))
        if self._remarks and rng.random() < 0.2:
            return f"{text} {slots.fill(self._remarks.pop())}"
        return f"{text} {slots.fill(self._pick_unused(ASIDES))}" if rng.random() < 0.4 else text

    def _choose_saying(self, comment: ForumComment) -> str:
        """Return a phrase for the role, an unused one if possible."""
        if comment.role == "explanation" and comment.parent is not None:
            return self.rng.choice(comment.parent.explanations)
        queries = QUERIES.get(self.topic.kind, {})
        choices = list(queries) if comment.role == "query" else SAYINGS[comment.role]
        saying = self._pick_unused(choices)
        comment.explanations = queries.get(saying, ())
        return saying

    def _pick_unused(self, choices: Sequence[str]) -> str:
        saying = self.rng.choice([choice for choice in choices if choice not in self._used_sayings] or choices)
        self._used_sayings[saying] = None
        return saying
