"""Tasks about the agent's lists of places and its traces."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MAP, NEARBY_CATEGORIES, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import choose_option, click, click_in, do, given, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

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


def _choose_visibility(page: PageReader, visibility: str) -> Iterator[str]:
    if visibility == "public":
        yield page.choose("Who may see it", "Public: for everybody")


create_list = MapTemplate(
    "maps-create-list",
    "change",
    "medium",
    intents=(
        'Create a {visibility} list called "{list}" with the description "{about}"',
        'I want a new {visibility} list of places named "{list}", described as "{about}"',
        'Begin a list "{list}" that is {visibility}; its description should be "{about}"',
    ),
    instances=lambda: [
        {"list": name, "about": about, "visibility": visibility}
        for name, about in _NEW_LISTS
        for visibility in ("public", "private")
    ],
    expected=lambda visibility, list, about: [
        Added("map_lists", {"account": 1, "name": list, "about": about, "visibility": visibility}),
        PageHolds(f"{MAP}/lists", includes=(list,)),
    ],
    solution=[
        click("link", "Lists"),
        click("link", "New list"),
        type_text("Name", "{list}"),
        type_text("Description", "{about}"),
        do(_choose_visibility, "{visibility}"),
        click("button", "Create list"),
    ],
)

rename_list = MapTemplate(
    "maps-rename-list",
    "change",
    "medium",
    intents=(
        'Rename my list "{list}" to "{new}"',
        'My list "{list}" should be called "{new}" from now on.',
        'Change the name of my list "{list}" to "{new}", and nothing else.',
    ),
    instances=lambda world, rng: [
        {"list": name, "new": new} for name in queries.own_lists(world) for new, _ in rng.sample(_NEW_LISTS, 6)
    ],
    expected=lambda list, new: Updated("map_lists", {"account": 1, "name": list}, {"name": new}),
    solution=[
        do(steps.open_list, "{list}"),
        click("link", "Edit list"),
        type_text("Name", "{new}"),
        click("button", "Save"),
    ],
)


def _list_removed(world: World, list: str) -> Iterator[Expected]:
    number = queries.own_list(world, list)
    yield Removed("map_lists", {"id": number})
    if count := world.value("SELECT COUNT(*) FROM map_saved WHERE list = ?", number):
        yield Removed("map_saved", {"list": number}, count)


delete_list = MapTemplate(
    "maps-delete-list",
    "change",
    "medium",
    intents=(
        'Delete my list "{list}".',
        'I do not need my list "{list}" any more; remove it.',
        'Get rid of the list of mine that is called "{list}".',
    ),
    instances=rows("SELECT name AS list FROM map_lists WHERE account = 1"),
    expected=_list_removed,
    solution=[do(steps.open_list, "{list}"), click("button", "Delete list"), click("button", "Delete")],
)

_UNSAVED = "p.id NOT IN (SELECT s.place FROM map_saved s JOIN map_lists l ON l.id = s.list WHERE l.account = 1)"


def _saved(world: World, number: int, name: str, note: str) -> Added:
    return Added("map_saved", {"list": queries.own_list(world, name), "place": number, "note": note})


save_place = MapTemplate(
    "maps-save-place",
    "change",
    "medium",
    intents=(
        'Save {place} in {town} to my list "{list}" with the note "{note}"',
        'Put {place} ({town}) on my list "{list}", and write "{note}" beside it.',
        'Add {place} in {town} to the list "{list}" of mine; my note on it is "{note}"',
    ),
    instances=choose(queries.each_place(_UNSAVED), sample=40, list=queries.own_lists, note=_NOTES),
    expected=lambda world, place, list, note: _saved(world, queries.place(world, place)["id"], list, note),
    solution=[
        do(steps.open_place, "{place}"),
        choose_option("List", "{list}"),
        type_text("Your note", "{note}"),
        click("button", "Save to list"),
    ],
)


def _save_nearest_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with a clearly nearest one, which is on none of the lists."""
    lists = queries.own_lists(world)
    free = {row["id"] for row in queries.places(world, _UNSAVED)}
    for row in rng.sample(queries.places(world), 60):
        category = rng.choice(NEARBY_CATEGORIES)
        found = queries.clear_nearest(world, row["name"], category) if category != row["category"] else None
        if found is not None and found["id"] in free:
            yield {"place": row["name"], "kind": queries.kind_words(category), "list": rng.choice(lists)}


def _save_nearest_expected(world: World, place: str, kind: str, list: str) -> ExpectedResult:
    found = queries.clear_nearest(world, place, KEY_OF[kind])
    return _saved(world, found["id"] if found else 0, list, "")


def save_from_table(page: PageReader, row: int, name: str) -> Iterator[str]:
    """Save a place of the table on the page to a list."""
    yield page.click("link", page.table()[row]["Place"])
    yield from save_here(page, name)


def save_here(page: PageReader, name: str) -> Iterator[str]:
    """Save the place on the page to a list, without a note."""
    if page.find("combobox", "List").properties.get("value") != name:
        yield page.choose("List", name)
    yield page.click("button", "Save to list")


save_nearest = MapTemplate(
    "maps-save-nearest",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Which {kind} is nearest to {place} in a straight line? Put it on my list "{list}".',
        'Save the {kind} closest to {place}, as the crow flies, to my list "{list}".',
        'Find the {kind} that is the fewest metres from {place} in a straight line and add it to my list "{list}".',
    ),
    instances=_save_nearest_instances,
    expected=_save_nearest_expected,
    solution=[do(steps.find_nearby, "{place}", "{kind}"), do(save_from_table, 0, "{list}")],
    mistake=do(save_from_table, 1, "{list}"),
)

