"""Posts and the comment threads below them."""

from __future__ import annotations

import datetime
import random
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.forum.comment_generator import CommentGenerator, ForumComment
from agentgym_envs.webarena.sites.forum.members import ME, Board, ForumMember, moment_of_day, soon_after
from agentgym_envs.webarena.sites.forum.subjects import FLAIRS, Topic
from agentgym_envs.webarena.sites.forum.tables import insert
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import CLOSINGS, OPENINGS, PRODUCT_ANSWERS, PRODUCT_TITLES, TITLES
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import SeedInputs

POSTS = 450
_MINE = 12
"""Minimum number of posts by the agent's account."""
_DAYS = 420.0
_KINDS = {"trouble": 5.0, "choice": 2.0, "wish": 2.5, "show": 3.0, "tip": 2.0, "news": 2.0}
"""Relative number of posts by kind."""


@dataclass(slots=True)
class ForumPost:
    """A post during generation. `id` is assigned after all posts are sorted by time."""

    board: Board
    author: ForumMember
    created: datetime.datetime
    topic: Topic
    slots: Slots
    title: str
    body: str = ""
    url: str | None = None
    pinned: bool = False
    locked: bool = False
    edited: datetime.datetime | None = None
    score: int = 1
    id: int = 0
    comments: list[ForumComment] = field(default_factory=list)


def write(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board]) -> list[ForumPost]:
    """Write all posts and comments, numbered by time."""
    posts = _posts(seeds, boards, _about_products(database, seeds, boards))
    for number, post in enumerate(posts, 1):
        post.id = number
        post.comments = CommentGenerator(
            seeds.rng, post.board, post.topic, post.slots, post.author, post.created
        ).generate()
    _score(seeds.rng, posts)
    comments = sorted(((c, post) for post in posts for c in post.comments), key=lambda pair: pair[0].created)
    for number, (comment, _) in enumerate(comments, 1):
        comment.id = number
    flairs = {(board, name): key for key, board, name in database.execute("SELECT id, board, name FROM forum_flairs")}
    insert(database, "forum_posts", [_post_row(seeds.rng, post, flairs) for post in posts])
    insert(database, "forum_comments", [_comment_row(comment, post) for comment, post in comments])
    return posts


def _posts(seeds: SeedInputs, boards: Sequence[Board], given: Sequence[ForumPost]) -> list[ForumPost]:
    """Return all posts, sorted by time. Generated posts have unique titles; `given` posts are included."""
    rng = seeds.rng
    titles: set[str] = set()
    posts = [*given, *(_welcome(rng, seeds, board) for board in boards)]
    used: dict[int, int] = {}
    weights = [board.weight for board in boards]
    while len(posts) < POSTS:
        board = rng.choices(boards, weights)[0]
        post = _post(seeds, board, _topic(rng, board, used))
        if post.title not in titles:
            titles.add(post.title)
            posts.append(post)
    _ensure_agent_posts(rng, posts)
    return sorted(posts, key=lambda post: post.created)


def _ensure_agent_posts(rng: random.Random, posts: Sequence[ForumPost]) -> None:
    """Make the agent's account the author of at least `_MINE` posts."""
    others = []
    for post in posts:
        member = next((member for member in post.board.members if member.id == ME), None)
        if member is not None and post.author is not member and not post.pinned:
            others.append((post, member))
    have = sum(post.author.id == ME for post in posts)
    for post, member in rng.sample(others, max(0, _MINE - have)):
        post.author = member


def _about_products(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board]) -> list[ForumPost]:
    """Return questions about products of the shop, with links, in the board for all questions."""
    rng = seeds.rng
    board = next(board for board in boards if board.subject.name == "ask")
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'shop_products'").fetchone():
        return []  # a world without a shop
    rows = database.execute("SELECT name, slug FROM shop_products WHERE enabled = 1 ORDER BY id").fetchall()
    posts = []
    for title, (name, slug) in zip(PRODUCT_TITLES, rng.sample(rows, len(PRODUCT_TITLES)), strict=True):
        created = moment_of_day(rng, NOW - datetime.timedelta(days=rng.uniform(1, 200)))
        slots = Slots(rng, seeds.country, board.things, {"thing": name})
        topic = Topic("trouble", title, says=list(PRODUCT_ANSWERS))
        post = ForumPost(board, board.author(rng, created), created, topic, slots, slots.fill(title))
        post.url = f"{ORIGINS['shop']}/product/{slug}"
        posts.append(post)
    return posts


def _topic(rng: random.Random, board: Board, used: dict[int, int]) -> Topic:
    """Draw a topic of the board; topics with few posts are more likely."""
    topics = board.subject.topics
    counts = {topic.kind: 0 for topic in topics}
    for topic in topics:
        counts[topic.kind] += 1
    weights = [_KINDS[topic.kind] / counts[topic.kind] / (1 + used.get(id(topic), 0)) ** 2 for topic in topics]
    topic = rng.choices(topics, weights)[0]
    used[id(topic)] = used.get(id(topic), 0) + 1
    return topic


