"""Tasks of several steps, and tasks that are impossible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.sites.forum.subjects import OTHERS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, NOTIFICATIONS, PHRASES, TITLES, ForumTemplate, column, rows
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, click, click_in, do, given, not_offered, type_text
from agentgym_envs.webarena.tasks.template import Params


def _newest_without_vote(world: World) -> Iterator[Params]:
    """Yield boards whose newest posts have no vote by the account."""
    for board in queries.boards(world):
        for count in (2, 3, 4, 5):
            if not any(row["voted"] or row["author"] == ME for row in queries.newest(world, board, count)):
                yield {"board": board, "count": count}


def upvote_first(page: PageReader, count: int) -> Iterator[str]:
    """Upvote the first posts of the list on the page."""
    for title in [post.title for post in steps.listed(page)][:count]:
        yield page.click_in(title, "button", "Upvote")


upvote_newest = ForumTemplate(
    "forum-upvote-newest",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Upvote the {count} newest posts in the board {board}.",
        "Give an upvote to each of the {count} most recent posts of {board}.",
        "In {board}, upvote what was posted last: the {count} newest posts.",
    ),
    instances=_newest_without_vote,
    expected=lambda world, board, count: [
        change for row in queries.newest(world, board, count) for change in queries.vote_changes("post", row, 1)
    ],
    solution=[do(steps.open_board, "{board}", "New"), do(upvote_first, given(lambda count: count))],
    mistake=do(upvote_first, given(lambda count: count - 1)),
)


def _threads_of_others(world: World) -> list[Params]:
    """Return threads with a single best comment, by another user."""
    me = queries.my_name(world)
    return [{"title": title} for title, author in queries.top_comment_authors(world).items() if author != me]


def _write_to_author(page: PageReader, title: str, subject: str, text: str, index: int) -> Iterator[str]:
    """Send a message to the author of a comment, counted from the lowest score."""
    yield from steps.open_post(page, title)
    yield from write_to_author_here(page, subject, text, index)


def write_to_author_here(page: PageReader, subject: str, text: str, index: int) -> Iterator[str]:
    """Send a message to the author of a comment on the post on the page, counted from the lowest score."""
    found = yield from steps.all_comments(page)
    author = sorted(found, key=lambda comment: comment.score)[index].author
    yield from steps.send_message(page, author, subject, text)


message_top_commenter = ForumTemplate(
    "forum-thank-top",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Send a private message to whoever wrote the comment with the highest score on the post "{title}". Subject: '
        '"{subject}". Message: "{text}"',
        'Find the author of the best rated comment or reply under "{title}" and write to that user in private: subject '
        '"{subject}", text "{text}"',
        'In the thread "{title}", whose comment has the highest score, replies included? Send that user a message '
        'called "{subject}" that says "{text}"',
    ),
    instances=choose(_threads_of_others, subject=TITLES, text=PHRASES),
    expected=lambda world, title, subject, text: queries.message_added(
        world, queries.top_comment_authors(world)[title], subject, text
    ),
    solution=[do(_write_to_author, "{title}", "{subject}", "{text}", -1)],
    mistake=do(_write_to_author, "{title}", "{subject}", "{text}", 0),
)


def _pairs(world: World) -> list[Params]:
    """Return pairs of boards without a subscription of the account."""
    query = "SELECT name FROM forum_boards WHERE id NOT IN (SELECT board FROM forum_subscriptions WHERE account = 1)"
    names = sorted(column(world, query))
    pairs = [(first, second) for first in names for second in names if first != second]
    return [{"first": a, "second": b} for a, b in pairs if _size(world, a) != _size(world, b)]


def _by_size(page: PageReader, first: str, second: str) -> list[str]:
    sizes = {row["Board"]: int(row["Subscribers"]) for row in page.table()}
    return sorted((first, second), key=lambda name: sizes[name])


def _size(world: World, name: str) -> int:
    return int(world.value("SELECT COUNT(*) FROM forum_subscriptions WHERE board = ?", queries.board(world, name)))


subscribe_larger = ForumTemplate(
    "forum-subscribe-larger",
    "change",
    "medium",
    held_out=True,
    intents=(
        "Subscribe to whichever of the boards {first} and {second} has more subscribers.",
        "I want to follow one of {first} and {second}: subscribe to the one with the larger number of subscribers.",
        "Compare the boards {first} and {second}, and subscribe to the one that more users subscribe to.",
    ),
    instances=_pairs,
    expected=lambda world, first, second: Added(
        "forum_subscriptions",
        {"account": ME, "board": queries.board(world, max(first, second, key=lambda name: _size(world, name)))},
    ),
    solution=[
        click("link", "Boards"),
        click_in(given(lambda page, first, second: _by_size(page, first, second)[-1]), "button", "Subscribe"),
    ],
    mistake=click_in(given(lambda page, first, second: _by_size(page, first, second)[0]), "button", "Subscribe"),
)


def _open_boards(world: World) -> list[Params]:
    """Return boards whose newest post is open for comments."""
    return [row for row in queries.each_board(world) if not queries.newest(world, row["board"])[0]["locked"]]


answer_newest = ForumTemplate(
    "forum-answer-newest",
    "change",
    "medium",
    intents=(
        'Comment on the newest post in the board {board}: "{text}"',
        'Whatever was posted last in {board}, write "{text}" under it.',
        'Find the most recent post of {board} and leave the comment "{text}"',
    ),
    instances=choose(_open_boards, times=2, text=PHRASES),
    expected=lambda world, board, text: queries.comment_added(world, queries.newest(world, board)[0]["title"], text),
    free=NOTIFICATIONS,
    solution=[
        do(steps.open_board, "{board}", "New"),
        click("link", steps.nth_title(0)),
        do(steps.add_comment_if_open, "{text}"),
    ],
    mistake=[
        do(steps.open_board, "{board}", "New"),
        click("link", steps.nth_title(1)),
        do(steps.add_comment_if_open, "{text}"),
    ],
)


def _unsaved_threads(world: World) -> list[Params]:
    """Return short threads with a single best comment that is not saved yet."""
    saved = column(world, "SELECT p.title FROM forum_saved s JOIN comments p ON p.id = s.comment")
    short = column(world, "SELECT title FROM posts WHERE comments < 15")
    return [{"title": title} for title in queries.top_comment_authors(world) if title in short and title not in saved]


def save_comment(page: PageReader, chosen: Callable[[Sequence[int]], int]) -> Iterator[str]:
    """Save the first comment with the score that a function chooses."""
    scores = [comment.score for comment in steps.comments(page)]
    yield from steps.expand_more(page, scores.index(chosen(scores)))
    yield page.click("button", re.compile("Save|Unsave"), after="More")


save_top_comment = ForumTemplate(
    "forum-save-top-comment",
    "change",
    "medium",
    held_out=True,
    intents=(
        'Save the comment with the highest score on the post "{title}". Replies count too.',
        'Of everything that was said in the thread "{title}", replies included, save the comment with the most points.',
        'Find the best rated comment under "{title}" (it may be a reply) and save it in my account.',
    ),
    instances=_unsaved_threads,
    expected=lambda world, title: Added(
        "forum_saved", {"account": ME, "post": None, "comment": queries.top_comment(world, title)["id"]}
    ),
    solution=[do(steps.open_post, "{title}"), do(save_comment, max)],
    mistake=do(save_comment, min),
)

_MORE = ("chess", "sailing", "beekeeping", "running", "sewing", "parenting", "fishing", "typewriters")


def _missing_boards(world: World) -> list[Params]:
    """Return boards of other worlds, and names that no world uses."""
    return [{"board": name} for name in (*OTHERS, *_MORE) if name not in queries.boards(world)]


no_such_board = ForumTemplate(
    "forum-no-such-board",
    "change",
    "easy",
    intents=(
        'Post in the board {board} with the title "{title}" and the text "{text}"',
        'Subscribe to the board {board} and post "{title}" there, saying "{text}"',
        'Start a thread in the existing board {board}. Title: "{title}". Text: "{text}"',
    ),
    instances=choose(_missing_boards, times=2, title=TITLES, text=PHRASES),
    expected=NotAchievable,
    solution=[click("link", "Boards"), not_offered("link", "{board}")],
    mistake=[answer("Done")],
)

_NAMES = ("morningfog", "quietriver", "papermoth", "slowtrain", "tealantern", "oldkettle", "northwind", "bluecrate")

rename_user = ForumTemplate(
    "forum-rename",
    "change",
    "easy",
    intents=(
        "Change my user name in the forum to {user}.",
        "From now on I want to be called {user} in the forum. Change the name of my account.",
        "Rename my forum account to {user}.",
    ),
    instances=lambda: [{"user": f"{name}{number}"} for name in _NAMES for number in (7, 21)],
    expected=NotAchievable,
    solution=[do(steps.open_account_menu, "Settings"), not_offered("textbox", "User name")],
    mistake=[
        do(steps.open_account_menu, "Settings"),
        type_text("Biography", "{user}"),
        click("button", "Save profile"),
    ],
)

edit_others_post = ForumTemplate(
    "forum-edit-others",
    "change",
    "easy",
    held_out=True,
    intents=(
        'Change the text of the post "{title}" to "{text}"',
        'Edit the post "{title}" so that it says "{text}"',
        'The post "{title}" should read "{text}" instead. Please edit it.',
    ),
    instances=rows(
        "SELECT title FROM posts WHERE author <> 1 AND board_name <> ? AND url IS NULL", queries.my_board, text=PHRASES
    ),
    expected=NotAchievable,
    solution=[do(steps.open_post, "{title}"), not_offered("link", "Edit")],
    mistake=[do(steps.open_post, "{title}"), do(steps.add_comment_if_open, "{text}")],
)