_SAVED = "FROM map_saved s JOIN map_lists l ON l.id = s.list JOIN map_places p ON p.id = s.place WHERE l.account = 1"
_SAVED_PLACES = f"SELECT p.name AS place, l.name AS list {_SAVED} ORDER BY s.id"


def _line(world: World, list: str, place: str) -> int:
    return int(world.value(f"SELECT s.id {_SAVED} AND l.name = ? AND p.name = ?", list, place))


remove_from_list = MapTemplate(
    "maps-unsave",
    "change",
    "easy",
    intents=(
        'Remove {place} from my list "{list}".',
        'Take {place} off my list "{list}".',
        '{place} should no longer be on my list "{list}".',
    ),
    instances=rows(_SAVED_PLACES),
    expected=lambda world, place, list: Removed("map_saved", {"id": _line(world, list, place)}),
    solution=[do(steps.open_list, "{list}"), click_in("{place}", "button", "Remove")],
)

change_saved_note = MapTemplate(
    "maps-change-saved-note",
    "change",
    "medium",
    intents=(
        'On my list "{list}", change my note on {place} to "{note}"',
        'Write "{note}" as my note on {place} in the list "{list}", in place of what is there.',
        'The note beside {place} on my list "{list}" should say "{note}"',
    ),
    instances=rows(_SAVED_PLACES, note=_NOTES),
    expected=lambda world, list, place, note: Updated("map_saved", {"id": _line(world, list, place)}, {"note": note}),
    solution=[
        do(steps.open_list, "{list}"),
        type_text("Your note", "{note}", after="{place}"),
        click_in("{place}", "button", "Save note"),
    ],
)

_OTHER = {"public": "private", "private": "public"}


def _own_traces(world: World) -> list[Params]:
    """Return the agent's traces with unique names."""
    rows = world.rows("SELECT id, name, visibility FROM map_traces WHERE account = 1 GROUP BY name HAVING COUNT(*) = 1")
    return [dict(row) for row in rows]


def trace_id(world: World, name: str) -> int:
    """Return the id of one of the agent's traces."""
    return int(world.value("SELECT id FROM map_traces WHERE account = 1 AND name = ?", name))


share_trace = MapTemplate(
    "maps-share-trace",
    "change",
    "medium",
    intents=(
        'Make my trace "{trace}" {visibility}.',
        'Change the visibility of my trace "{trace}" to {visibility}.',
        'My trace "{trace}" should be {visibility} from now on.',
    ),
    instances=lambda world: [
        {"trace": row["name"], "visibility": _OTHER[row["visibility"]]} for row in _own_traces(world)
    ],
    expected=lambda trace, visibility: Updated("map_traces", {"account": 1, "name": trace}, {"visibility": visibility}),
    solution=[
        do(steps.open_trace, "{trace}"),
        click("link", "Edit trace"),
        choose_option("Visibility", given(lambda visibility: visibility.capitalize())),
        click("button", "Save"),
    ],
)


def _tag_trace_instances(world: World, rng: Random) -> Iterator[Params]:
    """Tags that the trace does not have."""
    for row in _own_traces(world):
        tags = [one["tag"] for one in world.rows("SELECT tag FROM map_trace_tags WHERE trace = ?", row["id"])]
        for tag in rng.sample([tag for tag in _TAGS if tag not in tags], 4):
            yield {"trace": row["name"], "tag": tag}


def _more_tags(page: PageReader, tag: str) -> str:
    tags = page.find("textbox", "Tags").properties.get("value", "")
    return f"{tags}, {tag}" if tags else tag


tag_trace = MapTemplate(
    "maps-tag-trace",
    "change",
    "medium",
    intents=(
        'Add the tag "{tag}" to my trace "{trace}".',
        'Tag my trace "{trace}" with "{tag}", and keep the tags that it has.',
        'My trace "{trace}" should also have the tag "{tag}".',
    ),
    instances=_tag_trace_instances,
    expected=lambda world, tag, trace: Added("map_trace_tags", {"trace": trace_id(world, trace), "tag": tag}),
    solution=[
        do(steps.open_trace, "{trace}"),
        click("link", "Edit trace"),
        type_text("Tags", given(_more_tags)),
        click("button", "Save"),
    ],
    mistake=[
        do(steps.open_trace, "{trace}"),
        click("link", "Edit trace"),
        type_text("Tags", "{tag}s"),
        click("button", "Save"),
    ],
)


def _trace_removed(world: World, trace: str) -> Iterator[Expected]:
    number = trace_id(world, trace)
    yield Removed("map_traces", {"id": number})
    if count := world.value("SELECT COUNT(*) FROM map_trace_tags WHERE trace = ?", number):
        yield Removed("map_trace_tags", {"trace": number}, count)


delete_trace = MapTemplate(
    "maps-delete-trace",
    "change",
    "medium",
    intents=(
        'Delete my trace "{trace}".',
        'Remove the trace of mine that is called "{trace}".',
        'I no longer want my trace "{trace}" on the site; delete it.',
    ),
    instances=lambda world: [{"trace": row["name"]} for row in _own_traces(world)],
    expected=_trace_removed,
    solution=[do(steps.open_trace, "{trace}"), click("button", "Delete trace"), click("button", "Delete")],
)
