"""Tasks in the stream: a list that loads older posts while one scrolls, and has no page links."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, ForumTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, click, click_in, do, given
from agentgym_envs.webarena.tasks.template import Params

_NEAREST, _FARTHEST = 14, 60
"""Positions in the stream that take 2 to 12 scrolls."""
_STREAM = "SELECT title, author, author_name, voted FROM posts ORDER BY created DESC, id DESC"
_VALUES = {"Upvote": 1, "Downvote": -1}

StreamTemplate = partial(ForumTemplate, since=2, start=lambda: f"{ORIGIN}/stream")


def _far_authors(world: World, *, voted: bool = True) -> Iterator[Params]:
    """Yield users whose newest post is some windows down the stream; with `voted`, also posts with a vote."""
    seen = set()
    for place, row in enumerate(queries.select(world, f"{_STREAM} LIMIT {_FARTHEST}")):
        newest = row["author_name"] not in seen
        seen.add(row["author_name"])
        if newest and place >= _NEAREST and row["author"] != ME and (voted or not row["voted"]):
            yield {"user": row["author_name"]}


def _newest_title(world: World, user: str) -> str:
    return str(queries.column(world, f"SELECT title FROM ({_STREAM}) WHERE author_name = ?", user)[0])


def _title(world: World, user: str) -> Says:
    """The title of the user's newest post, and no other title of the stream or of the user."""
    newest = _newest_title(world, user)
    titles = queries.column(world, f"SELECT title FROM ({_STREAM} LIMIT {_FARTHEST})")
    titles += queries.column(world, f"SELECT title FROM ({_STREAM}) WHERE author_name = ?", user)
    return says(newest, others=[title for title in titles if title not in newest])


def _shown_title(page: PageReader, user: str) -> str:
    """Return the title of the user's first post on the page."""
    return next(post.title for post in steps.listed(page) if post.author == user)


_scroll_to_user = do(PageReader.scroll_to, "link", "{user}")

title_in_stream = StreamTemplate(
    "forum-stream-title",
    "information",
    "hard",
    intents=(
        "Further down this stream of the newest posts is one by {user}. What is the title of the first one that comes?",
        "Scroll through this list until a post by {user} appears. Tell me its title.",
        "What is the newest post by {user} called? Scroll on until you see it.",
    ),
    instances=_far_authors,
    expected=_title,
    solution=[_scroll_to_user, answer(_shown_title)],
    mistake=answer(lambda page: steps.listed(page)[0].title),
)
open_in_stream = StreamTemplate(
    "forum-stream-open",
    "navigation",
    "hard",
    intents=(
        "Further down this stream of the newest posts is one by {user}. Open the first one that comes.",
        "Scroll through this list until a post by {user} appears, and open that post.",
        "Take me to the newest post by {user}. It is in this list, some way down.",
    ),
    instances=_far_authors,
    expected=lambda world, user: EndsOn(queries.post_url(world, _newest_title(world, user))),
    solution=[_scroll_to_user, click("link", given(_shown_title))],
)
vote_in_stream = StreamTemplate(
    "forum-stream-vote",
    "change",
    "hard",
    intents=(
        "Further down this stream of the newest posts is one by {user}. {vote} the first one that comes.",
        "Scroll through this list until a post by {user} appears. {vote} it.",
        "{vote} the newest post by {user}. It is in this list, some way down.",
    ),
    instances=lambda world: [
        {**params, "vote": vote} for params in _far_authors(world, voted=False) for vote in _VALUES
    ],
    expected=lambda world, user, vote: queries.vote_changes(
        "post", queries.post(world, _newest_title(world, user)), _VALUES[vote]
    ),
    solution=[_scroll_to_user, click_in("{user}", "button", "{vote}")],
)
