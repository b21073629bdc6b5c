"""Questions about places, towns and users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.sites.maps.hours import days, is_open
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says, says_first
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, SIZES, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, expand, given, turn_to
from agentgym_envs.webarena.tasks.template import Params

_FACTS = {
    "phone number": ("phone", "Phone"),
    "website": ("website", "Website"),
    "operator": ("operator", "Operator"),
    "wheelchair access": ("wheelchair", "Wheelchair access"),
}
_SIZE_WORDS = {word: word.capitalize() for word in SIZES.values()}


def _place_fact_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with a value for the fact."""
    for fact in ("phone number", "website"):
        for row in rng.sample(queries.places(world, f"p.{_FACTS[fact][0]} IS NOT NULL"), 20):
            yield {"place": row["name"], "town": row["town_name"], "fact": fact}


def _place_fact_expected(world: World, fact: str, place: str) -> Says:
    name = _FACTS[fact][0]
    value = queries.place(world, place)[name]
    if name != "website":
        return says(value)
    others = [row[name] for row in queries.places(world, "p.website IS NOT NULL")]
    return says(value.removeprefix("https://"), others=[one.removeprefix("https://") for one in others])


place_fact = MapTemplate(
    "maps-place-fact",
    "information",
    "easy",
    intents=(
        "What is the {fact} of {place} in {town}?",
        "I need the {fact} of {place} in {town}.",
        "Look up {place} in {town} and tell me its {fact}.",
        "Find out the {fact} of {place}, {town}.",
    ),
    instances=_place_fact_instances,
    expected=_place_fact_expected,
    solution=[do(steps.open_place, "{place}"), answer(lambda page, fact: page.value(_FACTS[fact][1]))],
)


def _closing_time_instances(world: World, rng: Random) -> Iterator[Params]:
    """Days with a single period of opening hours."""
    rows = queries.places(world, "p.hours IS NOT NULL AND p.hours != '24/7'")
    for row in rng.sample(rows, 60):
        spans = [(day, span) for day, span in days(row["hours"]) if re.fullmatch(r"\S+–\S+", span)]
        others = {span[-5:] for _, span in spans}
        day = rng.choice(spans)[0]
        if len(others) > 1 or rng.random() < 0.5:
            yield {"place": row["name"], "town": row["town_name"], "day": day}


closing_time = MapTemplate(
    "maps-closing-time",
    "information",
    "easy",
    intents=(
        "Until what time is {place} in {town} open on {day}?",
        "When does {place} in {town} close on a {day}?",
        "On {day}, at what time does {place} ({town}) shut?",
    ),
    instances=_closing_time_instances,
    expected=lambda world, place, day: says(dict(days(queries.place(world, place)["hours"]))[day][-5:]),
    solution=[do(steps.open_place, "{place}"), answer(lambda page, day: page.value(day).partition("–")[2])],
    mistake=answer(lambda page, day: page.value(day).partition("–")[0]),
)


def _place_size_instances(world: World, rng: Random) -> Iterator[Params]:
    for category, things in SIZES.items():
        rows = queries.places(world, "p.category = ? AND p.capacity IS NOT NULL", category)
        for row in rng.sample(rows, min(len(rows), 10)):
            yield {"place": row["name"], "town": row["town_name"], "things": things}


def _two_sizes(page: PageReader, things: str) -> str:
    number = int(page.value(_SIZE_WORDS[things]))
    return f"{number} or {number + 1}"


place_size = MapTemplate(
    "maps-place-size",
    "information",
    "easy",
    intents=(
        "How many {things} does {place} in {town} have?",
        "Tell me the number of {things} of {place} in {town}.",
        "I would like to know how many {things} there are at {place}, {town}.",
    ),
    instances=_place_size_instances,
    expected=lambda world, place: says(queries.place(world, place)["capacity"]),
    solution=[do(steps.open_place, "{place}"), answer(lambda page, things: page.value(_SIZE_WORDS[things]))],
    mistake=answer(_two_sizes),
)


