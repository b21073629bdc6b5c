"""Tasks about notes on the map: report, comment, resolve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MAP, NEARBY_CATEGORIES, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, expand, given, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

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


def _note_added(number: int, text: str) -> list[Expected]:
    comment = {"account": 1, "action": "opened", "text": text}
    return [Added("map_notes", {"place": number, "status": "open"}), Added("map_note_comments", comment)]


report_problem = MapTemplate(
    "maps-report-problem",
    "change",
    "medium",
    records=True,
    intents=(
        'Report a problem at {place} in {town}: "{text}"',
        'Add a note to the map about {place} in {town} that says "{text}"',
        'Something is wrong at {place}, {town}. Leave a note there with the words "{text}"',
    ),
    instances=choose(queries.each_place(), sample=40, text=_PROBLEMS),
    expected=lambda world, place, text: [
        *_note_added(queries.place(world, place)["id"], text),
        Requested(f"{MAP}/notes/new", method="POST", posted={"text": text}),
    ],
    solution=[do(steps.open_place, "{place}"), do(steps.report_problem, "{text}")],
)


def _report_nearest_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with a clearly nearest one."""
    for row in rng.sample(queries.places(world), 50):
        category = rng.choice(NEARBY_CATEGORIES)
        if category != row["category"] and queries.clear_nearest(world, row["name"], category):
            yield {"place": row["name"], "kind": queries.kind_words(category), "text": rng.choice(_PROBLEMS)}


def _report_nearest_expected(world: World, place: str, kind: str, text: str) -> ExpectedResult:
    found = queries.clear_nearest(world, place, KEY_OF[kind])
    return _note_added(found["id"] if found else 0, text)


report_nearest = MapTemplate(
    "maps-report-nearest",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Find the {kind} that is nearest to {place} in a straight line, and report there: "{text}"',
        'Leave the note "{text}" at whichever {kind} is closest to {place} as the crow flies.',
        'Which {kind} is nearest to {place}, as the crow flies? Add a note about it that says "{text}"',
    ),
    instances=_report_nearest_instances,
    expected=_report_nearest_expected,
    solution=[
        do(steps.find_nearby, "{place}", "{kind}"),
        click("link", given(lambda page: page.table()[0]["Place"])),
        do(steps.report_problem, "{text}"),
    ],
    mistake=[do(steps.open_place, "{place}"), do(steps.report_problem, "{text}")],
)


def _comment_added(note: int, action: str, text: str) -> Added:
    return Added("map_note_comments", {"note": note, "account": 1, "action": action, "text": text})


def _open_note(world: World, place: str) -> int:
    query = "SELECT id FROM map_notes WHERE place = ? AND status = 'open'"
    return int(world.value(query, queries.place(world, place)["id"]))


comment_on_note = MapTemplate(
    "maps-comment-on-note",
    "change",
    "medium",
    intents=(
        'Comment on the open note about {place} in {town}: "{text}"',
        'There is an open note about {place} in {town}. Add the comment "{text}" to it.',
        'Write "{text}" under the open note at {place}, {town}.',
    ),
    instances=choose(
        queries.each_place("(SELECT COUNT(*) FROM map_notes n WHERE n.place = p.id AND n.status = 'open') = 1"),
        text=_REPLIES,
    ),
    expected=lambda world, place, text: _comment_added(_open_note(world, place), "commented", text),
    solution=[
        do(steps.open_place, "{place}"),
        click("link", _NOTE_NAME, after="Open notes"),
        type_text("Your comment", "{text}"),
        click("button", "Comment"),
    ],
)

_TOWNS_WITH_NOTES = (
    "SELECT DISTINCT t.name AS town FROM map_towns t JOIN map_notes n ON n.town = t.id WHERE n.status = 'open' "
    "ORDER BY t.id"
)


def newest_open(world: World, town: str) -> int:
    """Return the newest open note in a town."""
    query = "SELECT n.id FROM map_notes n JOIN map_towns t ON t.id = n.town WHERE t.name = ? AND n.status = 'open'"
    return int(world.value(f"{query} ORDER BY n.opened DESC", town))


def _resolved(world: World, town: str, text: str) -> list[Expected]:
    note = newest_open(world, town)
    closed = Updated("map_notes", {"id": note}, {"status": "resolved", "closed": stamp()})
    return [closed, _comment_added(note, "resolved", text)]


