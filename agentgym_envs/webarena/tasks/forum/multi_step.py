"""Tasks of several steps, and tasks that are impossible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.sites.forum.subjects import OTHERS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, NOTIFICATIONS, PHRASES, TITLES, ForumTemplate, column, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed


def _report_impossible(page: PageReader, offered: bool) -> Iterator[str]:
    """Yield the command that reports the task as not achievable, after checking that the page does not offer it."""
    if offered:
        raise NoOracle("the page offers what the task assumes to be impossible")
    yield page.not_achievable()


class UpvoteNewest(ForumTemplate):
    """Upvote the newest posts of a board."""

    name, kind, difficulty, held_out = "forum-upvote-newest", "change", "hard", True
    intents = (
        "Upvote the {count} newest posts in the board {board}.",
        "Give an upvote to each of the {count} most recent posts of {board}.",
        "In {board}, upvote what was posted last: the {count} newest posts.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards whose newest posts have no vote by the account."""
        found = []
        for board in queries.boards(world):
            for count in (2, 3, 4, 5):
                if not any(row["voted"] or row["author"] == ME for row in queries.newest(world, board, count)):
                    found.append({"board": board, "count": count})
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = queries.newest(world, params["board"], params["count"])
        return [changed(*(change for row in rows for change in queries.vote_changes("post", row, 1)))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._vote(page, params["board"], params["count"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Leave out the last post."""
        yield from self._vote(page, params["board"], params["count"] - 1)

    def _vote(self, page: PageReader, board: str, count: int) -> Iterator[str]:
        yield from steps.open_board(page, board, "New")
        for title in [post.title for post in steps.listed(page)][:count]:
            yield page.click_in(title, "button", "Upvote")
        yield page.stop()


class MessageTopCommenter(ForumTemplate):
    """Send a message to the author of a post's best comment."""

    name, kind, difficulty, held_out = "forum-thank-top", "change", "hard", True
    intents = (
        'Send a private message to whoever wrote the comment with the highest score on the post "{title}". Subject: '
        '"{subject}". Message: "{text}"',
        'Find the author of the best rated comment or reply under "{title}" and write to that user in private: subject '
        '"{subject}", text "{text}"',
        'In the thread "{title}", whose comment has the highest score, replies included? Send that user a message '
        'called "{subject}" that says "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Threads with a single best comment, by another user."""
        me = world.value("SELECT name FROM forum_users WHERE id = ?", ME)
        rows = [{"title": title} for title, author in queries.top_comment_authors(world).items() if author != me]
        return queries.with_choices(rows, rng, subject=TITLES, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        name = queries.top_comment_authors(world)[params["title"]]
        return [changed(*queries.message_added(world, name, params["subject"], params["text"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._write(page, params, best=True)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Write to the author of the worst comment."""
        yield from self._write(page, params, best=False)

    def _write(self, page: PageReader, params: Params, *, best: bool) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        found = yield from steps.all_comments(page)
        author = sorted(found, key=lambda comment: comment.score)[-1 if best else 0].author
        yield page.click("link", steps.MESSAGES)
        yield page.click("link", "New message")
        yield page.type("To", author)
        yield from steps.write_message(page, params["subject"], params["text"])
        yield page.stop()


class SubscribeLarger(ForumTemplate):
    """Subscribe to the larger of two boards."""

    name, kind, difficulty, held_out = "forum-subscribe-larger", "change", "medium", True
    intents = (
        "Subscribe to whichever of the boards {first} and {second} has more subscribers.",
        "I want to follow one of {first} and {second}: subscribe to the one with the larger number of subscribers.",
        "Compare the boards {first} and {second}, and subscribe to the one that more users subscribe to.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of boards without a subscription of the account."""
        query = (
            "SELECT name FROM forum_boards WHERE id NOT IN (SELECT board FROM forum_subscriptions WHERE account = 1)"
        )
        names = sorted(column(world, query))
        pairs = [(first, second) for first in names for second in names if first != second]
        return [{"first": a, "second": b} for a, b in pairs if self._size(world, a) != self._size(world, b)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        best = max(params["first"], params["second"], key=lambda name: self._size(world, name))
        return [changed(Added("forum_subscriptions", {"account": ME, "board": queries.board(world, best)}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Boards")
        yield page.click_in(self._sorted(page, params)[-1], "button", "Subscribe")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Subscribe to the smaller board."""
        yield page.click("link", "Boards")
        yield page.click_in(self._sorted(page, params)[0], "button", "Subscribe")
        yield page.stop()

    def _sorted(self, page: PageReader, params: Params) -> list[str]:
        sizes = {row["Board"]: int(row["Subscribers"]) for row in page.table()}
        return sorted((params["first"], params["second"]), key=lambda name: sizes[name])

    def _size(self, world: World, name: str) -> int:
        return int(world.value("SELECT COUNT(*) FROM forum_subscriptions WHERE board = ?", queries.board(world, name)))


class AnswerNewest(ForumTemplate):
    """Comment on the newest post of a board."""

    name, kind, difficulty = "forum-answer-newest", "change", "medium"
    intents = (
        'Comment on the newest post in the board {board}: "{text}"',
        'Whatever was posted last in {board}, write "{text}" under it.',
        'Find the most recent post of {board} and leave the comment "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards whose newest post is open for comments."""
        boards = [board for board in queries.boards(world) if not queries.newest(world, board)[0]["locked"]]
        return queries.with_choices([{"board": board} for board in boards for _ in range(2)], rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        title = queries.newest(world, params["board"])[0]["title"]
        return [changed(queries.comment_added(world, title, params["text"]), free=NOTIFICATIONS)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._comment(page, params, 0)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Comment on the second newest post."""
        yield from self._comment(page, params, 1)

    def _comment(self, page: PageReader, params: Params, index: int) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "New")
        yield page.click("link", steps.listed(page)[index].title)
        if page.has("textbox", "Your comment"):
            yield from steps.add_comment(page, params["text"])
        yield page.stop()


class SaveTopComment(ForumTemplate):
    """Save the best comment on a post."""

    name, kind, difficulty, held_out = "forum-save-top-comment", "change", "medium", True
    intents = (
        'Save the comment with the highest score on the post "{title}". Replies count too.',
        'Of everything that was said in the thread "{title}", replies included, save the comment with the most points.',
        'Find the best rated comment under "{title}" (it may be a reply) and save it in my account.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Short threads with a single best comment that is not saved yet."""
        saved = column(world, "SELECT p.title FROM forum_saved s JOIN comments p ON p.id = s.comment")
        counts = {row["title"]: row["comments"] for row in select(world, "SELECT title, comments FROM posts")}
        return [
            {"title": title}
            for title in queries.top_comment_authors(world)
            if title not in saved and counts[title] < 15
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT id FROM comments WHERE title = ? ORDER BY score DESC"
        number = column(world, query, params["title"])[0]
        return [changed(Added("forum_saved", {"account": ME, "post": None, "comment": number}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._save(page, params, best=True)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Save the worst comment."""
        yield from self._save(page, params, best=False)

    def _save(self, page: PageReader, params: Params, *, best: bool) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        scores = [comment.score for comment in steps.comments(page)]
        index = scores.index(max(scores) if best else min(scores))
        yield from steps.expand_more(page, index)
        yield page.click("button", re.compile("Save|Unsave"), after="More")
        yield page.stop()


class NoSuchBoard(ForumTemplate):
    """Post in a board that does not exist."""

    name, kind, difficulty = "forum-no-such-board", "change", "easy"
    intents = (
        'Post in the board {board} with the title "{title}" and the text "{text}"',
        'Subscribe to the board {board} and post "{title}" there, saying "{text}"',
        'Start a thread in the existing board {board}. Title: "{title}". Text: "{text}"',
    )
    _more = ("chess", "sailing", "beekeeping", "running", "sewing", "parenting", "fishing", "typewriters")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards of other worlds, and names that no world uses."""
        names = [name for name in (*OTHERS, *self._more) if name not in queries.boards(world)]
        return queries.with_choices(
            [{"board": name} for name in names for _ in range(2)], rng, title=TITLES, text=PHRASES
        )

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Boards")
        yield from _report_impossible(page, page.has("link", params["board"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Claim that it is done."""
        yield page.stop("Done")


class RenameUser(ForumTemplate):
    """Change the user name, which the settings do not offer."""

    name, kind, difficulty = "forum-rename", "change", "easy"
    intents = (
        "Change my user name in the forum to {user}.",
        "From now on I want to be called {user} in the forum. Change the name of my account.",
        "Rename my forum account to {user}.",
    )
    _names = ("morningfog", "quietriver", "papermoth", "slowtrain", "tealantern", "oldkettle", "northwind", "bluecrate")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"user": f"{name}{number}"} for name in self._names for number in (7, 21)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_account_menu(page, "Settings")
        yield from _report_impossible(page, page.has("textbox", "User name"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Change the biography instead."""
        yield from steps.open_account_menu(page, "Settings")
        yield page.type("Biography", params["user"])
        yield page.click("button", "Save profile")
        yield page.stop()


class EditOthersPost(ForumTemplate):
    """Change another user's post, which is impossible."""

    name, kind, difficulty, held_out = "forum-edit-others", "change", "easy", True
    intents = (
        'Change the text of the post "{title}" to "{text}"',
        'Edit the post "{title}" so that it says "{text}"',
        'The post "{title}" should read "{text}" instead. Please edit it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts of other users in boards that the account does not moderate."""
        query = "SELECT title FROM posts WHERE author <> 1 AND board_name <> ? AND url IS NULL"
        return queries.with_choices(select(world, query, queries.my_board(world)), rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from _report_impossible(page, page.has("link", "Edit"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Write a comment instead."""
        yield from steps.open_post(page, params["title"])
        if page.has("textbox", "Your comment"):
            yield from steps.add_comment(page, params["text"])
        yield page.stop()


TEMPLATES = (
    UpvoteNewest(),
    MessageTopCommenter(),
    SubscribeLarger(),
    AnswerNewest(),
    SaveTopComment(),
    NoSuchBoard(),
    RenameUser(),
    EditOthersPost(),
)