def _open_now_instances(world: World) -> Iterator[Params]:
    """Kinds and towns with open and closed places."""
    query = "SELECT p.category, t.name AS town, p.hours FROM map_places p JOIN map_towns t ON t.id = p.town"
    found: dict[tuple[str, str], list[bool]] = {}
    for row in world.rows(f"{query} WHERE p.hours IS NOT NULL ORDER BY p.id"):
        found.setdefault((row["category"], row["town"]), []).append(is_open(row["hours"]))
    for (category, town), states in found.items():
        if any(states) and not all(states):
            yield {"kind": queries.kind_words(category), "town": town}


def _open_now_expected(world: World, town: str, kind: str) -> Says:
    query = "SELECT p.hours FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ? AND t.name = ?"
    rows = world.rows(f"{query} AND p.hours IS NOT NULL", KEY_OF[kind], town)
    return says(sum(is_open(row["hours"]) for row in rows))


open_now = MapTemplate(
    "maps-open-now",
    "information",
    "medium",
    intents=(
        "How many places of the kind {kind} in {town} are open now?",
        "Count the places of the kind {kind} in {town} that are open now.",
        "Of all places of the kind {kind} in {town}, how many are open at this moment?",
    ),
    instances=_open_now_instances,
    expected=_open_now_expected,
    solution=[
        do(steps.filter_places, "{kind}", "{town}"),
        expand("More filters"),
        click("checkbox", "Open now"),
        do(steps.show_places),
        answer(lambda page: steps.count(page, "place")),
    ],
    mistake=[
        do(steps.filter_places, "{kind}", "{town}"),
        do(steps.show_places),
        answer(lambda page: steps.count(page, "place")),
    ],
)


def _served_food_instances(world: World) -> list[Params]:
    """Towns with one to five such restaurants."""
    rows = world.rows(
        "SELECT p.cuisine, t.name AS town FROM map_places p JOIN map_towns t ON t.id = p.town "
        "WHERE p.category = 'restaurant' GROUP BY p.cuisine, t.id HAVING COUNT(*) BETWEEN 1 AND 5 ORDER BY 1, 2"
    )
    return [{"cuisine": queries.cuisine_label(row["cuisine"]), "town": row["town"]} for row in rows]


def _served_food_expected(world: World, town: str, cuisine: str) -> Says:
    rows = world.rows(
        "SELECT p.name, p.cuisine FROM map_places p JOIN map_towns t ON t.id = p.town "
        "WHERE p.category = 'restaurant' AND t.name = ? ORDER BY p.id",
        town,
    )
    cuisine = cuisine.lower().replace(" ", "_")
    wanted = [row["name"] for row in rows if row["cuisine"] == cuisine]
    return says(*wanted, others=[row["name"] for row in rows if row["cuisine"] != cuisine])


served_food = MapTemplate(
    "maps-served-food",
    "information",
    "medium",
    intents=(
        "Which restaurants in {town} serve {cuisine} food? Name all of them.",
        "Where can one eat {cuisine} food in {town}? List every restaurant of that cuisine.",
        "Name all restaurants in {town} whose cuisine is {cuisine}.",
    ),
    instances=_served_food_instances,
    expected=_served_food_expected,
    solution=[
        do(steps.filter_places, "restaurant", "{town}"),
        expand("More filters"),
        choose_option("Cuisine", given(lambda cuisine: cuisine.capitalize())),
        do(steps.show_places),
        answer(lambda page: ", ".join(steps.listed_places(page, "place"))),
    ],
)


largest_of_kind = MapTemplate(
    "maps-largest-of-kind",
    "information",
    "medium",
    intents=(
        "Which place of the kind {kind} in {town} has the most {things}?",
        "Which {kind} in {town} has the largest number of {things}?",
        "Tell me the {kind} with the most {things} in {town}.",
    ),
    instances=queries.largest_place_params,
    expected=lambda world, params: says_first(row["name"] for row in queries.largest(world, params)),
    solution=[
        do(steps.filter_places, "{kind}", "{town}"),
        choose_option("Sort by", "Size, largest first"),
        do(steps.show_places),
        answer(lambda page: steps.listed_places(page, "place")[0]),
    ],
    mistake=answer(lambda page: steps.listed_places(page, "place")[-1]),
)

_EXTREMES = {
    "the most inhabitants": ("population", "Population, largest first", 0),
    "the fewest inhabitants": ("population", "Population, largest first", -1),
    "the highest elevation": ("elevation", "Elevation, highest first", 0),
    "the lowest elevation": ("elevation", "Elevation, highest first", -1),
}


