"""Database queries for tasks in the forum: the posts and comments visible to the agent's account."""

from __future__ import annotations

import re
import sqlite3
from functools import partial
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks import instances
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import Choices, Instances
from agentgym_envs.webarena.tasks.template import Params, Template

ORIGIN = ORIGINS["forum"]
ME = 1
"""The id of the agent's account."""
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
"""Texts for the agent to write."""
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
_VISIBLE = "p.removed = 0 AND p.deleted = 0"
_TABLES = f"""
WITH posts AS (
    SELECT p.*, b.name AS board_name, u.name AS author_name,
    (SELECT COUNT(*) FROM forum_comments c WHERE c.post = p.id) AS comments,
    p.id IN (SELECT post FROM forum_comments WHERE author IN (SELECT user FROM forum_blocks)) AS veiled,
    p.id IN (SELECT post FROM forum_votes WHERE post IS NOT NULL) AS voted
    FROM forum_posts p JOIN forum_boards b ON b.id = p.board JOIN forum_users u ON u.id = p.author
    WHERE {_VISIBLE} AND p.id NOT IN (SELECT post FROM forum_hidden)
    AND p.author NOT IN (SELECT user FROM forum_blocks)
), comments AS (
    SELECT c.*, p.title, p.comments, p.board, p.board_name, p.author AS poster, u.name AS author_name, p.locked
    FROM forum_comments c JOIN posts p ON p.id = c.post JOIN forum_users u ON u.id = c.author WHERE NOT p.veiled
), lone AS (
    SELECT * FROM comments c
    WHERE author <> poster AND (SELECT COUNT(*) FROM forum_comments o WHERE o.post = c.post AND o.author = c.author) = 1
)
"""


ForumTemplate = partial(Template, "code-and-forum", ("forum",))
"""A task in the forum."""


def rows(query: str, *arguments: Any, sample: int = 0, rounds: int = 1, **choices: Choices) -> Instances:
    """Return the rows of a query like those of `select` as instances (`tasks.instances.rows`)."""
    return instances.rows(_TABLES + query, *arguments, sample=sample, rounds=rounds, **choices)


def select(world: World, query: str, *arguments: Any) -> list[dict[str, Any]]:
    """Return the rows of a query that may read from `posts`, `comments` and `lone`.

    These tables hold what the agent's account sees. They leave out hidden posts, posts by blocked users, and threads
    with a comment by a blocked user. `lone` has the comments of users with a single comment on that post, except the
    post's author.
    """
    return [dict(row) for row in world.rows(_TABLES + query, *arguments)]


def column(world: World, query: str, *arguments: Any) -> list[Any]:
    """Return the first column of such a query."""
    return [row[0] for row in world.rows(_TABLES + query, *arguments)]


def post(world: World, title: str) -> sqlite3.Row:
    """Return the post with this title; titles are unique."""
    return world.rows(_TABLES + "SELECT * FROM posts WHERE title = ?", title)[0]


def comment(world: World, title: str, user: str) -> sqlite3.Row:
    """Return the only comment of a user on a post."""
    return world.rows(_TABLES + "SELECT * FROM lone WHERE title = ? AND author_name = ?", title, user)[0]


def top_comment(world: World, title: str) -> sqlite3.Row:
    """Return a comment on a post with the highest score."""
    return world.rows(_TABLES + "SELECT * FROM comments WHERE title = ? ORDER BY score DESC", title)[0]


def newest(world: World, board: str, count: int = 1) -> list[sqlite3.Row]:
    """Return the newest posts of a board."""
    query = "SELECT * FROM posts WHERE board_name = ? ORDER BY created DESC, id DESC LIMIT ?"
    return world.rows(_TABLES + query, board, count)


def by_score(world: World, board: str) -> list[sqlite3.Row]:
    """Return the posts of a board by descending score; the scores of a board are unique."""
    return world.rows(_TABLES + "SELECT * FROM posts WHERE board_name = ? ORDER BY score DESC", board)


def board(world: World, name: str) -> int:
    """Return the id of a board."""
    return int(world.value("SELECT id FROM forum_boards WHERE name = ?", name))


def moderators(world: World, board_name: str) -> list[str]:
    """Return the names of a board's moderators."""
    query = "SELECT u.name FROM forum_moderators m JOIN forum_users u ON u.id = m.user WHERE m.board = ?"
    return column(world, query, board(world, board_name))


def flair(world: World, board: int, name: str) -> int:
    """Return the id of a flair of a board."""
    return int(world.value("SELECT id FROM forum_flairs WHERE board = ? AND name = ?", board, name))


def boards(world: World) -> list[str]:
    """Return the names of all boards."""
    return [row[0] for row in world.rows("SELECT name FROM forum_boards ORDER BY name")]


def each_board(world: World) -> list[Params]:
    """Return an instance for each board."""
    return [{"board": name} for name in boards(world)]


def my_board(world: World) -> str:
    """Return the name of the board that the account moderates."""
    query = "SELECT b.name FROM forum_boards b JOIN forum_moderators m ON m.board = b.id WHERE m.user = ?"
    return str(world.value(query, ME))


