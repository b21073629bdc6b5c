"""What the agent's account did and got before the episode, and what waits for it as a moderator."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, some_time_ago, stamp
from agentgym_envs.webarena.sites.forum.members import ME, Board, soon_after
from agentgym_envs.webarena.sites.forum.seed_threads import Post
from agentgym_envs.webarena.sites.forum.tables import insert
from agentgym_envs.webarena.sites.forum.talk import Comment
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import BANS, CONVERSATIONS, NOTES, REPORTS
from agentgym_envs.webarena.sites.world import SeedInputs

_VOTES, _SAVED, _HIDDEN, _BLOCKED, _CONVERSATIONS, _UNREAD, _REPORTS, _BANS = 60, 9, 3, 2, 8, 3, 6, 3


def write(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board], posts: Sequence[Post]) -> None:
    """Write what concerns the agent's account."""
    rng = seeds.rng
    members = {member.id for board in boards for member in board.members}
    others = sorted(members - {ME})
    read = [post for post in posts if post.author.id != ME]
    heard = [comment for post in read for comment in post.comments if comment.author.id != ME]
    insert(database, "forum_votes", _votes(rng, read, heard))
    insert(database, "forum_saved", _saved(rng, read, heard))
    hidden = sorted(rng.sample([post.id for post in read if not post.pinned], _HIDDEN))
    insert(database, "forum_hidden", ({"account": ME, "post": post} for post in hidden))
    blocked = rng.sample(others, _BLOCKED)
    notes = rng.sample(NOTES, _BLOCKED)
    rows = [
        {"account": ME, "user": user, "created": _lately(rng), "note": note}
        for user, note in zip(blocked, notes, strict=True)
    ]
    insert(database, "forum_blocks", rows)
    _converse(database, seeds, boards, [user for user in others if user not in blocked])
    insert(database, "forum_notifications", _notifications(posts))
    board = next(board for board in boards if any(member.id == ME for member in board.moderators))
    _moderate(database, rng, board, [post for post in posts if post.board is board])


def _lately(rng: random.Random) -> str:
    return some_time_ago(rng, most_days=200)


def _votes(rng: random.Random, posts: Sequence[Post], comments: Sequence[Comment]) -> list[dict[str, Any]]:
    """Votes on posts and comments of the last months, mostly for them."""
    rows = []
    for post in rng.sample(posts[len(posts) // 2 :], _VOTES // 2):
        rows.append({"account": ME, "post": post.id, "comment": None, "value": rng.choice((1, 1, 1, -1))})
    for comment in rng.sample(comments[len(comments) // 2 :], _VOTES // 2):
        rows.append({"account": ME, "post": None, "comment": comment.id, "value": rng.choice((1, 1, 1, 1, -1))})
    return rows


def _saved(rng: random.Random, posts: Sequence[Post], comments: Sequence[Comment]) -> list[dict[str, Any]]:
    kept = [(post.id, None, post.created) for post in rng.sample(posts, _SAVED * 2 // 3)]
    kept_too = [(None, comment.id, comment.created) for comment in rng.sample(comments, _SAVED // 3)]
    rows = []
    for post, comment, created in [*kept, *kept_too]:
        moment = created + (NOW - created) * rng.uniform(0.02, 0.4)
        rows.append({"account": ME, "post": post, "comment": comment, "created": stamp(moment)})
    return sorted(rows, key=lambda row: str(row["created"]))


def _converse(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board], others: Sequence[int]) -> None:
    """Private messages, each with another person; in the latest, what they said last is unread."""
    rng = seeds.rng
    partners = rng.sample(others, _CONVERSATIONS)
    scripts = rng.sample(CONVERSATIONS, _CONVERSATIONS)
    days = sorted((rng.uniform(0.3, 90) for _ in scripts), reverse=True)
    hobbies = [board.subject.title.lower() for board in boards if "{" not in board.subject.title]
    messages: list[dict[str, Any]] = []
    for number, (partner, script, ago) in enumerate(zip(partners, scripts, days, strict=True), 1):
        slots = Slots(rng, seeds.country, (), {"board": rng.choice(hobbies)})
        last_is_theirs = number > _CONVERSATIONS - _UNREAD or rng.random() < 0.5
        opener, answerer = (partner, ME) if last_is_theirs == (len(script) % 2 == 0) else (ME, partner)
        row = {"id": number, "opener": opener, "partner": answerer, "subject": slots.fill(script[0])}
        insert(database, "forum_conversations", [row])
        moment = soon_after(rng, NOW - datetime.timedelta(days=ago))
        for place, text in enumerate(script[1:]):
            author = (opener, answerer)[place % 2]
            last = place == len(script) - 2 and number > _CONVERSATIONS - _UNREAD
            body, when = slots.fill(text), stamp(moment)
            messages.append(
                {"conversation": number, "author": author, "body": body, "created": when, "unread": int(last)}
            )
            moment = soon_after(rng, moment)
    insert(database, "forum_messages", sorted(messages, key=lambda row: str(row["created"])))


def _notifications(posts: Sequence[Post]) -> Iterator[dict[str, Any]]:
    """What others answered to the account, the latest unread."""
    answers = [
        comment
        for post in posts
        for comment in post.comments
        if comment.author.id != ME and (comment.parent.author if comment.parent else post.author).id == ME
    ]
    answers.sort(key=lambda comment: comment.id)
    for place, comment in enumerate(answers):
        yield {"account": ME, "comment": comment.id, "unread": int(place >= len(answers) - 5)}


def _moderate(database: sqlite3.Connection, rng: random.Random, board: Board, posts: Sequence[Post]) -> None:
    """Reports and bans in the board that the account moderates."""
    reporters = [member.id for member in board.members if member.id != ME]
    comments = [comment for post in posts for comment in post.comments if comment.author.id != ME]
    targets: list[tuple[int, int | None]] = [
        (post.id, None) for post in rng.sample([p for p in posts if p.author.id != ME and not p.pinned], 2)
    ]
    for comment in rng.sample(comments, min(len(comments), _REPORTS - len(targets))):
        targets.append((0, comment.id))
    rng.shuffle(targets)
    moments = sorted(some_time_ago(rng, most_days=6) for _ in targets)
    rows = [
        {
            "reporter": rng.choice(reporters),
            "post": post or None,
            "comment": comment,
            "reason": rng.choice(REPORTS),
            "created": moment,
            "resolved": int(place < 2),
        }
        for place, ((post, comment), moment) in enumerate(zip(targets, moments, strict=True))
    ]
    insert(database, "forum_reports", rows)
    staff = [member.id for member in board.moderators]
    banned = rng.sample([member.id for member in board.members if member.id not in staff], _BANS)
    bans = [{"board": board.id, "user": user, "reason": rng.choice(BANS), "created": _lately(rng)} for user in banned]
    insert(database, "forum_bans", bans)