def _extreme_town_instances(world: World) -> Iterator[Params]:
    """Regions with three to fifteen towns and a single extreme."""
    for row in world.rows("SELECT r.id, r.name FROM map_regions r ORDER BY r.id"):
        for most, (column, _, index) in _EXTREMES.items():
            values = sorted(one[column] for one in world.rows("SELECT * FROM map_towns WHERE region = ?", row["id"]))
            extreme = values[-1] if index == 0 else values[0]
            if 2 < len(values) <= 15 and values.count(extreme) == 1:
                yield {"region": row["name"], "most": most}


def _extreme_town_expected(world: World, most: str, region: str) -> Says:
    column, _, index = _EXTREMES[most]
    order = "DESC" if index == 0 else "ASC"
    rows = world.rows(
        "SELECT t.name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE r.name = ? "
        f"ORDER BY t.{column} {order}",
        region,
    )
    return says_first(row["name"] for row in rows)


extreme_town = MapTemplate(
    "maps-extreme-town",
    "information",
    "medium",
    intents=(
        "Which town in {region} has {most}?",
        "Among the towns of {region}, name the one with {most}.",
        "I am looking for the town in the region {region} that has {most}.",
    ),
    instances=_extreme_town_instances,
    expected=_extreme_town_expected,
    solution=[
        click("link", "Towns"),
        choose_option("Region", "{region}"),
        choose_option("Sort by", given(lambda most: _EXTREMES[most][1])),
        click("button", "Show"),
        answer(lambda page, most: page.table()[_EXTREMES[most][2]]["Town"]),
    ],
    mistake=answer(lambda page, most: page.table()[-1 - _EXTREMES[most][2]]["Town"]),
)


def _last_editor_expected(world: World, place: str, town: str) -> Says:
    editor = queries.place(world, place)["editor"]
    user = world.value("SELECT user FROM map_accounts WHERE id = ?", editor)
    named = f"{place} {town}".lower()
    others = world.rows("SELECT user FROM map_accounts WHERE id <> ? ORDER BY id", editor)
    return says(user, others=[one["user"] for one in others if one["user"].lower() not in named])


last_editor = MapTemplate(
    "maps-last-editor",
    "information",
    "easy",
    intents=(
        "Who made the last edit of {place} in {town}?",
        "Give me the user name of whoever edited {place} in {town} last.",
        "By which user was {place} ({town}) edited most recently?",
    ),
    instances=queries.each_place(
        "p.version > 2 AND p.editor != "
        "(SELECT account FROM map_changes c WHERE c.place = p.id ORDER BY version LIMIT 1)"
    ),
    expected=_last_editor_expected,
    solution=[
        do(steps.open_place, "{place}"),
        answer(lambda page: page.texts(after=re.compile(r"Version \d+, last edited .* by"))[0]),
    ],
    mistake=[
        do(steps.open_place, "{place}"),
        click("link", "History of this place"),
        answer(lambda page: page.table()[-1]["Edited by"]),
    ],
)


def _row(page: PageReader, user: str) -> dict[str, str]:
    return next(row for row in page.table() if row["User"] == user)


edit_count = MapTemplate(
    "maps-edit-count",
    "information",
    "medium",
    intents=(
        "How many edits has the contributor {user} made?",
        "Look up among the contributors how many edits {user} has made.",
        "What is the number of edits of {user}?",
    ),
    instances=rows(
        "SELECT a.user FROM map_accounts a WHERE a.id > 1 "
        "AND (SELECT COUNT(*) FROM map_changes c WHERE c.account = a.id) "
        "!= (SELECT COUNT(*) FROM map_note_comments m WHERE m.account = a.id AND m.action = 'opened') ORDER BY a.id"
    ),
    expected=lambda world, user: says(
        world.value("SELECT COUNT(*) FROM map_changes c JOIN map_accounts a ON a.id = c.account WHERE a.user = ?", user)
    ),
    solution=[
        click("link", "Contributors"),
        turn_to("link", "{user}"),
        answer(lambda page, user: _row(page, user)["Edits"]),
    ],
    mistake=answer(lambda page, user: _row(page, user)["Notes"]),
)
