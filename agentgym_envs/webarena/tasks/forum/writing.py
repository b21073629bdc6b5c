"""Tasks that create posts, comments, messages and boards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.forum.wordlists import REPORTS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, NOTIFICATIONS, ORIGIN, PHRASES, TITLES, ForumTemplate, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_OPEN = "NOT locked AND NOT veiled"


class CommentOnPost(ForumTemplate):
    """Comment on a post."""

    name, kind, difficulty = "forum-comment-on", "change", "medium"
    intents = (
        'Comment on the post "{title}": "{text}"',
        'Leave the comment "{text}" under the post "{title}".',
        'In the thread "{title}", write this as a comment of its own: "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts that are open for comments."""
        return queries.with_choices(select(world, f"SELECT title FROM posts WHERE {_OPEN}"), rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = queries.post(world, params["title"])
        page = PageHolds(f"{ORIGIN}/b/{found['board_name']}/{found['id']}?sort=new", includes=(params["text"],))
        return [changed(queries.comment_added(world, params["title"], params["text"]), free=NOTIFICATIONS), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.add_comment(page, params["text"])
        yield page.stop()


class ReplyToComment(ForumTemplate):
    """Reply to a user's comment."""

    name, kind, difficulty = "forum-reply-to", "change", "medium"
    intents = (
        'Reply to the comment by {user} on the post "{title}" with "{text}"',
        'In the thread "{title}", answer the comment of {user}: "{text}"',
        'Write "{text}" as a reply to what {user} has commented on "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Comments of other users in open threads."""
        query = """
            SELECT title, author_name AS user FROM lone
            WHERE NOT locked AND author <> 1 AND comments BETWEEN 2 AND 14
        """
        return queries.with_choices(rng.sample(select(world, query), 60), rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        parent = queries.comment(world, params["title"], params["user"])["id"]
        return [changed(queries.comment_added(world, params["title"], params["text"], parent), free=NOTIFICATIONS)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.find_comment(page, params["user"])
        yield from steps.expand_in(page, params["user"], "Reply")
        yield page.type(f"Your reply to {params['user']}", params["text"])
        yield page.click_in(params["user"], "button", "Send reply")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Comment on the post instead."""
        yield from steps.open_post(page, params["title"])
        yield from steps.add_comment(page, params["text"])
        yield page.stop()


class SubmitText(ForumTemplate):
    """Submit a text post."""

    name, kind, difficulty = "forum-submit-text", "change", "medium"
    intents = (
        'Post in the board {board} with the title "{title}" and the text "{text}"',
        'Start a thread in {board}. Title: "{title}". Text: "{text}"',
        'Submit a new post to {board}, called "{title}", that says: "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = [{"board": board} for board in queries.boards(world) for _ in range(2)]
        return queries.with_choices(rows, rng, title=TITLES, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        page = PageHolds(f"{ORIGIN}/b/{params['board']}/new", includes=(params["title"],))
        return [changed(_posted(world, params, url=None, flair=None)), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield from steps.submit_post(page, params["title"], params["text"])
        yield page.stop()


def _posted(world: World, params: Params, **more: object) -> Added:
    row = {"board": queries.board(world, params["board"]), "author": ME, "title": params["title"]}
    return Added("forum_posts", {**row, "body": params.get("text", ""), "deleted": 0, **more})


class SubmitLink(ForumTemplate):
    """Submit a link post."""

    name, kind, difficulty = "forum-submit-link", "change", "medium"
    intents = (
        'Post a link to {url} in the board {board}. Its title is "{title}".',
        'Share {url} in {board} under the title "{title}".',
        'Submit a link post to the board {board}: title "{title}", URL {url}, no text.',
    )
    _hosts = ("pagesandpaths.test", "eveningnotes.test", "thequietdesk.test")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = [{"board": board} for board in queries.boards(world) for _ in range(2)]
        urls = [
            f"https://{host}/{year}/notes-{number}" for host in self._hosts for year, number in ((2025, 7), (2026, 3))
        ]
        return queries.with_choices(rows, rng, title=TITLES, url=urls)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(_posted(world, params, url=params["url"], flair=None))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Submit")
        yield page.type("Title", params["title"])
        yield page.type("URL", params["url"])
        yield page.click("button", "Post")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Put the URL into the text."""
        yield from steps.open_board(page, params["board"])
        yield from steps.submit_post(page, params["title"], params["url"])
        yield page.stop()


class SubmitFlair(ForumTemplate):
    """Submit a text post with a flair."""

    name, kind, difficulty, held_out = "forum-submit-flair", "change", "hard", True
    intents = (
        'Post "{title}" in the board {board} with the text "{text}" and the flair "{flair}".',
        'Start a thread in {board} that carries the flair "{flair}". Title: "{title}". Text: "{text}"',
        'Submit to {board}: title "{title}", text "{text}". Choose the flair "{flair}" for it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT b.name AS board, f.name AS flair FROM forum_flairs f JOIN forum_boards b ON b.id = f.board"
        return queries.with_choices(select(world, query), rng, title=TITLES, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT id FROM forum_flairs WHERE board = ? AND name = ?"
        flair = world.value(query, queries.board(world, params["board"]), params["flair"])
        return [changed(_posted(world, params, url=None, flair=flair))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield from steps.submit_post(page, params["title"], params["text"], flair=params["flair"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Submit it without the flair."""
        yield from steps.open_board(page, params["board"])
        yield from steps.submit_post(page, params["title"], params["text"])
        yield page.stop()


class NewBoard(ForumTemplate):
    """Create a board."""

    name, kind, difficulty = "forum-new-board", "change", "medium"
    intents = (
        'Open a new board named {board} with the title "{title}" and the description "{text}"',
        'Create a board in the forum: name {board}, title "{title}", description "{text}". Leave the sidebar empty.',
        'The forum needs a board for {board}. Open one of that name; its title is "{title}", its description "{text}"',
    )
    _boards = (
        ("beekeeping", "Beekeeping", "Hives, honey and stings."),
        ("sailing", "Sailing", "For everybody who waits for wind."),
        ("pottery", "Pottery", "Clay, kilns and cracked mugs."),
        ("chess", "Chess", "Openings, endgames and excuses."),
        ("birdwatching", "Birdwatching", "What flew past your window."),
        ("calligraphy", "Calligraphy", "Ink on paper, slowly."),
        ("swimming", "Swimming", "Pools, lakes and cold seas."),
        ("mushrooms", "Mushrooms", "Found, photographed and left alone."),
        ("sewing", "Sewing", "Seams, patterns and broken needles."),
        ("bread", "Bread", "Flour, water, salt, time."),
        ("origami", "Origami", "Fold it again."),
        ("climbing", "Climbing", "Rock, plastic and chalk."),
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Names that no world uses."""
        return [dict(zip(("board", "title", "text"), row, strict=True)) for row in self._boards]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = {"name": params["board"], "title": params["title"], "description": params["text"], "sidebar": ""}
        number = 1 + int(world.value("SELECT MAX(id) FROM forum_boards"))
        moderator = Added("forum_moderators", {"board": number, "user": ME})
        follower = Added("forum_subscriptions", {"board": number, "account": ME})
        return [changed(Added("forum_boards", {"id": number, **row}), moderator, follower)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Open a board")
        yield page.type("Name", params["board"])
        yield page.type("Title", params["title"])
        yield page.type("Description", params["text"])
        yield page.click("button", "Open the board")
        yield page.stop()


class SendMessage(ForumTemplate):
    """Send a user a message."""

    name, kind, difficulty = "forum-send-message", "change", "medium"
    intents = (
        'Send {user} a private message with the subject "{subject}" that says "{text}"',
        'Write to the user {user}. Subject: "{subject}". Message: "{text}"',
        'Start a private conversation with {user} called "{subject}" and write: "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows: list[dict[str, object]] = [{"user": name} for name in queries.others(world)]
        return queries.with_choices(rows, rng, subject=TITLES, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(*queries.message_added(world, params["user"], params["subject"], params["text"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", steps.MESSAGES)
        yield page.click("link", "New message")
        yield page.type("To", params["user"])
        yield from steps.write_message(page, params["subject"], params["text"])
        yield page.stop()


class AnswerMessage(ForumTemplate):
    """Reply in a private conversation."""

    name, kind, difficulty = "forum-answer-message", "change", "medium"
    intents = (
        'Answer in my private conversation with {user}: "{text}"',
        'Write back to {user} in the conversation that we have. Say "{text}"',
        'Reply to the messages from {user} with "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{**row, "text": text} for row in queries.conversations(world) for text in rng.sample(PHRASES, 2)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The new message; the earlier messages count as read."""
        person = queries.user(world, params["user"])["id"]
        number = world.value("SELECT id FROM forum_conversations WHERE ? IN (opener, partner)", person)
        query = "SELECT id FROM forum_messages WHERE conversation = ? AND author <> 1 AND unread = 1"
        read = [Updated("forum_messages", {"id": row[0]}, {"unread": 0}) for row in world.rows(query, number)]
        return [changed(Added("forum_messages", {"conversation": number, "author": ME, "body": params["text"]}), *read)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_conversation(page, params["user"])
        yield page.type("Your answer", params["text"])
        yield page.click("button", "Send")
        yield page.stop()


class ReportPost(ForumTemplate):
    """Report a post."""

    name, kind, difficulty = "forum-report", "change", "medium"
    intents = (
        'Report the post "{title}" to its moderators. The reason: {reason}.',
        'The post "{title}" should be looked at by the moderators. Report it as "{reason}".',
        'Tell the moderators that the post "{title}" is a case of "{reason}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts by other users."""
        rows = select(world, "SELECT title FROM posts WHERE author <> 1 AND pinned = 0")
        return queries.with_choices(rows, rng, reason=REPORTS)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = queries.post(world, params["title"])["id"]
        row = {"reporter": ME, "post": number, "comment": None, "reason": params["reason"], "resolved": 0}
        return [changed(Added("forum_reports", row))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.click("link", "Report")
        yield page.click("radio", params["reason"])
        yield page.click("button", "Send report")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Give another reason."""
        yield from steps.open_post(page, params["title"])
        yield page.click("link", "Report")
        yield page.click("radio", re.compile(rf"(?!{re.escape(params['reason'])}).*"))
        yield page.click("button", "Send report")
        yield page.stop()


TEMPLATES = (
    CommentOnPost(),
    ReplyToComment(),
    SubmitText(),
    SubmitLink(),
    SubmitFlair(),
    NewBoard(),
    SendMessage(),
    AnswerMessage(),
    ReportPost(),
)
