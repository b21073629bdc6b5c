"""Questions that one page of the map answers, and pages to open."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.maps.common import format_length
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import MAP, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, expand, turn_to
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_TOWN_FACTS = {"postcode": ("zip", "Postcode"), "population": ("population", "Population")}

town_fact = MapTemplate(
    "maps-town-fact",
    "information",
    "easy",
    intents=(
        "What is the {fact} of {town}?",
        "Tell me the {fact} of the town {town}.",
        "I need to know {town}'s {fact}.",
    ),
    instances=lambda world: [{"town": name, "fact": fact} for name in queries.towns(world) for fact in _TOWN_FACTS],
    expected=lambda world, fact, town: says(
        world.rows("SELECT zip, population FROM map_towns WHERE name = ?", town)[0][_TOWN_FACTS[fact][0]]
    ),
    solution=[do(steps.open_place, "{town}"), answer(lambda page, fact: page.value(_TOWN_FACTS[fact][1]))],
)


def _open_street(page: PageReader, town: str, road: str) -> Iterator[str]:
    """Open a street from the list on the town's page."""
    yield from steps.open_place(page, town)
    yield from page.expand("Streets")
    yield page.click("link", road, after="Streets")


road_speed = MapTemplate(
    "maps-road-speed",
    "information",
    "medium",
    intents=(
        "What is the speed limit on {road} in {town}, in km/h?",
        "How many km/h may one drive on {road} in {town}?",
        "Find out how fast, in km/h, cars may go on {road} in {town}.",
    ),
    instances=rows(
        "SELECT r.name AS road, t.name AS town FROM map_roads r JOIN map_towns t ON t.id = r.town "
        "WHERE r.speed > 0 ORDER BY r.id",
        sample=40,
    ),
    expected=lambda world, road, town: says(
        world.value(
            "SELECT r.speed FROM map_roads r JOIN map_towns t ON t.id = r.town WHERE r.name = ? AND t.name = ?",
            road,
            town,
        )
    ),
    solution=[do(_open_street, "{town}", "{road}"), answer(lambda page: page.value("Speed limit").split()[0])],
    mistake=[answer("30 or 50")],
)

entry_fee = MapTemplate(
    "maps-entry-fee",
    "information",
    "easy",
    intents=(
        "How much is the entry to {place} in {town}?",
        "What does one pay to get into {place} in {town}?",
        "Look up the entry fee of {place}, {town}.",
    ),
    instances=queries.each_place(
        "p.category IN ('museum', 'castle', 'campsite', 'swimming_pool') AND p.fee GLOB '[0-9]*'"
    ),
    expected=lambda world, place: says(queries.place(world, place)["fee"]),
    solution=[do(steps.open_place, "{place}"), answer(lambda page: page.value("Entry"))],
    mistake=answer(lambda page: f"{page.value('Entry')} or {float(page.value('Entry')) + 1:.2f}"),
)

trace_length = MapTemplate(
    "maps-trace-length",
    "information",
    "easy",
    intents=(
        'How long is my trace "{trace}"?',
        'What is the length of the trace of mine that is called "{trace}"?',
        'Look up how far I went on my trace "{trace}".',
    ),
    instances=rows(
        "SELECT name AS trace FROM map_traces WHERE account = 1 GROUP BY name HAVING COUNT(*) = 1 ORDER BY id"
    ),
    expected=lambda world, trace: says(
        format_length(world.value("SELECT length FROM map_traces WHERE account = 1 AND name = ?", trace))
    ),
    solution=[
        expand(re.compile(".+"), after="History"),
        click("link", "My traces"),
        answer(lambda page, trace: next(row["Length"] for row in page.table() if row["Trace"] == trace)),
    ],
)


def _higher_peak_instances(world: World) -> Iterator[Params]:
    rows = queries.places(world, "p.category = 'peak'")
    for one in rows:
        for other in rows:
            if one["elevation"] != other["elevation"]:
                yield {"one": one["name"], "other": other["name"]}


def _higher_peak_expected(world: World, one: str, other: str) -> Says:
    lower, higher = sorted((one, other), key=lambda name: queries.place(world, name)["elevation"])
    return says(higher, others=[lower])


def _compare_heights(page: PageReader, one: str, other: str) -> Steps[str]:
    heights = {}
    for name in (one, other):
        yield from steps.open_place(page, name)
        heights[name] = int(page.value("Elevation").split()[0])
    return max(heights, key=lambda name: heights[name])


higher_peak = MapTemplate(
    "maps-higher-peak",
    "information",
    "medium",
    intents=(
        "Which is higher, {one} or {other}?",
        "Compare the elevations of {one} and {other}: which peak is the higher one?",
        "Of the peaks {one} and {other}, name the higher.",
    ),
    instances=_higher_peak_instances,
    expected=_higher_peak_expected,
    solution=_compare_heights,
    mistake=[answer("{one} or {other}")],
)

show_place = MapTemplate(
    "maps-show-place",
    "navigation",
    "easy",
    intents=(
        "Open the page of {place} in {town}.",
        "Show me {place} in {town} on its own page.",
        "Bring up everything the map knows of {place} ({town}).",
    ),
    instances=choose(queries.each_place(), sample=30),
    expected=lambda world, place: EndsOn(queries.place_url(world, place)),
    solution=[do(steps.open_place, "{place}")],
)

show_history = MapTemplate(
    "maps-show-history",
    "navigation",
    "easy",
    intents=(
        "Show me the history of edits of {place} in {town}.",
        "Open the list of all edits that {place} ({town}) has seen.",
        "Bring up the edit history of {place} in {town}.",
    ),
    instances=choose(queries.each_place("p.version > 1"), sample=30),
    expected=lambda world, place: EndsOn(f"{queries.place_url(world, place)}/history"),
    solution=[do(steps.open_place, "{place}"), click("link", "History of this place")],
)


def _show_public_list_expected(world: World, list: str, user: str) -> ExpectedResult:
    query = "SELECT l.id FROM map_lists l JOIN map_accounts a ON a.id = l.account WHERE l.name = ? AND a.user = ?"
    return EndsOn(f"{MAP}/list/{world.value(query, list, user)}")


show_public_list = MapTemplate(
    "maps-show-public-list",
    "navigation",
    "easy",
    intents=(
        'Open the public list "{list}" by {user}.',
        'Show me the places on the list "{list}" that {user} has made public.',
        'Among the public lists, go to "{list}" by {user}.',
    ),
    instances=rows(
        "SELECT l.name AS list, a.user FROM map_lists l JOIN map_accounts a ON a.id = l.account WHERE a.id > 1 "
        "AND l.visibility = 'public' AND l.name IN (SELECT name FROM map_lists GROUP BY name HAVING COUNT(*) = 1)"
    ),
    expected=_show_public_list_expected,
    solution=[
        click("link", "Lists"),
        click("link", "Public lists"),
        turn_to("link", "{list}"),
        click("link", "{list}"),
    ],
)
