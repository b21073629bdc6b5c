"""What the forum's tasks know of a world: the posts and comments that the agent's account sees."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.template import Params, Template

ORIGIN = ORIGINS["forum"]
ME = 1
"""The agent's account."""
PHRASES = (
    "I tried this last spring and it worked.",
    "Could you post a picture of it?",
    "That is the best idea I have read all week.",
    "Please keep us up to date.",
    "I would not change a thing.",
    "There is a cheaper way, write to me.",
    "My neighbour told me the opposite.",
    "Does this hold for beginners too?",
    "Count me in for next time.",
    "I had the same trouble for two years.",
    "Thank you, this saved my weekend.",
    "We should make this a monthly thread.",
    "I am still waiting for the parts.",
    "Nobody has mentioned the price yet.",
    "It depends on the weather, I think.",
    "Let me know if you need a hand.",
)
"""What the agent is told to write."""
TITLES = (
    "Looking for people to meet on Thursdays",
    "What I learned in my first year",
    "A question about storage in winter",
    "Thank you for all the help",
    "Ideas for a rainy afternoon",
    "Does anybody else count the hours?",
    "My list for the summer",
    "Where did the old sticky thread go?",
    "Two mistakes I made today",
    "Small things that make it easier",
    "Who wants to swap?",
    "First attempt, be gentle",
)
_STANDING = "p.removed = 0 AND p.deleted = 0"
_TABLES = f"""
WITH posts AS (
    SELECT p.*, b.name AS board_name, u.name AS author_name,
    (SELECT COUNT(*) FROM forum_comments c WHERE c.post = p.id) AS comments,
    p.id IN (SELECT post FROM forum_comments WHERE author IN (SELECT user FROM forum_blocks)) AS veiled,
    p.id IN (SELECT post FROM forum_votes WHERE post IS NOT NULL) AS voted
    FROM forum_posts p JOIN forum_boards b ON b.id = p.board JOIN forum_users u ON u.id = p.author
    WHERE {_STANDING} AND p.id NOT IN (SELECT post FROM forum_hidden)
    AND p.author NOT IN (SELECT user FROM forum_blocks)
), comments AS (
    SELECT c.*, p.title, p.comments, p.board, p.board_name, p.author AS poster, u.name AS author_name, p.locked
    FROM forum_comments c JOIN posts p ON p.id = c.post JOIN forum_users u ON u.id = c.author WHERE NOT p.veiled
), lone AS (
    SELECT * FROM comments c
    WHERE author <> poster AND (SELECT COUNT(*) FROM forum_comments o WHERE o.post = c.post AND o.author = c.author) = 1
)
"""


class ForumTemplate(Template):
    """A kind of task in the forum."""

    group, sites = "code-and-forum", ("forum",)


def select(world: World, query: str, *arguments: Any) -> list[dict[str, Any]]:
    """The rows of a query, which may read from `posts`, `comments` and `lone`.

    These are what the agent's account sees: no hidden or blocked posts, no threads in which somebody takes part whom it
    has blocked; `lone` are comments of those who wrote only one on that post, and not the post.
    """
    return [dict(row) for row in world.rows(_TABLES + query, *arguments)]


def column(world: World, query: str, *arguments: Any) -> list[Any]:
    """The first column of such a query."""
    return [row[0] for row in world.rows(_TABLES + query, *arguments)]


def post(world: World, title: str) -> sqlite3.Row:
    """The post of a title; no two have the same."""
    return world.rows(_TABLES + "SELECT * FROM posts WHERE title = ?", title)[0]


def comment(world: World, title: str, user: str) -> sqlite3.Row:
    """The only comment of a user on a post."""
    return world.rows(_TABLES + "SELECT * FROM lone WHERE title = ? AND author_name = ?", title, user)[0]


def newest(world: World, board: str, count: int = 1) -> list[sqlite3.Row]:
    """The newest posts of a board."""
    query = "SELECT * FROM posts WHERE board_name = ? ORDER BY created DESC, id DESC LIMIT ?"
    return world.rows(_TABLES + query, board, count)


def by_score(world: World, board: str) -> list[sqlite3.Row]:
    """The posts of a board, those of the highest scores first; no two of a board have the same."""
    return world.rows(_TABLES + "SELECT * FROM posts WHERE board_name = ? ORDER BY score DESC", board)


def board(world: World, name: str) -> int:
    """The number of a board."""
    return int(world.value("SELECT id FROM forum_boards WHERE name = ?", name))


