"""Tasks about the surroundings of a place."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MAP, NEARBY_CATEGORIES, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, do
from agentgym_envs.webarena.tasks.template import Params


def _nearest_place_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places whose second nearest place of the kind is clearly farther away."""
    for row in rng.sample(queries.places(world), 70):
        category = rng.choice(NEARBY_CATEGORIES)
        if category != row["category"] and queries.clear_nearest(world, row["name"], category):
            yield {"place": row["name"], "kind": queries.kind_words(category)}


def _nearest_place_expected(world: World, place: str, kind: str) -> Says:
    first, *others = (row["name"] for row in queries.nearest(world, place, KEY_OF[kind]))
    return says(first, others=others[:12])


nearest_place = MapTemplate(
    "maps-nearest",
    "information",
    "medium",
    intents=(
        "As the crow flies, which {kind} is nearest to {place}?",
        "I am at {place}. Which {kind} is closest, measured in a straight line?",
        "Name the {kind} nearest to {place} in a straight line.",
    ),
    instances=_nearest_place_instances,
    expected=_nearest_place_expected,
    solution=[do(steps.find_nearby, "{place}", "{kind}"), answer(lambda page: page.table()[0]["Place"])],
    mistake=answer(lambda page: page.table()[1]["Place"]),
)


def _count_nearby_instances(world: World, rng: Random) -> Iterator[Params]:
    """Distances with more places just beyond them."""
    for row in rng.sample(queries.places(world), 90):
        category, distance = rng.choice(NEARBY_CATEGORIES), rng.choice((1, 2, 5, 20))
        found = queries.count_within(world, row["name"], category, 1000 * distance)
        more = queries.count_within(world, row["name"], category, 50_000)
        if 0 < found < more:
            yield {"place": row["name"], "kind": queries.kind_words(category), "distance": f"{distance} km"}


def _count_found(page: PageReader) -> str:
    return page.search(r": (\d+) near ")[0]


def _look_within(page: PageReader, place: str, kind: str, distance: str) -> Iterator[str]:
    yield from steps.open_place(page, place)
    yield from steps.find_near_here(page, kind, distance)


count_nearby = MapTemplate(
    "maps-within-reach",
    "information",
    "medium",
    intents=(
        "How many places of the kind {kind} lie within {distance} of {place}, as the crow flies?",
        "Count the places of the kind {kind} that are at most {distance} from {place} in a straight line.",
        "In a circle of {distance} around {place}, how many places are there of the kind {kind}?",
    ),
    instances=_count_nearby_instances,
    expected=lambda world, kind, distance, place: says(
        queries.count_within(world, place, KEY_OF[kind], 1000 * int(distance.split()[0]))
    ),
    solution=[do(_look_within, "{place}", "{kind}", "{distance}"), answer(_count_found)],
    mistake=[do(_look_within, "{place}", "{kind}", "50 km"), answer(_count_found)],
)

_SHOWN_ON_REQUEST = [queries.kind_words(one) for one in NEARBY_CATEGORIES if one != "restaurant"]
"""All kinds except the one that the page shows by default."""

show_nearby = MapTemplate(
    "maps-show-nearby",
    "navigation",
    "medium",
    intents=(
        "Show me the places of the kind {kind} near {place}, on the page of what is nearby.",
        "Bring up the list of places of the kind {kind} near {place}, by distance.",
        "Use the page of what is nearby to list the places of the kind {kind} around {place}.",
    ),
    instances=choose(
        lambda world: [{"place": row["name"]} for row in queries.places(world)], sample=40, kind=_SHOWN_ON_REQUEST
    ),
    expected=lambda world, place, kind: EndsOn(
        f"{MAP}/nearby?near=place-{queries.place(world, place)['id']}&category={KEY_OF[kind]}"
    ),
    solution=[do(steps.find_nearby, "{place}", "{kind}")],
)
