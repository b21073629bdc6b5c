"""Tasks about the agent's lists of places and its traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    MAP,
    NEARBY_CATEGORIES,
    clear_nearest,
    kind_words,
    place,
    places,
)
from agentgym_envs.webarena.tasks.maps.steps import find_nearby, open_list, open_place, open_trace
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_NEW_LISTS = (
    ("Rainy days", "Indoors, and never dull."),
    ("With the children", "Where they like it, too."),
    ("Places to read", "Quiet, with good light."),
    ("For visitors", "What to show to friends."),
    ("Anniversary", "Somewhere nice for the evening."),
    ("Cycling breaks", "Stops on the way."),
    ("Summer", "Shade and cold drinks."),
    ("Late at night", "Open when all else is closed."),
    ("Photo walk", "Good views in the evening."),
    ("Second breakfast", "Cakes, mostly."),
)
_NOTES = (
    "Ask for the table by the window.",
    "Recommended by Nora.",
    "Go there before the end of May.",
    "Bring cash.",
    "Better on weekdays.",
    "For the next birthday.",
    "Quiet after eight.",
)
_TAGS = ("commute", "survey", "leisure", "training", "hills", "rain", "detour", "family", "night", "winter")


class CreateList(TemplateClass):
    """Create a list."""

    name, group, sites = "maps-create-list", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Create a {visibility} list called "{list}" with the description "{about}"',
        'I want a new {visibility} list of places named "{list}", described as "{about}"',
        'Begin a list "{list}" that is {visibility}; its description should be "{about}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for name, about in _NEW_LISTS:
            for visibility in ("public", "private"):
                yield {"list": name, "about": about, "visibility": visibility}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"account": 1, "name": params["list"], "about": params["about"], "visibility": params["visibility"]}
        return [changed(Added("map_lists", values)), PageHolds(f"{MAP}/lists", includes=(params["list"],))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Lists")
        yield page.click("link", "New list")
        yield page.type("Name", params["list"])
        yield page.type("Description", params["about"])
        if params["visibility"] == "public":
            yield page.choose("Who may see it", "Public: for everybody")
        yield page.click("button", "Create list")
        yield page.stop()


class RenameList(TemplateClass):
    """Rename a list."""

    name, group, sites = "maps-rename-list", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Rename my list "{list}" to "{new}"',
        'My list "{list}" should be called "{new}" from now on.',
        'Change the name of my list "{list}" to "{new}", and nothing else.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"list": name, "new": new} for name in _own_lists(world) for new, _ in rng.sample(_NEW_LISTS, 6)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"account": 1, "name": params["list"]}
        return [changed(Updated("map_lists", where, {"name": params["new"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_list(page, params["list"])
        yield page.click("link", "Edit list")
        yield page.type("Name", params["new"])
        yield page.click("button", "Save")
        yield page.stop()


class DeleteList(TemplateClass):
    """Delete a list."""

    name, group, sites = "maps-delete-list", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Delete my list "{list}".',
        'I do not need my list "{list}" any more; remove it.',
        'Get rid of the list of mine that is called "{list}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"list": name} for name in _own_lists(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value("SELECT id FROM map_lists WHERE account = 1 AND name = ?", params["list"])
        count = world.value("SELECT COUNT(*) FROM map_saved WHERE list = ?", number)
        expected: list[Expected] = [Removed("map_lists", {"id": number})]
        expected += [Removed("map_saved", {"list": number}, count)] if count else []
        return [changed(*expected)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_list(page, params["list"])
        yield page.click("button", "Delete list")
        yield page.click("button", "Delete")
        yield page.stop()


class SavePlace(TemplateClass):
    """Save a place to a list, with a note."""

    name, group, sites = "maps-save-place", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Save {place} in {town} to my list "{list}" with the note "{note}"',
        'Put {place} ({town}) on my list "{list}", and write "{note}" beside it.',
        'Add {place} in {town} to the list "{list}" of mine; my note on it is "{note}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places that are on none of the lists."""
        for row in rng.sample(places(world, _UNSAVED), 40):
            chosen = {"list": rng.choice(_own_lists(world)), "note": rng.choice(_NOTES)}
            yield {"place": row["name"], "town": row["town_name"], **chosen}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [_saved(world, place(world, params["place"])["id"], params["list"], params["note"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.choose("List", params["list"])
        yield page.type("Your note", params["note"])
        yield page.click("button", "Save to list")
        yield page.stop()


_UNSAVED = "p.id NOT IN (SELECT s.place FROM map_saved s JOIN map_lists l ON l.id = s.list WHERE l.account = 1)"


def _own_lists(world: World) -> list[str]:
    return [row["name"] for row in world.rows("SELECT name FROM map_lists WHERE account = 1 ORDER BY id")]


def _saved(world: World, number: int, name: str, note: str) -> Evaluator:
    list_ = world.value("SELECT id FROM map_lists WHERE account = 1 AND name = ?", name)
    return changed(Added("map_saved", {"list": list_, "place": number, "note": note}))


class SaveNearest(TemplateClass):
    """Save the nearest place of a kind to a list."""

    name, group, sites = "maps-save-nearest", "maps", ("maps",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Which {kind} is nearest to {place} in a straight line? Put it on my list "{list}".',
        'Save the {kind} closest to {place}, as the crow flies, to my list "{list}".',
        'Find the {kind} that is the fewest metres from {place} in a straight line and add it to my list "{list}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a clearly nearest one, which is on none of the lists."""
        free = {row["id"] for row in places(world, _UNSAVED)}
        for row in rng.sample(places(world), 60):
            category = rng.choice(NEARBY_CATEGORIES)
            found = clear_nearest(world, row["name"], category) if category != row["category"] else None
            if found is not None and found["id"] in free:
                yield {"place": row["name"], "kind": kind_words(category), "list": rng.choice(_own_lists(world))}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = clear_nearest(world, params["place"], KEY_OF[params["kind"]])
        return [_saved(world, found["id"] if found else 0, params["list"], "")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from find_nearby(page, params["place"], params["kind"])
        yield from _save_from_table(page, 0, params["list"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Save the second nearest."""
        yield from find_nearby(page, params["place"], params["kind"])
        yield from _save_from_table(page, 1, params["list"])


def _save_from_table(page: PageReader, row: int, name: str) -> Iterator[str]:
    yield page.click("link", page.table()[row]["Place"])
    if page.find("combobox", "List").properties.get("value") != name:
        yield page.choose("List", name)
    yield page.click("button", "Save to list")
    yield page.stop()


class RemoveFromList(TemplateClass):
    """Remove a place from a list."""

    name, group, sites = "maps-unsave", "maps", ("maps",)
    kind, difficulty = "change", "easy"
    intents = (
        'Remove {place} from my list "{list}".',
        'Take {place} off my list "{list}".',
        '{place} should no longer be on my list "{list}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return _saved_places(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Removed("map_saved", {"id": _line(world, params)}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_list(page, params["list"])
        yield page.click_in(params["place"], "button", "Remove")
        yield page.stop()


class ChangeSavedNote(TemplateClass):
    """Change the note on a place of a list."""

    name, group, sites = "maps-change-saved-note", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'On my list "{list}", change my note on {place} to "{note}"',
        'Write "{note}" as my note on {place} in the list "{list}", in place of what is there.',
        'The note beside {place} on my list "{list}" should say "{note}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{**params, "note": rng.choice(_NOTES)} for params in _saved_places(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("map_saved", {"id": _line(world, params)}, {"note": params["note"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_list(page, params["list"])
        yield page.type("Your note", params["note"], after=params["place"])
        yield page.click_in(params["place"], "button", "Save note")
        yield page.stop()


def _saved_places(world: World) -> list[Params]:
    rows = world.rows(
        "SELECT p.name AS place, l.name AS list FROM map_saved s JOIN map_lists l ON l.id = s.list "
        "JOIN map_places p ON p.id = s.place WHERE l.account = 1 ORDER BY s.id"
    )
    return [dict(row) for row in rows]


def _line(world: World, params: Params) -> int:
    found: int = world.value(
        "SELECT s.id FROM map_saved s JOIN map_lists l ON l.id = s.list JOIN map_places p ON p.id = s.place "
        "WHERE l.account = 1 AND l.name = ? AND p.name = ?",
        params["list"],
        params["place"],
    )
    return found


class ShareTrace(TemplateClass):
    """Change the visibility of a trace."""

    name, group, sites = "maps-share-trace", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Make my trace "{trace}" {visibility}.',
        'Change the visibility of my trace "{trace}" to {visibility}.',
        'My trace "{trace}" should be {visibility} from now on.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Visibilities that differ from the current one."""
        other = {"public": "private", "private": "public"}
        return [{"trace": row["name"], "visibility": other[row["visibility"]]} for row in _own_traces(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"account": 1, "name": params["trace"]}
        return [changed(Updated("map_traces", where, {"visibility": params["visibility"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_trace(page, params["trace"])
        yield page.click("link", "Edit trace")
        yield page.choose("Visibility", params["visibility"].capitalize())
        yield page.click("button", "Save")
        yield page.stop()


class TagTrace(TemplateClass):
    """Add a tag to a trace."""

    name, group, sites = "maps-tag-trace", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Add the tag "{tag}" to my trace "{trace}".',
        'Tag my trace "{trace}" with "{tag}", and keep the tags that it has.',
        'My trace "{trace}" should also have the tag "{tag}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Tags that the trace does not have."""
        for row in _own_traces(world):
            tags = [one["tag"] for one in world.rows("SELECT tag FROM map_trace_tags WHERE trace = ?", row["id"])]
            for tag in rng.sample([tag for tag in _TAGS if tag not in tags], 4):
                yield {"trace": row["name"], "tag": tag}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value("SELECT id FROM map_traces WHERE account = 1 AND name = ?", params["trace"])
        return [changed(Added("map_trace_tags", {"trace": number, "tag": params["tag"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_trace(page, params["trace"])
        yield page.click("link", "Edit trace")
        tags = page.find("textbox", "Tags").properties.get("value", "")
        yield page.type("Tags", f"{tags}, {params['tag']}" if tags else params["tag"])
        yield page.click("button", "Save")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add another tag."""
        yield from open_trace(page, params["trace"])
        yield page.click("link", "Edit trace")
        yield page.type("Tags", f"{params['tag']}s")
        yield page.click("button", "Save")
        yield page.stop()


class DeleteTrace(TemplateClass):
    """Delete a trace."""

    name, group, sites = "maps-delete-trace", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Delete my trace "{trace}".',
        'Remove the trace of mine that is called "{trace}".',
        'I no longer want my trace "{trace}" on the site; delete it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"trace": row["name"]} for row in _own_traces(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value("SELECT id FROM map_traces WHERE account = 1 AND name = ?", params["trace"])
        count = world.value("SELECT COUNT(*) FROM map_trace_tags WHERE trace = ?", number)
        expected: list[Expected] = [Removed("map_traces", {"id": number})]
        expected += [Removed("map_trace_tags", {"trace": number}, count)] if count else []
        return [changed(*expected)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_trace(page, params["trace"])
        yield page.click("button", "Delete trace")
        yield page.click("button", "Delete")
        yield page.stop()


def _own_traces(world: World) -> list[Params]:
    """Return the agent's traces with unique names."""
    rows = world.rows("SELECT id, name, visibility FROM map_traces WHERE account = 1 GROUP BY name HAVING COUNT(*) = 1")
    return [dict(row) for row in rows]


TEMPLATES = (
    CreateList(),
    RenameList(),
    DeleteList(),
    SavePlace(),
    SaveNearest(),
    RemoveFromList(),
    ChangeSavedNote(),
    ShareTrace(),
    TagTrace(),
    DeleteTrace(),
)
