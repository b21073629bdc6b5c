"""Tasks of one or two clicks: votes, saved and hidden posts, subscriptions, blocked users."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, ForumTemplate, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_VALUES = {"Upvote": 1, "Downvote": -1}
_OPPOSITE = {"Upvote": "Downvote", "Downvote": "Upvote"}


class VotePost(ForumTemplate):
    """Vote on a post."""

    name, kind, difficulty = "forum-vote-post", "change", "easy"
    records = True
    intents = (
        '{vote} the post "{title}".',
        '{vote} the forum post with the title "{title}" for me.',
        'Please find "{title}" in the forum. {vote} it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts without a vote by the account."""
        rows = select(world, "SELECT title FROM posts WHERE NOT voted AND author <> 1")
        return queries.with_choices(rows, rng, vote=list(_VALUES))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The vote and the new score, and a request that a form sent."""
        found = queries.post(world, params["title"])
        asked_for = Requested(f"{ORIGIN}/vote/post/{found['id']}", method="POST")
        return [changed(*queries.vote_changes("post", found, _VALUES[params["vote"]])), asked_for]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._vote(page, params["title"], params["vote"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Cast the opposite vote."""
        yield from self._vote(page, params["title"], _OPPOSITE[params["vote"]])

    def _vote(self, page: PageReader, title: str, vote: str) -> Iterator[str]:
        yield from steps.open_post(page, title)
        yield page.click("button", vote)
        yield page.stop()


