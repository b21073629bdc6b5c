"""Tasks about notes on the map: report, comment, resolve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    MAP,
    NEARBY_CATEGORIES,
    clear_nearest,
    kind_words,
    place,
    places,
)
from agentgym_envs.webarena.tasks.maps.steps import count, find_nearby, open_place
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_NOTE_NAME = re.compile(r"Note \d+")
_PROBLEMS = (
    "The entrance is on the other side of the building.",
    "There are two steps at the door and no ramp.",
    "The sign at the door gives other opening hours.",
    "It was closed last week, and nobody answers the phone.",
    "The marker is on the wrong side of the street.",
    "There is a new bicycle stand in front of it.",
    "They are rebuilding; one gets in through the yard.",
    "The name over the door is spelt otherwise.",
)
_REPLIES = (
    "I went past this morning: it is still so.",
    "Thank you, I shall have a look on Saturday.",
    "Could you add a photo, please?",
    "I asked inside, and they say it is true.",
    "This has been like that for a month.",
    "I cannot see anything of the kind there.",
)
_RESULTS = ("Surveyed and corrected.", "Checked on site today.", "All is well again.", "Done, thanks for the hint.")
_REOPENING_COMMENTS = ("It is back as it was.", "Not settled yet, I am afraid.", "I saw it again yesterday.")


class ReportProblem(TemplateClass):
    """Report a problem at a place."""

    name, group, sites = "maps-report-problem", "maps", ("maps",)
    kind, difficulty, records = "change", "medium", True
    intents = (
        'Report a problem at {place} in {town}: "{text}"',
        'Add a note to the map about {place} in {town} that says "{text}"',
        'Something is wrong at {place}, {town}. Leave a note there with the words "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in rng.sample(places(world), 40):
            yield {"place": row["name"], "town": row["town_name"], "text": rng.choice(_PROBLEMS)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [
            _comment_added(place(world, params["place"])["id"], params["text"]),
            Requested(f"{MAP}/notes/new", method="POST", posted={"text": params["text"]}),
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield from _report(page, params["text"])
        yield page.stop()


def _report(page: PageReader, text: str) -> Iterator[str]:
    yield page.click("link", "Report a problem")
    yield page.type("What is wrong or missing?", text)
    yield page.click("button", "Add note")


def _comment_added(number: int, text: str) -> Evaluator:
    comment = {"account": 1, "action": "opened", "text": text}
    return changed(Added("map_notes", {"place": number, "status": "open"}), Added("map_note_comments", comment))


class ReportNearest(TemplateClass):
    """Report a problem at the nearest place of a kind."""

    name, group, sites = "maps-report-nearest", "maps", ("maps",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Find the {kind} that is nearest to {place} in a straight line, and report there: "{text}"',
        'Leave the note "{text}" at whichever {kind} is closest to {place} as the crow flies.',
        'Which {kind} is nearest to {place}, as the crow flies? Add a note about it that says "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a clearly nearest one."""
        for row in rng.sample(places(world), 50):
            category = rng.choice(NEARBY_CATEGORIES)
            if category != row["category"] and clear_nearest(world, row["name"], category):
                yield {"place": row["name"], "kind": kind_words(category), "text": rng.choice(_PROBLEMS)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = clear_nearest(world, params["place"], KEY_OF[params["kind"]])
        return [_comment_added(found["id"] if found else 0, params["text"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from find_nearby(page, params["place"], params["kind"])
        yield page.click("link", page.table()[0]["Place"])
        yield from _report(page, params["text"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Report it at the starting place."""
        yield from open_place(page, params["place"])
        yield from _report(page, params["text"])
        yield page.stop()


class CommentOnNote(TemplateClass):
    """Comment on the open note about a place."""

    name, group, sites = "maps-comment-on-note", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Comment on the open note about {place} in {town}: "{text}"',
        'There is an open note about {place} in {town}. Add the comment "{text}" to it.',
        'Write "{text}" under the open note at {place}, {town}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a single open note."""
        open_notes = "(SELECT COUNT(*) FROM map_notes n WHERE n.place = p.id AND n.status = 'open')"
        for row in places(world, f"{open_notes} = 1"):
            yield {"place": row["name"], "town": row["town_name"], "text": rng.choice(_REPLIES)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT id FROM map_notes WHERE place = ? AND status = 'open'"
        note = world.value(query, place(world, params["place"])["id"])
        values = {"note": note, "account": 1, "action": "commented", "text": params["text"]}
        return [changed(Added("map_note_comments", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", _NOTE_NAME, after="Open notes")
        yield page.type("Your comment", params["text"])
        yield page.click("button", "Comment")
        yield page.stop()


class ResolveNewest(TemplateClass):
    """Resolve the newest open note of a town."""

    name, group, sites = "maps-resolve-newest", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Resolve the newest open note in {town} with the comment "{text}"',
        'Of the notes in {town} that are still open, mark the most recent one as resolved and say "{text}"',
        'The latest open note in {town} is settled. Resolve it, with the words "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT DISTINCT t.name FROM map_towns t JOIN map_notes n ON n.town = t.id WHERE n.status = 'open'"
        for row in world.rows(f"{query} ORDER BY t.id"):
            yield {"town": row["name"], "text": rng.choice(_RESULTS)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        note = _newest(world, params["town"])
        comment = {"note": note, "account": 1, "action": "resolved", "text": params["text"]}
        closed = Updated("map_notes", {"id": note}, {"status": "resolved", "closed": stamp()})
        return [changed(closed, Added("map_note_comments", comment))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _filter(page, params["town"], "Open")
        yield page.click("link", _NOTE_NAME)
        yield page.type("Your comment", params["text"])
        yield page.click("button", "Resolve")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Only comment on it."""
        yield from _filter(page, params["town"], "Open")
        yield page.click("link", _NOTE_NAME)
        yield page.type("Your comment", params["text"])
        yield page.click("button", "Comment")
        yield page.stop()


def _filter(page: PageReader, town: str, status: str) -> Iterator[str]:
    yield page.click("link", "Notes")
    yield page.choose("Status", status)
    yield page.choose("Town", town)
    yield page.click("button", "Show")


def _newest(world: World, town: str) -> int:
    query = "SELECT n.id FROM map_notes n JOIN map_towns t ON t.id = n.town WHERE t.name = ? AND n.status = 'open'"
    found: int = world.value(f"{query} ORDER BY n.opened DESC", town)
    return found


class ReopenMine(TemplateClass):
    """Reopen a resolved note of the agent."""

    name, group, sites = "maps-reopen-mine", "maps", ("maps",)
    kind, difficulty = "change", "hard"
    intents = (
        'The note that I opened in {town} was resolved too early. Reopen it with the comment "{text}"',
        'Reopen my resolved note in {town} and write "{text}"',
        'Among the notes opened by me, find the resolved one in {town} and open it again, saying "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Towns with a single such note."""
        rows = world.rows(f"SELECT t.name {_OWN_RESOLVED} GROUP BY t.id HAVING COUNT(*) = 1 ORDER BY t.id")
        return [{"town": row["name"], "text": text} for row in rows for text in rng.sample(_REOPENING_COMMENTS, 2)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        note = world.value(f"SELECT n.id {_OWN_RESOLVED} AND t.name = ?", params["town"])
        comment = {"note": note, "account": 1, "action": "reopened", "text": params["text"]}
        opened = Updated("map_notes", {"id": note}, {"status": "open", "closed": None})
        return [changed(opened, Added("map_note_comments", comment))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from page.expand(re.compile(".+"), after="History")
        yield page.click("link", "My notes")
        yield page.choose("Status", "Resolved")
        yield page.choose("Town", params["town"])
        yield page.click("button", "Show")
        yield page.click("link", _NOTE_NAME)
        yield page.type("Your comment", params["text"])
        yield page.click("button", "Reopen")
        yield page.stop()


_OWN_RESOLVED = (
    "FROM map_notes n JOIN map_towns t ON t.id = n.town JOIN map_note_comments c ON c.note = n.id "
    "WHERE n.status = 'resolved' AND c.action = 'opened' AND c.account = 1"
)


class OpenNotes(TemplateClass):
    """Count the open notes of a town."""

    name, group, sites = "maps-open-notes", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many notes in {town} are still open?",
        "Count the open notes in {town}.",
        "What is the number of notes in {town} that nobody has resolved yet?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Towns that have resolved notes, too."""
        rows = world.rows(
            "SELECT t.name FROM map_towns t JOIN map_notes n ON n.town = t.id GROUP BY t.id "
            "HAVING SUM(n.status = 'open') BETWEEN 1 AND COUNT(*) - 1 ORDER BY t.id"
        )
        return [{"town": row["name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT COUNT(*) FROM map_notes n JOIN map_towns t ON t.id = n.town WHERE t.name = ?"
        return [says(world.value(f"{query} AND n.status = 'open'", params["town"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _filter(page, params["town"], "Open")
        yield page.stop(count(page, "note"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count all notes."""
        yield from _filter(page, params["town"], "All")
        yield page.stop(count(page, "note"))


class ShowNewestNote(TemplateClass):
    """Open the newest open note of a town."""

    name, group, sites = "maps-show-newest-note", "maps", ("maps",)
    kind, difficulty = "navigation", "medium"
    intents = (
        "Open the newest of the open notes in {town}.",
        "Show me the most recent note in {town} that is still open.",
        "Go to the page of the latest open note in {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT DISTINCT t.name FROM map_towns t JOIN map_notes n ON n.town = t.id WHERE n.status = 'open'"
        return [{"town": row["name"]} for row in world.rows(f"{query} ORDER BY t.id")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{MAP}/note/{_newest(world, params['town'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _filter(page, params["town"], "Open")
        yield page.click("link", _NOTE_NAME)
        yield page.stop()


TEMPLATES = (
    ReportProblem(),
    ReportNearest(),
    CommentOnNote(),
    ResolveNewest(),
    ReopenMine(),
    OpenNotes(),
    ShowNewestNote(),
)