def user(world: World, name: str) -> sqlite3.Row:
    """Return the account of a user."""
    return world.rows("SELECT * FROM forum_users WHERE name = ?", name)[0]


def others(world: World) -> list[str]:
    """Return the names of all users except the agent and users that it has blocked.

    Names that are part of another name are left out, so that a search for a name finds a single user.
    """
    names = [row[0] for row in world.rows("SELECT name FROM forum_users ORDER BY id")]
    blocked = {row[0] for row in world.rows("SELECT name FROM forum_users WHERE id IN (SELECT user FROM forum_blocks)")}
    return [name for name in names[1:] if name not in blocked and sum(name in other for other in names) == 1]


def each_other(world: World) -> list[Params]:
    """Return an instance for each of the `others`."""
    return [{"user": name} for name in others(world)]


def my_name(world: World) -> str:
    """Return the name of the account."""
    return str(world.value("SELECT name FROM forum_users WHERE id = ?", ME))


def users_except(world: World, params: Params, *names: str) -> list[str]:
    """Return the names of all users except these and those in the intent, such as in the title of a post."""
    named = " / ".join(map(str, params.values())).lower()
    every = [row[0] for row in world.rows("SELECT name FROM forum_users ORDER BY id")]
    return [name for name in every if name not in names and name.lower() not in named]


def says_users(world: World, params: Params, *names: str) -> Says:
    """Return an evaluator for an answer with these users and no others."""
    return says(*names, others=users_except(world, params, *names))


def post_url(world: World, title: str) -> str:
    """Return the URL of a post."""
    found = post(world, title)
    return f"{ORIGIN}/b/{found['board_name']}/{found['id']}"


def board_url(board: str) -> str:
    """Return the URL of a board."""
    return f"{ORIGIN}/b/{board}"


def user_url(user: str) -> str:
    """Return the URL of a user's profile."""
    return f"{ORIGIN}/u/{user}"


def post_updated(world: World, title: str, /, **values: Any) -> Updated:
    """Return the change of a post."""
    return Updated("forum_posts", {"id": post(world, title)["id"]}, values)


def vote_changes(kind: str, row: sqlite3.Row, value: int) -> list[Expected]:
    """Return the changes of a first vote by the account on a post or comment."""
    return [
        Updated(f"forum_{kind}s", {"id": row["id"]}, {"score": row["score"] + value}),
        Added("forum_votes", {"account": ME, kind: row["id"], "value": value}),
    ]


def comment_added(world: World, title: str, body: str, parent: int | None = None) -> Added:
    """Return the new comment of the account on a post."""
    number = post(world, title)["id"]
    return Added("forum_comments", {"post": number, "parent": parent, "author": ME, "body": body, "deleted": 0})


EDITED = {"edited": re.compile(".*")}
"""The time of an edit, which may be any."""
NOTIFICATIONS = ("forum_notifications",)
"""Tables that replies change as a side effect."""


def most_commented(world: World, board: str) -> str:
    """Return the title of a board's post with the most comments, or "" on a tie."""
    query = "SELECT title, comments FROM posts WHERE board_name = ? ORDER BY comments DESC LIMIT 2"
    rows = select(world, query, board)
    leads = len(rows) > 1 and rows[0]["comments"] > rows[1]["comments"]
    return str(rows[0]["title"]) if leads else ""


def top_comment_authors(world: World) -> dict[str, str]:
    """Return the authors of the best comments by post title, for posts with 4 to 20 comments.

    Posts with a tie are left out, and posts on which the same user also wrote a comment with the lowest score.
    """
    threads: dict[str, list[tuple[int, str]]] = {}
    for row in select(world, "SELECT title, score, author_name FROM comments WHERE comments BETWEEN 4 AND 20"):
        threads.setdefault(row["title"], []).append((row["score"], row["author_name"]))
    return {title: max(scored)[1] for title, scored in threads.items() if _has_clear_best(scored)}


def _has_clear_best(scored: list[tuple[int, str]]) -> bool:
    """Return whether one comment has the highest score, and its author did not write one with the lowest."""
    scores = sorted(score for score, _ in scored)
    return scores[-1] > scores[-2] and (scores[0], max(scored)[1]) not in scored


def conversations(world: World) -> list[Params]:
    """Return the users with whom the account has exchanged messages in both directions."""
    query = """
        SELECT u.name AS user FROM forum_messages m JOIN forum_conversations c ON c.id = m.conversation
        JOIN forum_users u ON u.id IN (c.opener, c.partner) AND u.id <> 1
        GROUP BY c.id HAVING COUNT(DISTINCT m.author) = 2
    """
    return [*select(world, query)]


def message_added(world: World, user: str, subject: str, text: str) -> tuple[Added, Added]:
    """Return the rows of a message that starts a conversation."""
    partner = world.value("SELECT id FROM forum_users WHERE name = ?", user)
    opened = Added("forum_conversations", {"opener": ME, "partner": partner, "subject": subject})
    return opened, Added("forum_messages", {"author": ME, "body": text})
