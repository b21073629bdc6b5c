"""The history of the agent's account before the episode, and its open tasks as a moderator."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, some_time_ago, stamp
from agentgym_envs.webarena.sites.forum.comment_generator import ForumComment
from agentgym_envs.webarena.sites.forum.members import ME, Board, soon_after
from agentgym_envs.webarena.sites.forum.seed_threads import ForumPost
from agentgym_envs.webarena.sites.forum.tables import insert
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import BANS, CONVERSATIONS, NOTES, REPORTS
from agentgym_envs.webarena.sites.world import SeedInputs

_VOTES, _SAVED, _HIDDEN, _BLOCKED, _CONVERSATIONS, _UNREAD, _REPORTS, _BANS = 60, 9, 3, 2, 8, 3, 6, 3


def write(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board], posts: Sequence[ForumPost]) -> None:
    """Write the rows of the agent's account."""
    rng = seeds.rng
    members = {member.id for board in boards for member in board.members}
    others = sorted(members - {ME})
    posts_by_others = [post for post in posts if post.author.id != ME]
    comments = [comment for post in posts_by_others for comment in post.comments if comment.author.id != ME]
    insert(database, "forum_votes", _votes(rng, posts_by_others, comments))
    insert(database, "forum_saved", _saved(rng, posts_by_others, comments))
    hidden = sorted(rng.sample([post.id for post in posts_by_others if not post.pinned], _HIDDEN))
    insert(database, "forum_hidden", ({"account": ME, "post": post} for post in hidden))
    blocked = rng.sample(others, _BLOCKED)
    notes = rng.sample(NOTES, _BLOCKED)
    rows = [
        {"account": ME, "user": user, "created": _recent_time(rng), "note": note}
        for user, note in zip(blocked, notes, strict=True)
    ]
    insert(database, "forum_blocks", rows)
    _add_conversations(database, seeds, boards, [user for user in others if user not in blocked])
    insert(database, "forum_notifications", _notifications(posts))
    board = next(board for board in boards if any(member.id == ME for member in board.moderators))
    _add_moderation(database, rng, board, [post for post in posts if post.board is board])


def _recent_time(rng: random.Random) -> str:
    return some_time_ago(rng, most_days=200)


def _votes(rng: random.Random, posts: Sequence[ForumPost], comments: Sequence[ForumComment]) -> list[dict[str, Any]]:
    """Return votes on posts and comments of the last months, most of them upvotes."""
    rows = []
    for post in rng.sample(posts[len(posts) // 2 :], _VOTES // 2):
        rows.append({"account": ME, "post": post.id, "comment": None, "value": rng.choice((1, 1, 1, -1))})
    for comment in rng.sample(comments[len(comments) // 2 :], _VOTES // 2):
        rows.append({"account": ME, "post": None, "comment": comment.id, "value": rng.choice((1, 1, 1, 1, -1))})
    return rows


def _saved(rng: random.Random, posts: Sequence[ForumPost], comments: Sequence[ForumComment]) -> list[dict[str, Any]]:
    saved_posts = [(post.id, None, post.created) for post in rng.sample(posts, _SAVED * 2 // 3)]
    saved_comments = [(None, comment.id, comment.created) for comment in rng.sample(comments, _SAVED // 3)]
    rows = []
    for post, comment, created in [*saved_posts, *saved_comments]:
        moment = created + (NOW - created) * rng.uniform(0.02, 0.4)
        rows.append({"account": ME, "post": post, "comment": comment, "created": stamp(moment)})
    return sorted(rows, key=lambda row: str(row["created"]))


def _add_conversations(
    database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board], others: Sequence[int]
) -> None:
    """Add private conversations with different partners. The last message of the newest ones is unread."""
    rng = seeds.rng
    partners = rng.sample(others, _CONVERSATIONS)
    scripts = rng.sample(CONVERSATIONS, _CONVERSATIONS)
    days = sorted((rng.uniform(0.3, 90) for _ in scripts), reverse=True)
    hobbies = [board.subject.title.lower() for board in boards if "{" not in board.subject.title]
    messages: list[dict[str, Any]] = []
    for number, (partner, script, ago) in enumerate(zip(partners, scripts, days, strict=True), 1):
        slots = Slots(rng, seeds.country, (), {"board": rng.choice(hobbies)})
        last_is_theirs = number > _CONVERSATIONS - _UNREAD or rng.random() < 0.5
        starter, replier = (partner, ME) if last_is_theirs == (len(script) % 2 == 0) else (ME, partner)
        row = {"id": number, "opener": starter, "partner": replier, "subject": slots.fill(script[0])}
        insert(database, "forum_conversations", [row])
        moment = soon_after(rng, NOW - datetime.timedelta(days=ago))
        for index, text in enumerate(script[1:]):
            author = (starter, replier)[index % 2]
            last = index == len(script) - 2 and number > _CONVERSATIONS - _UNREAD
            body, when = slots.fill(text), stamp(moment)
            messages.append(
                {"conversation": number, "author": author, "body": body, "created": when, "unread": int(last)}
            )
            moment = soon_after(rng, moment)
    insert(database, "forum_messages", sorted(messages, key=lambda row: str(row["created"])))


def _notifications(posts: Sequence[ForumPost]) -> Iterator[dict[str, Any]]:
    """Yield notifications of replies to the account; the newest are unread."""
    replies = [
        comment
        for post in posts
        for comment in post.comments
        if comment.author.id != ME and (comment.parent.author if comment.parent else post.author).id == ME
    ]
    replies.sort(key=lambda comment: comment.id)
    for index, comment in enumerate(replies):
        yield {"account": ME, "comment": comment.id, "unread": int(index >= len(replies) - 5)}


def _add_moderation(database: sqlite3.Connection, rng: random.Random, board: Board, posts: Sequence[ForumPost]) -> None:
    """Add reports and bans in the board that the account moderates."""
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
            "resolved": int(index < 2),
        }
        for index, ((post, comment), moment) in enumerate(zip(targets, moments, strict=True))
    ]
    insert(database, "forum_reports", rows)
    staff = [member.id for member in board.moderators]
    banned = rng.sample([member.id for member in board.members if member.id not in staff], _BANS)
    bans = [
        {"board": board.id, "user": user, "reason": rng.choice(BANS), "created": _recent_time(rng)} for user in banned
    ]
    insert(database, "forum_bans", bans)