def boards(world: World) -> list[str]:
    """The names of all boards."""
    return [row[0] for row in world.rows("SELECT name FROM forum_boards ORDER BY name")]


def my_board(world: World) -> str:
    """The name of the board that the account moderates."""
    query = "SELECT b.name FROM forum_boards b JOIN forum_moderators m ON m.board = b.id WHERE m.user = ?"
    return str(world.value(query, ME))


def user(world: World, name: str) -> sqlite3.Row:
    """An account."""
    return world.rows("SELECT * FROM forum_users WHERE name = ?", name)[0]


def others(world: World) -> list[str]:
    """The names of all users but the agent and those whom it has blocked, such as no other user's name begins with.

    A search for the name then finds the user without doubt.
    """
    names = [row[0] for row in world.rows("SELECT name FROM forum_users ORDER BY id")]
    blocked = {row[0] for row in world.rows("SELECT name FROM forum_users WHERE id IN (SELECT user FROM forum_blocks)")}
    return [name for name in names[1:] if name not in blocked and sum(name in other for other in names) == 1]


def users_except(world: World, params: Params, *names: str) -> list[str]:
    """The names of all users but these, and but those that the intent tells, as the title of a post may do."""
    told = " / ".join(map(str, params.values())).lower()
    every = [row[0] for row in world.rows("SELECT name FROM forum_users ORDER BY id")]
    return [name for name in every if name not in names and name.lower() not in told]


def with_choices(rows: Iterable[dict[str, Any]], rng: Random, **choices: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows, each with one of each of the choices."""
    return [{**row, **{name: rng.choice(some) for name, some in choices.items()}} for row in rows]


def vote_changes(kind: str, row: sqlite3.Row, value: int) -> list[Expected]:
    """What changes when the account votes on a post or comment on which it has not voted."""
    return [
        Updated(f"forum_{kind}s", {"id": row["id"]}, {"score": row["score"] + value}),
        Added("forum_votes", {"account": ME, kind: row["id"], "value": value}),
    ]


def comment_added(world: World, title: str, body: str, parent: int | None = None) -> Added:
    """The comment that the account writes on a post."""
    number = post(world, title)["id"]
    return Added("forum_comments", {"post": number, "parent": parent, "author": ME, "body": body, "deleted": 0})


NOTIFICATIONS = ("forum_notifications",)
"""Who is answered gets a note, which is nobody's task."""
ANYTIME = re.compile(".*")
"""Any moment."""


def most_commented(world: World, board: str) -> str:
    """The title of the post with the most comments in a board, "" if several have."""
    query = "SELECT title, comments FROM posts WHERE board_name = ? ORDER BY comments DESC LIMIT 2"
    rows = select(world, query, board)
    leads = len(rows) > 1 and rows[0]["comments"] > rows[1]["comments"]
    return str(rows[0]["title"]) if leads else ""


def top_comment_authors(world: World) -> dict[str, str]:
    """Who wrote the best comment, by titles of posts with a few comments, where they have not written the worst."""
    threads: dict[str, list[tuple[int, str]]] = {}
    for row in select(world, "SELECT title, score, author_name FROM comments WHERE comments BETWEEN 4 AND 20"):
        threads.setdefault(row["title"], []).append((row["score"], row["author_name"]))
    return {title: max(said)[1] for title, said in threads.items() if _leads(said)}


def _leads(said: list[tuple[int, str]]) -> bool:
    """Whether one comment has the highest score, and its author has not written one with the lowest."""
    scores = sorted(score for score, _ in said)
    return scores[-1] > scores[-2] and (scores[0], max(said)[1]) not in said


def conversations(world: World) -> list[Params]:
    """With whom the account has exchanged messages, both ways."""
    query = """
        SELECT u.name AS user FROM forum_messages m JOIN forum_conversations c ON c.id = m.conversation
        JOIN forum_users u ON u.id IN (c.opener, c.partner) AND u.id <> 1
        GROUP BY c.id HAVING COUNT(DISTINCT m.author) = 2
    """
    return [*select(world, query)]


def message_added(world: World, name: str, subject: str, text: str) -> tuple[Added, Added]:
    """The rows of a message that opens a conversation."""
    partner = user(world, name)["id"]
    opened = Added("forum_conversations", {"opener": ME, "partner": partner, "subject": subject})
    return opened, Added("forum_messages", {"author": ME, "body": text})
