"""Tasks about the surroundings of a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    MAP,
    NEARBY_CATEGORIES,
    clear_nearest,
    count_within,
    kind_words,
    label,
    nearest,
    place,
    places,
)
from agentgym_envs.webarena.tasks.maps.steps import find_nearby, open_place
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass


class NearestPlace(TemplateClass):
    """Name the nearest place of a kind."""

    name, group, sites = "maps-nearest", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "As the crow flies, which {kind} is nearest to {place}?",
        "I am at {place}. Which {kind} is closest, measured in a straight line?",
        "Name the {kind} nearest to {place} in a straight line.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places whose second nearest place of the kind is clearly farther away."""
        for row in rng.sample(places(world), 70):
            category = rng.choice(NEARBY_CATEGORIES)
            if category != row["category"] and clear_nearest(world, row["name"], category):
                yield {"place": row["name"], "kind": kind_words(category)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = (row["name"] for row in nearest(world, params["place"], KEY_OF[params["kind"]]))
        return [says(first, others=others[:12])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from find_nearby(page, params["place"], params["kind"])
        yield page.stop(page.table()[0]["Place"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the second nearest."""
        yield from find_nearby(page, params["place"], params["kind"])
        yield page.stop(page.table()[1]["Place"])


class CountNearby(TemplateClass):
    """Count the places of a kind within a distance."""

    name, group, sites = "maps-within-reach", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many places of the kind {kind} lie within {distance} of {place}, as the crow flies?",
        "Count the places of the kind {kind} that are at most {distance} from {place} in a straight line.",
        "In a circle of {distance} around {place}, how many places are there of the kind {kind}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Distances with more places just beyond them."""
        for row in rng.sample(places(world), 90):
            category, distance = rng.choice(NEARBY_CATEGORIES), rng.choice((1, 2, 5, 20))
            found = count_within(world, row["name"], category, 1000 * distance)
            more = count_within(world, row["name"], category, 50_000)
            if 0 < found < more:
                yield {"place": row["name"], "kind": kind_words(category), "distance": f"{distance} km"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        metres = 1000 * int(params["distance"].split()[0])
        return [says(count_within(world, params["place"], KEY_OF[params["kind"]], metres))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _look_within(page, params, params["distance"])
        yield page.stop(page.search(r": (\d+) near ")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count the places within fifty kilometres."""
        yield from _look_within(page, params, "50 km")
        yield page.stop(page.search(r": (\d+) near ")[0])


def _look_within(page: PageReader, params: Params, distance: str) -> Iterator[str]:
    yield from open_place(page, params["place"])
    yield page.click("link", "Nearby", after=params["place"])
    yield page.choose("Kind", label(params["kind"]))
    yield page.choose("Within", distance)
    yield page.click("button", "Find")


class ShowNearby(TemplateClass):
    """Show the places of a kind around a place."""

    name, group, sites = "maps-show-nearby", "maps", ("maps",)
    kind, difficulty = "navigation", "medium"
    intents = (
        "Show me the places of the kind {kind} near {place}, on the page of what is nearby.",
        "Bring up the list of places of the kind {kind} near {place}, by distance.",
        "Use the page of what is nearby to list the places of the kind {kind} around {place}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Any kind except the one that the page shows by default."""
        for row in rng.sample(places(world), 40):
            yield {
                "place": row["name"],
                "kind": kind_words(rng.choice([one for one in NEARBY_CATEGORIES if one != "restaurant"])),
            }

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        key = f"place-{place(world, params['place'])['id']}"
        return [EndsOn(f"{MAP}/nearby?near={key}&category={KEY_OF[params['kind']]}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from find_nearby(page, params["place"], params["kind"])
        yield page.stop()


TEMPLATES = (NearestPlace(), CountNearby(), ShowNearby())
