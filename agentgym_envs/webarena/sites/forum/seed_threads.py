"""Posts and the threads of comments below them."""

from __future__ import annotations

import datetime
import random
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.forum.members import ME, Board, Member, moment_of_day, soon_after
from agentgym_envs.webarena.sites.forum.subjects import FLAIRS, Topic
from agentgym_envs.webarena.sites.forum.tables import insert
from agentgym_envs.webarena.sites.forum.talk import Comment, Talk
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.wordlists import CLOSINGS, OPENINGS, PRODUCT_ANSWERS, PRODUCT_TITLES, TITLES
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import SeedInputs

POSTS = 450
_MINE = 12
"""How many posts the agent's account has written at least."""
_DAYS = 420.0
_KINDS = {"trouble": 5.0, "choice": 2.0, "wish": 2.5, "show": 3.0, "tip": 2.0, "news": 2.0}
"""How often posts are of each kind."""


@dataclass(slots=True)
class Post:
    """A post as it is made; `id` is set once all are in order of time."""

    board: Board
    author: Member
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
    comments: list[Comment] = field(default_factory=list)


def write(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board]) -> list[Post]:
    """Write all posts and comments, numbered in order of time."""
    posts = _posts(seeds, boards, _about_products(database, seeds, boards))
    for number, post in enumerate(posts, 1):
        post.id = number
        post.comments = Talk(seeds.rng, post.board, post.topic, post.slots, post.author, post.created).held()
    _score(seeds.rng, posts)
    comments = sorted(((c, post) for post in posts for c in post.comments), key=lambda pair: pair[0].created)
    for number, (comment, _) in enumerate(comments, 1):
        comment.id = number
    flairs = {(board, name): key for key, board, name in database.execute("SELECT id, board, name FROM forum_flairs")}
    insert(database, "forum_posts", [_post_row(seeds.rng, post, flairs) for post in posts])
    insert(database, "forum_comments", [_comment_row(comment, post) for comment, post in comments])
    return posts


def _posts(seeds: SeedInputs, boards: Sequence[Board], given: Sequence[Post]) -> list[Post]:
    """The posts in order of time, each with a title of its own; some are given."""
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
    _give_me_some(rng, posts)
    return sorted(posts, key=lambda post: post.created)


def _give_me_some(rng: random.Random, posts: Sequence[Post]) -> None:
    """See to it that the agent's account has written some posts, whatever chance gave it."""
    others = []
    for post in posts:
        member = next((member for member in post.board.members if member.id == ME), None)
        if member is not None and post.author is not member and not post.pinned:
            others.append((post, member))
    have = sum(post.author.id == ME for post in posts)
    for post, member in rng.sample(others, max(0, _MINE - have)):
        post.author = member


def _about_products(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board]) -> list[Post]:
    """Questions about products of the shop, with links to them, in the board where anything is asked."""
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
        post = Post(board, board.author(rng, created), created, topic, slots, slots.fill(title))
        post.url = f"{ORIGINS['shop']}/product/{slug}"
        posts.append(post)
    return posts


def _topic(rng: random.Random, board: Board, used: dict[int, int]) -> Topic:
    """A topic of the board, one that has seldom been had for choice."""
    topics = board.subject.topics
    counts = {topic.kind: 0 for topic in topics}
    for topic in topics:
        counts[topic.kind] += 1
    weights = [_KINDS[topic.kind] / counts[topic.kind] / (1 + used.get(id(topic), 0)) ** 2 for topic in topics]
    topic = rng.choices(topics, weights)[0]
    used[id(topic)] = used.get(id(topic), 0) + 1
    return topic


def _post(seeds: SeedInputs, board: Board, topic: Topic) -> Post:
    rng = seeds.rng
    day = NOW - datetime.timedelta(days=_DAYS * rng.random() ** 1.4)
    created = moment_of_day(rng, day)
    slots = Slots(rng, seeds.country, board.things, {})
    slots["text"], slots["against"] = topic.text.format_map(slots), topic.against.format_map(slots)
    title = slots.fill(rng.choice(TITLES[topic.kind]))
    post = Post(board, board.author(rng, created), created, topic, slots, title)
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
    """An opening, what the board is given to say, and a close; of a guide, its points."""
    openings = rng.sample(OPENINGS[topic.kind], rng.choice((1, 2)))
    if rng.random() < 0.55:
        openings.append(rng.choice(board.subject.remarks))
    parts = [" ".join(slots.copy().fill(opening) for opening in openings)]
    if topic.kind == "tip":
        parts.extend(f"{place}. {slots.copy().fill(point)}" for place, point in enumerate(topic.says, 1))
    closing = rng.choice(CLOSINGS[topic.kind])
    if topic.kind == "tip" or len(openings) > 2:
        parts.append(closing)
    else:
        parts[0] += " " + closing
    return "\n\n".join(parts)


def _welcome(rng: random.Random, seeds: SeedInputs, board: Board) -> Post:
    """The post that a board's first moderator has pinned on top of it."""
    created = NOW - datetime.timedelta(days=rng.uniform(_DAYS, _DAYS + 60), seconds=rng.randrange(20_000))
    created = moment_of_day(rng, created)
    slots = Slots(rng, seeds.country, board.things, {"thing": "this board"})
    title = f"Welcome to {board.subject.title.format_map(slots)}: read this first"
    rules = [f"{place}. {short}." for place, (short, _) in enumerate(board.subject.rules, 1)]
    head = "Glad that you found us. Three things before you post:"
    body = "\n\n".join((head, *rules, "And now tell us who you are and what brings you here."))
    topic = Topic("welcome", title)
    post = Post(board, board.moderators[0], created, topic, slots, title, body)
    post.pinned = True
    return post


def _score(rng: random.Random, posts: Sequence[Post]) -> None:
    """Votes: few posts have many, some comments have less than none. No two posts of a board have the same score."""
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


def _score_comments(rng: random.Random, post: Post) -> None:
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


def _post_row(rng: random.Random, post: Post, flairs: dict[tuple[int, str], int]) -> dict[str, Any]:
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


def _comment_row(comment: Comment, post: Post) -> dict[str, Any]:
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