class VoteExtreme(ForumTemplate):
    """Vote on the newest or the best post of a board."""

    name, kind, difficulty = "forum-vote-extreme", "change", "medium"
    intents = (
        "{vote} the {which} post in the board {board}.",
        "{vote} whatever is the {which} post of {board}.",
        "Go to the board {board}. {vote} its {which} post.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards in which that post has no vote by the account."""
        rows = []
        for board in queries.boards(world):
            for which in ("newest", "highest-scored"):
                found = self._post(world, board, which)
                if not found["voted"] and found["author"] != ME:
                    rows.append({"board": board, "which": which})
        return queries.with_choices(rows, rng, vote=list(_VALUES))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = self._post(world, params["board"], params["which"])
        return [changed(*queries.vote_changes("post", found, _VALUES[params["vote"]]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._vote(page, params, 0)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Vote on the last post of the page."""
        yield from self._vote(page, params, -1)

    def _vote(self, page: PageReader, params: Params, index: int) -> Iterator[str]:
        tab = "New" if params["which"] == "newest" else "Top"
        yield from steps.open_board(page, params["board"], tab)
        title = steps.listed(page)[index].title
        yield page.click_in(title, "button", re.compile(rf"(Retract )?{params['vote']}", re.IGNORECASE))
        yield page.stop()

    def _post(self, world: World, board: str, which: str) -> sqlite3.Row:
        return queries.newest(world, board)[0] if which == "newest" else queries.by_score(world, board)[0]


class VoteComment(ForumTemplate):
    """Vote on a user's comment."""

    name, kind, difficulty = "forum-vote-comment", "change", "medium"
    intents = (
        '{vote} the comment by {user} on the post "{title}".',
        'In the thread "{title}" there is a comment by {user}. {vote} it.',
        '{vote} what {user} has commented on "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Comments of other users without a vote by the account."""
        voted = "SELECT comment FROM forum_votes WHERE comment IS NOT NULL"
        rows = select(
            world,
            f"SELECT title, author_name AS user FROM lone WHERE author <> 1 AND id NOT IN ({voted}) AND comments < 15 "
            "AND comments > 1",
        )
        return queries.with_choices(rng.sample(rows, 60), rng, vote=list(_VALUES))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = queries.comment(world, params["title"], params["user"])
        return [changed(*queries.vote_changes("comment", found, _VALUES[params["vote"]]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.find_comment(page, params["user"])
        yield page.click_in(params["user"], "button", params["vote"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Vote on the post instead."""
        yield from steps.open_post(page, params["title"])
        yield page.click("button", re.compile(rf"(Retract )?{params['vote']}", re.IGNORECASE))
        yield page.stop()


class RetractVote(ForumTemplate):
    """Retract a vote."""

    name, kind, difficulty = "forum-retract-vote", "change", "easy"
    intents = (
        'Take back my vote on the post "{title}".',
        'I have voted on "{title}" by mistake. Undo that.',
        'Remove the vote that I gave the post "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return select(world, "SELECT title FROM posts WHERE voted")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = queries.post(world, params["title"])
        value = world.value("SELECT value FROM forum_votes WHERE post = ?", found["id"])
        score = Updated("forum_posts", {"id": found["id"]}, {"score": found["score"] - value})
        return [changed(score, Removed("forum_votes", {"post": found["id"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.click("button", re.compile("Retract .*"))
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Cast the opposite vote."""
        yield from steps.open_post(page, params["title"])
        yield page.click("button", re.compile("Upvote|Downvote"))
        yield page.stop()


class SaveOrHidePost(ForumTemplate):
    """Save or hide a post."""

    name, kind, difficulty = "forum-keep-post", "change", "easy"
    intents = (
        '{do} the post "{title}".',
        '{do} the post called "{title}" in my forum account.',
        'Find the post "{title}". {do} it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts that the account has not saved."""
        rows = select(world, "SELECT title FROM posts WHERE id NOT IN (SELECT post FROM forum_saved WHERE post > 0)")
        return queries.with_choices(rows, rng, do=["Save", "Hide"])

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        table = {"Save": "forum_saved", "Hide": "forum_hidden"}[params["do"]]
        return [changed(Added(table, {"account": ME, "post": queries.post(world, params["title"])["id"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.click("button", params["do"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Upvote the post, or retract the vote."""
        yield from steps.open_post(page, params["title"])
        yield page.click("button", re.compile(r"(Retract )?upvote", re.IGNORECASE))
        yield page.stop()


class UnsaveOrUnhidePost(ForumTemplate):
    """Remove a post from the list of saved or hidden posts."""

    name, kind, difficulty = "forum-unkeep", "change", "medium"
    intents = (
        'Take the post "{title}" off the list of posts that I have {done}.',
        'I have {done} the post "{title}". Undo that.',
        'The post "{title}" should no longer be {done} in my account.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT title, '{0}' AS done FROM forum_posts p WHERE {1} AND id IN (SELECT post FROM forum_{0})"
        hidden = world.rows(query.format("hidden", "1"))
        blocked = "author NOT IN (SELECT user FROM forum_blocks)"
        return [dict(row) for row in (*hidden, *world.rows(query.format("saved", blocked)))]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value("SELECT id FROM forum_posts WHERE title = ?", params["title"])
        return [changed(Removed(f"forum_{params['done']}", {"account": ME, "post": number}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        entry, word = {"saved": ("Saved", "Unsave"), "hidden": ("Hidden posts", "Unhide")}[params["done"]]
        yield from steps.open_account_menu(page, entry)
        yield from steps.choose_from_more(page, params["title"], "button", word)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Hide a saved post, or save a hidden one."""
        entry, word = {"saved": ("Saved", "Hide"), "hidden": ("Hidden posts", "Save")}[params["done"]]
        yield from steps.open_account_menu(page, entry)
        yield from steps.choose_from_more(page, params["title"], "button", re.compile(f"(Un)?{word}", re.IGNORECASE))
        yield page.stop()


class SubscribeToBoard(ForumTemplate):
    """Subscribe to a board, or unsubscribe."""

    name, kind, difficulty = "forum-subscribe", "change", "easy"
    intents = (
        "I would like to {do} the board {board}.",
        "Please {do} the forum's board {board}.",
        "I want to {do} the board {board}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        mine = {row[0] for row in world.rows("SELECT board FROM forum_subscriptions WHERE account = 1")}
        numbers = ((board, queries.board(world, board)) for board in queries.boards(world))
        return [{"board": b, "do": "unsubscribe from" if number in mine else "subscribe to"} for b, number in numbers]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = {"account": ME, "board": queries.board(world, params["board"])}
        change: Expected = Added("forum_subscriptions", row)
        if params["do"].startswith("un"):
            change = Removed("forum_subscriptions", row)
        return [changed(change)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Boards")
        yield page.click_in(params["board"], "button", re.compile("Unsubscribe|Subscribe"))
        yield page.stop()


class BlockUser(ForumTemplate):
    """Block a user."""

    name, kind, difficulty = "forum-block", "change", "medium"
    intents = (
        "Block the user {user}.",
        "I do not want to read anything by {user} in the forum any more. Block that user.",
        "Put {user} on my list of blocked users.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"user": name} for name in queries.others(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Added("forum_blocks", {"account": ME, "user": queries.user(world, params["user"])["id"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_user(page, params["user"])
        yield page.click("button", "Block")
        yield page.stop()


TEMPLATES = (
    VotePost(),
    VoteExtreme(),
    VoteComment(),
    RetractVote(),
    SaveOrHidePost(),
    UnsaveOrUnhidePost(),
    SubscribeToBoard(),
    BlockUser(),
)
