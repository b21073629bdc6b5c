"""Tasks of a moderator; the agent's account moderates one board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, PHRASES, ForumTemplate, my_board, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_FLAGS = {"Lock": "locked", "Pin": "pinned", "Remove": "removed"}
_REASONS = ("Selling shoes in every thread", "Insulting beginners", "Five accounts, one person", "Endings in titles")
_RULES = (
    ("Pictures need a caption", "Tell us what we are looking at."),
    ("One thread a day", "Give others the chance to be read."),
    ("No screenshots of text", "Screen readers cannot read them."),
    ("Say when it is solved", "So that others find the answer."),
    ("Use the search first", "Most questions have been asked."),
    ("No shouting", "Capitals are for the beginnings of sentences."),
    ("Name your sources", "A link is enough."),
    ("English only", "So that everybody can follow."),
    ("Prices with a date", "They do not stay as they are."),
    ("Keep it on topic", "There is a board for everything else."),
)


def _posts(world: World, where: str) -> list[dict[str, Any]]:
    """Return the titles of posts by other users in the account's board."""
    query = f"SELECT title FROM posts WHERE author <> 1 AND board_name = ? AND {where}"
    return select(world, query, my_board(world))


class ModeratePost(ForumTemplate):
    """Lock, pin or remove a post."""

    name, kind, difficulty = "forum-flag", "change", "easy"
    intents = (
        'As its moderator, {do} the post "{title}".',
        'Use my rights as a moderator: {do} the post "{title}".',
        'I moderate the board of the post "{title}". Please {do} it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return queries.with_choices(_posts(world, "locked = 0 AND pinned = 0"), rng, do=[*map(str.lower, _FLAGS)])

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = queries.post(world, params["title"])["id"]
        return [changed(Updated("forum_posts", {"id": number}, {_FLAGS[params["do"].capitalize()]: 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.click("button", params["do"].capitalize())
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Hide the post instead."""
        yield from steps.open_post(page, params["title"])
        yield page.click("button", "Hide")
        yield page.stop()


class SetFlair(ForumTemplate):
    """Change the flair of a post."""

    name, kind, difficulty = "forum-set-flair", "change", "medium"
    intents = (
        'Set the flair of the post "{title}" to "{flair}".',
        'As a moderator, give the post "{title}" the flair "{flair}".',
        'The post "{title}" has the wrong flair. It should be "{flair}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pair each post of the board with a flair that it does not have."""
        query = """
            SELECT p.title, f.name AS flair FROM posts p JOIN forum_flairs f ON f.board = p.board
            WHERE p.board_name = ? AND f.id IS NOT p.flair
        """
        return select(world, query, my_board(world))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = queries.post(world, params["title"])
        query = "SELECT id FROM forum_flairs WHERE board = ? AND name = ?"
        flair = world.value(query, found["board"], params["flair"])
        return [changed(Updated("forum_posts", {"id": found["id"]}, {"flair": flair}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.choose("Flair", params["flair"])
        yield page.click("button", "Set flair")
        yield page.stop()


class BanUser(ForumTemplate):
    """Ban a user."""

    name, kind, difficulty = "forum-ban", "change", "medium"
    intents = (
        'Ban the user {user} from the board {board}. Reason: "{reason}".',
        'I am a moderator of {board}. Ban {user} there and give "{reason}" as the reason.',
        'The user {user} should no longer be able to write in {board}. The reason for the ban is "{reason}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Subscribers of the board who are not banned."""
        query = """
            SELECT u.name AS user FROM forum_users u JOIN forum_subscriptions s ON s.account = u.id AND s.board = ?1
            WHERE u.id NOT IN (SELECT user FROM forum_moderators WHERE board = ?1)
            AND u.id NOT IN (SELECT user FROM forum_bans WHERE board = ?1)
        """
        name = my_board(world)
        rows = [{**row, "board": name} for row in select(world, query, queries.board(world, name))]
        return queries.with_choices(rows, rng, reason=_REASONS)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = {"board": queries.board(world, params["board"]), "user": queries.user(world, params["user"])["id"]}
        return [changed(Added("forum_bans", {**row, "reason": params["reason"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Bans")
        yield page.type("User", params["user"])
        yield page.type("Reason", params["reason"])
        yield page.click("button", "Ban")
        yield page.stop()


class LiftBan(ForumTemplate):
    """Lift a user's ban."""

    name, kind, difficulty = "forum-lift-ban", "change", "medium"
    intents = (
        "Lift the ban of {user} in the board {board}.",
        "{user} may write in {board} again. Please lift the ban.",
        "As a moderator of {board}, end the ban of the user {user}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = (
            "SELECT u.name AS user, b.name AS board FROM forum_bans x "
            "JOIN forum_users u ON u.id = x.user JOIN forum_boards b ON b.id = x.board"
        )
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Removed("forum_bans", {"user": queries.user(world, params["user"])["id"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Bans")
        yield page.click_in(params["user"], "button", "Lift ban")
        yield page.stop()


class SettleReport(ForumTemplate):
    """Decide on a report."""

    name, kind, difficulty = "forum-settle", "change", "medium"
    intents = (
        "In the board {board}, {user} has reported something. {do}.",
        "Look at the report that {user} made in {board}, where I am a moderator. {do}.",
        "There is an open report by {user} in {board}. {do}.",
    )
    _dismiss, _remove = "Dismiss the report", "Remove what was reported"

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Open reports of users who filed a single report and were not reported themselves."""
        query = "SELECT u.name FROM forum_reports r JOIN forum_users u ON u.id = r.reporter WHERE r.resolved = 0"
        names = [row[0] for row in world.rows(query)]
        reported = {row[0] for row in world.rows(_REPORTED)}
        single = [name for name in names if names.count(name) == 1 and name not in reported]
        board = my_board(world)
        return [{"board": board, "user": name, "do": do} for name in single for do in (self._dismiss, self._remove)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The report is settled. The reported post or comment is removed if the task says so."""
        query = "SELECT * FROM forum_reports WHERE reporter = ? AND resolved = 0"
        found = world.rows(query, queries.user(world, params["user"])["id"])[0]
        changes = [Updated("forum_reports", {"id": found["id"]}, {"resolved": 1})]
        if params["do"] == self._remove:
            table, number = ("forum_posts", found["post"]) if found["post"] else ("forum_comments", found["comment"])
            changes.append(Updated(table, {"id": number}, {"removed": 1}))
        return [changed(*changes)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Reports")
        yield page.click_in(params["user"], "button", params["do"].split()[0])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Make the opposite decision."""
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Reports")
        yield page.click_in(params["user"], "button", "Remove" if params["do"] == self._dismiss else "Dismiss")
        yield page.stop()


_REPORTED = """
SELECT u.name FROM forum_reports r
LEFT JOIN forum_posts p ON p.id = r.post LEFT JOIN forum_comments c ON c.id = r.comment
JOIN forum_users u ON u.id IN (p.author, c.author)
"""


class AddRule(ForumTemplate):
    """Add a rule to the account's board."""

    name, kind, difficulty = "forum-add-rule", "change", "medium"
    intents = (
        'Add the rule "{title}" with the text "{text}" to the board {board}.',
        'As a moderator of {board}, add a rule. Title: "{title}". Text: "{text}"',
        'The board {board} needs one more rule: "{title}", explained by "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"board": my_board(world), "title": title, "text": text} for title, text in _RULES]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = {"board": queries.board(world, params["board"]), "title": params["title"], "text": params["text"]}
        page = PageHolds(f"{ORIGIN}/b/{params['board']}", includes=(params["title"],))
        return [changed(Added("forum_rules", row)), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Edit rules")
        yield page.type("Title", params["title"])
        yield page.type("Text", params["text"])
        yield page.click("button", "Add rule")
        yield page.stop()


class SetSidebar(ForumTemplate):
    """Change the sidebar of the account's board."""

    name, kind, difficulty = "forum-set-sidebar", "change", "medium"
    intents = (
        'Replace the sidebar of the board {board} with "{text}"',
        'I moderate {board}. Its sidebar should say only: "{text}"',
        'Change the sidebar text of {board} to "{text}" and nothing else.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"board": my_board(world), "text": text} for text in PHRASES]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"id": queries.board(world, params["board"])}
        return [changed(Updated("forum_boards", where, {"sidebar": params["text"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Edit board")
        yield page.type("Sidebar", params["text"])
        yield page.click("button", "Save board")
        yield page.stop()


class AddModerator(ForumTemplate):
    """Make a user a moderator."""

    name, kind, difficulty, held_out = "forum-add-moderator", "change", "medium", True
    intents = (
        "Make {user} a moderator of the board {board}.",
        "I need help with moderating {board}. Give {user} the rights of a moderator there.",
        "Add the user {user} to the moderators of {board}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users who are not moderators."""
        board = my_board(world)
        query = "SELECT u.name FROM forum_moderators m JOIN forum_users u ON u.id = m.user WHERE m.board = ?"
        staff = queries.column(world, query, queries.board(world, board))
        return [{"user": name, "board": board} for name in queries.others(world) if name not in staff]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = {"board": queries.board(world, params["board"]), "user": queries.user(world, params["user"])["id"]}
        return [changed(Added("forum_moderators", row))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.click("link", "Edit board")
        yield page.type("User", params["user"])
        yield page.click("button", "Add moderator")
        yield page.stop()


class RemoveComment(ForumTemplate):
    """Remove a user's comment."""

    name, kind, difficulty = "forum-remove-comment", "change", "medium"
    intents = (
        'As a moderator, remove the comment by {user} on the post "{title}".',
        'The comment of {user} under "{title}" breaks the rules of my board. Remove it.',
        'Use my rights as a moderator to remove what {user} has commented on "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT title, author_name AS user FROM lone WHERE board_name = ? AND author <> ? AND comments < 15"
        return select(world, query, my_board(world), ME)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = queries.comment(world, params["title"], params["user"])["id"]
        return [changed(Updated("forum_comments", {"id": number}, {"removed": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.find_comment(page, params["user"])
        yield from steps.choose_from_more(page, params["user"], "button", "Remove as moderator")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Remove the post instead."""
        yield from steps.open_post(page, params["title"])
        yield page.click("button", "Remove")
        yield page.stop()


TEMPLATES = (
    ModeratePost(),
    SetFlair(),
    BanUser(),
    LiftBan(),
    SettleReport(),
    AddRule(),
    SetSidebar(),
    AddModerator(),
    RemoveComment(),
)
