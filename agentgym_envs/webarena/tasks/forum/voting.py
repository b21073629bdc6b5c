"""Tasks of one or two clicks: votes, saved and hidden posts, subscriptions, blocked users."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, ForumTemplate, rows
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import click, click_in, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_VALUES = {"Upvote": 1, "Downvote": -1}
_OPPOSITE = {"Upvote": "Downvote", "Downvote": "Upvote"}
_SAME_OR_RETRACTED = given(lambda vote: re.compile(rf"(Retract )?{vote}", re.IGNORECASE))
_TABS = {"newest": "New", "highest-scored": "Top"}


def _vote_requested(world: World, title: str, vote: str) -> ExpectedResult:
    """Return the vote and the new score, and the request that a form sends."""
    found = queries.post(world, title)
    asked_for = Requested(f"{ORIGIN}/vote/post/{found['id']}", method="POST")
    return [*queries.vote_changes("post", found, _VALUES[vote]), asked_for]


vote_post = ForumTemplate(
    "forum-vote-post",
    "change",
    "easy",
    records=True,
    intents=(
        '{vote} the post "{title}".',
        '{vote} the forum post with the title "{title}" for me.',
        'Please find "{title}" in the forum. {vote} it.',
    ),
    instances=rows("SELECT title FROM posts WHERE NOT voted AND author <> 1", vote=list(_VALUES)),
    expected=_vote_requested,
    solution=[do(steps.open_post, "{title}"), click("button", "{vote}")],
    mistake=click("button", given(lambda vote: _OPPOSITE[vote])),
)


def _without_vote(world: World) -> Iterator[Params]:
    """Yield boards and orders whose first post has no vote by the account."""
    for board in queries.boards(world):
        for which in _TABS:
            found = _first_post(world, board, which)
            if not found["voted"] and found["author"] != ME:
                yield {"board": board, "which": which}


def _first_post(world: World, board: str, which: str) -> sqlite3.Row:
    return queries.newest(world, board)[0] if which == "newest" else queries.by_score(world, board)[0]


vote_extreme = ForumTemplate(
    "forum-vote-extreme",
    "change",
    "medium",
    intents=(
        "{vote} the {which} post in the board {board}.",
        "{vote} whatever is the {which} post of {board}.",
        "Go to the board {board}. {vote} its {which} post.",
    ),
    instances=choose(_without_vote, vote=list(_VALUES)),
    expected=lambda world, board, which, vote: queries.vote_changes(
        "post", _first_post(world, board, which), _VALUES[vote]
    ),
    solution=[
        do(steps.open_board, "{board}", given(lambda which: _TABS[which])),
        click_in(steps.nth_title(0), "button", _SAME_OR_RETRACTED),
    ],
    mistake=click_in(steps.nth_title(-1), "button", _SAME_OR_RETRACTED),
)

vote_comment = ForumTemplate(
    "forum-vote-comment",
    "change",
    "medium",
    intents=(
        '{vote} the comment by {user} on the post "{title}".',
        'In the thread "{title}" there is a comment by {user}. {vote} it.',
        '{vote} what {user} has commented on "{title}".',
    ),
    instances=rows(
        "SELECT title, author_name AS user FROM lone WHERE author <> 1 AND id NOT IN "
        "(SELECT comment FROM forum_votes WHERE comment IS NOT NULL) AND comments < 15 AND comments > 1",
        sample=60,
        vote=list(_VALUES),
    ),
    expected=lambda world, title, user, vote: queries.vote_changes(
        "comment", queries.comment(world, title, user), _VALUES[vote]
    ),
    solution=[do(steps.open_post, "{title}"), do(steps.find_comment, "{user}"), click_in("{user}", "button", "{vote}")],
    mistake=[do(steps.open_post, "{title}"), click("button", _SAME_OR_RETRACTED)],
)


def _vote_removed(world: World, title: str) -> list[Expected]:
    found = queries.post(world, title)
    value = world.value("SELECT value FROM forum_votes WHERE post = ?", found["id"])
    score = queries.post_updated(world, title, score=found["score"] - value)
    return [score, Removed("forum_votes", {"post": found["id"]})]


retract_vote = ForumTemplate(
    "forum-retract-vote",
    "change",
    "easy",
    intents=(
        'Take back my vote on the post "{title}".',
        'I have voted on "{title}" by mistake. Undo that.',
        'Remove the vote that I gave the post "{title}".',
    ),
    instances=rows("SELECT title FROM posts WHERE voted"),
    expected=_vote_removed,
    solution=[do(steps.open_post, "{title}"), click("button", re.compile("Retract .*"))],
    mistake=click("button", re.compile("Upvote|Downvote")),
)

save_or_hide_post = ForumTemplate(
    "forum-keep-post",
    "change",
    "easy",
    intents=(
        '{do} the post "{title}".',
        '{do} the post called "{title}" in my forum account.',
        'Find the post "{title}". {do} it.',
    ),
    instances=rows(
        "SELECT title FROM posts WHERE id NOT IN (SELECT post FROM forum_saved WHERE post > 0)", do=["Save", "Hide"]
    ),
    expected=lambda world, do, title: Added(
        {"Save": "forum_saved", "Hide": "forum_hidden"}[do], {"account": ME, "post": queries.post(world, title)["id"]}
    ),
    solution=[do(steps.open_post, "{title}"), click("button", "{do}")],
    mistake=click("button", re.compile(r"(Retract )?upvote", re.IGNORECASE)),
)

_LISTS = {"saved": "Saved", "hidden": "Hidden posts"}
_UNDO = {"saved": "Unsave", "hidden": "Unhide"}
_WRONG = {"saved": re.compile("Hide|Unhide"), "hidden": re.compile("Save|Unsave")}

unsave_or_unhide_post = ForumTemplate(
    "forum-unkeep",
    "change",
    "medium",
    intents=(
        'Take the post "{title}" off the list of posts that I have {done}.',
        'I have {done} the post "{title}". Undo that.',
        'The post "{title}" should no longer be {done} in my account.',
    ),
    instances=rows(
        "SELECT title, 'hidden' AS done FROM forum_posts p WHERE id IN (SELECT post FROM forum_hidden) UNION ALL "
        "SELECT title, 'saved' FROM forum_posts p WHERE id IN (SELECT post FROM forum_saved) "
        "AND author NOT IN (SELECT user FROM forum_blocks)"
    ),
    expected=lambda world, title, done: Removed(
        f"forum_{done}", {"account": ME, "post": world.value("SELECT id FROM forum_posts WHERE title = ?", title)}
    ),
    solution=[
        do(steps.open_account_menu, given(lambda done: _LISTS[done])),
        do(steps.choose_from_more, "{title}", "button", given(lambda done: _UNDO[done])),
    ],
    mistake=do(steps.choose_from_more, "{title}", "button", given(lambda done: _WRONG[done])),
)

subscribe_to_board = ForumTemplate(
    "forum-subscribe",
    "change",
    "easy",
    intents=(
        "I would like to {do} the board {board}.",
        "Please {do} the forum's board {board}.",
        "I want to {do} the board {board}.",
    ),
    instances=rows(
        "SELECT name AS board, CASE WHEN id IN (SELECT board FROM forum_subscriptions WHERE account = 1) "
        "THEN 'unsubscribe from' ELSE 'subscribe to' END AS do FROM forum_boards"
    ),
    expected=lambda world, board, do: (Removed if do.startswith("un") else Added)(
        "forum_subscriptions", {"account": ME, "board": queries.board(world, board)}
    ),
    solution=[click("link", "Boards"), click_in("{board}", "button", re.compile("Unsubscribe|Subscribe"))],
)

block_user = ForumTemplate(
    "forum-block",
    "change",
    "medium",
    intents=(
        "Block the user {user}.",
        "I do not want to read anything by {user} in the forum any more. Block that user.",
        "Put {user} on my list of blocked users.",
    ),
    instances=queries.each_other,
    expected=lambda world, user: Added("forum_blocks", {"account": ME, "user": queries.user(world, user)["id"]}),
    solution=[do(steps.open_user, "{user}"), click("button", "Block")],
)