def _post(seeds: SeedInputs, board: Board, topic: Topic) -> ForumPost:
    rng = seeds.rng
    day = NOW - datetime.timedelta(days=_DAYS * rng.random() ** 1.4)
    created = moment_of_day(rng, day)
    slots = Slots(rng, seeds.country, board.things, {})
    slots["text"], slots["against"] = topic.text.format_map(slots), topic.against.format_map(slots)
    title = slots.fill(rng.choice(TITLES[topic.kind]))
    post = ForumPost(board, board.author(rng, created), created, topic, slots, title)
    linked = topic.kind == "news" or (topic.kind in ("show", "tip") and rng.random() < 0.2)
    if linked:
        post.url = f"https://{rng.choice(board.subject.sites)}/{created:%Y/%m}/{_slug(title)}"
    if not linked or rng.random() < 0.15:
        post.body = _body(rng, board, topic, slots)
    post.locked = rng.random() < 0.03
    if post.body and rng.random() < 0.12:
        post.edited = soon_after(rng, created)
    return post


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].rstrip("-")


def _body(rng: random.Random, board: Board, topic: Topic, slots: Slots) -> str:
    """Compose an opening, an optional remark and a closing; a guide also gets its points."""
    openings = rng.sample(OPENINGS[topic.kind], rng.choice((1, 2)))
    if rng.random() < 0.55:
        openings.append(rng.choice(board.subject.remarks))
    parts = [" ".join(slots.copy().fill(opening) for opening in openings)]
    if topic.kind == "tip":
        parts.extend(f"{index}. {slots.copy().fill(point)}" for index, point in enumerate(topic.says, 1))
    closing = rng.choice(CLOSINGS[topic.kind])
    if topic.kind == "tip" or len(openings) > 2:
        parts.append(closing)
    else:
        parts[0] += " " + closing
    return "\n\n".join(parts)


def _welcome(rng: random.Random, seeds: SeedInputs, board: Board) -> ForumPost:
    """Return the pinned post by the first moderator of a board."""
    created = NOW - datetime.timedelta(days=rng.uniform(_DAYS, _DAYS + 60), seconds=rng.randrange(20_000))
    created = moment_of_day(rng, created)
    slots = Slots(rng, seeds.country, board.things, {"thing": "this board"})
    title = f"Welcome to {board.subject.title.format_map(slots)}: read this first"
    rules = [f"{index}. {short}." for index, (short, _) in enumerate(board.subject.rules, 1)]
    head = "Glad that you found us. Three things before you post:"
    body = "\n\n".join((head, *rules, "And now tell us who you are and what brings you here."))
    topic = Topic("welcome", title)
    post = ForumPost(board, board.moderators[0], created, topic, slots, title, body)
    post.pinned = True
    return post


def _score(rng: random.Random, posts: Sequence[ForumPost]) -> None:
    """Assign scores, unique by board for posts. Few posts have high scores; some comments have negative ones."""
    taken: set[tuple[int, int]] = set()
    for post in posts:
        score = int(rng.lognormvariate(2.4, 0.9) * (1 + len(post.comments) / 8))
        if rng.random() < 0.04:
            score = -rng.randint(1, 9)
        while (post.board.id, score) in taken:
            score += 1 if score > 0 else -1
        taken.add((post.board.id, score))
        post.score = score
        _score_comments(rng, post)


def _score_comments(rng: random.Random, post: ForumPost) -> None:
    taken: set[int] = set()
    for comment in post.comments:
        share = min(rng.expovariate(2.5), 1.3) * 0.75**comment.depth
        score = 1 + int(max(post.score, 4) * share)
        if rng.random() < (0.3 if comment.role == "disagree" else 0.03):
            score = -rng.randint(1, 12)
        while score > 4 and score in taken:
            score += 1
        taken.add(score)
        comment.score = score


def _post_row(rng: random.Random, post: ForumPost, flairs: dict[tuple[int, str], int]) -> dict[str, Any]:
    flair = None if post.pinned or rng.random() < 0.35 else flairs.get((post.board.id, FLAIRS.get(post.topic.kind, "")))
    return {
        "id": post.id,
        "board": post.board.id,
        "author": post.author.id,
        "flair": flair,
        "title": post.title,
        "body": post.body,
        "url": post.url,
        "domain": post.url and post.url.split("/")[2],
        "created": stamp(post.created),
        "edited": post.edited and stamp(post.edited),
        "score": post.score,
        "locked": int(post.locked),
        "pinned": int(post.pinned),
    }


def _comment_row(comment: ForumComment, post: ForumPost) -> dict[str, Any]:
    return {
        "id": comment.id,
        "post": post.id,
        "parent": comment.parent and comment.parent.id,
        "author": comment.author.id,
        "body": comment.body,
        "created": stamp(comment.created),
        "edited": comment.edited and stamp(comment.edited),
        "score": comment.score,
    }