def filter_notes(page: PageReader, town: str, status: str) -> Iterator[str]:
    """List the notes in a town, by status."""
    yield page.click("link", "Notes")
    yield page.choose("Status", status)
    yield page.choose("Town", town)
    yield page.click("button", "Show")


resolve_newest = MapTemplate(
    "maps-resolve-newest",
    "change",
    "medium",
    intents=(
        'Resolve the newest open note in {town} with the comment "{text}"',
        'Of the notes in {town} that are still open, mark the most recent one as resolved and say "{text}"',
        'The latest open note in {town} is settled. Resolve it, with the words "{text}"',
    ),
    instances=rows(_TOWNS_WITH_NOTES, text=_RESULTS),
    expected=_resolved,
    solution=[
        do(filter_notes, "{town}", "Open"),
        click("link", _NOTE_NAME),
        type_text("Your comment", "{text}"),
        click("button", "Resolve"),
    ],
    mistake=click("button", "Comment"),
)

OWN_RESOLVED = (
    "FROM map_notes n JOIN map_towns t ON t.id = n.town JOIN map_note_comments c ON c.note = n.id "
    "WHERE n.status = 'resolved' AND c.action = 'opened' AND c.account = 1"
)


def _own_resolved(world: World, rng: Random) -> list[Params]:
    """Return towns with a single such note."""
    rows = world.rows(f"SELECT t.name {OWN_RESOLVED} GROUP BY t.id HAVING COUNT(*) = 1 ORDER BY t.id")
    return [{"town": row["name"], "text": text} for row in rows for text in rng.sample(_REOPENING_COMMENTS, 2)]


def _reopened(world: World, town: str, text: str) -> list[Expected]:
    note = world.value(f"SELECT n.id {OWN_RESOLVED} AND t.name = ?", town)
    opened = Updated("map_notes", {"id": note}, {"status": "open", "closed": None})
    return [opened, _comment_added(note, "reopened", text)]


reopen_mine = MapTemplate(
    "maps-reopen-mine",
    "change",
    "hard",
    intents=(
        'The note that I opened in {town} was resolved too early. Reopen it with the comment "{text}"',
        'Reopen my resolved note in {town} and write "{text}"',
        'Among the notes opened by me, find the resolved one in {town} and open it again, saying "{text}"',
    ),
    instances=_own_resolved,
    expected=_reopened,
    solution=[
        expand(re.compile(".+"), after="History"),
        click("link", "My notes"),
        choose_option("Status", "Resolved"),
        choose_option("Town", "{town}"),
        click("button", "Show"),
        click("link", _NOTE_NAME),
        type_text("Your comment", "{text}"),
        click("button", "Reopen"),
    ],
)

open_notes = MapTemplate(
    "maps-open-notes",
    "information",
    "medium",
    intents=(
        "How many notes in {town} are still open?",
        "Count the open notes in {town}.",
        "What is the number of notes in {town} that nobody has resolved yet?",
    ),
    instances=rows(
        "SELECT t.name AS town FROM map_towns t JOIN map_notes n ON n.town = t.id GROUP BY t.id "
        "HAVING SUM(n.status = 'open') BETWEEN 1 AND COUNT(*) - 1"
    ),
    expected=lambda world, town: says(
        world.value(
            "SELECT COUNT(*) FROM map_notes n JOIN map_towns t ON t.id = n.town WHERE t.name = ? AND n.status = 'open'",
            town,
        )
    ),
    solution=[do(filter_notes, "{town}", "Open"), answer(lambda page: steps.count(page, "note"))],
    mistake=[do(filter_notes, "{town}", "All"), answer(lambda page: steps.count(page, "note"))],
)

show_newest_note = MapTemplate(
    "maps-show-newest-note",
    "navigation",
    "medium",
    intents=(
        "Open the newest of the open notes in {town}.",
        "Show me the most recent note in {town} that is still open.",
        "Go to the page of the latest open note in {town}.",
    ),
    instances=rows(_TOWNS_WITH_NOTES),
    expected=lambda world, town: EndsOn(f"{MAP}/note/{newest_open(world, town)}"),
    solution=[do(filter_notes, "{town}", "Open"), click("link", _NOTE_NAME)],
)
