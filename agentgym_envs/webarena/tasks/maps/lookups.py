"""Questions that one page of the map answers, and pages to open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.maps.common import format_length
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import MAP, place, places
from agentgym_envs.webarena.tasks.maps.steps import open_place
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

_TOWN_FACTS = {"postcode": ("zip", "Postcode"), "population": ("population", "Population")}


class TownFact(TemplateClass):
    """Name a fact of a town."""

    name, group, sites = "maps-town-fact", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "What is the {fact} of {town}?",
        "Tell me the {fact} of the town {town}.",
        "I need to know {town}'s {fact}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        names = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
        return [{"town": name, "fact": fact} for name in names for fact in _TOWN_FACTS]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        row = world.rows("SELECT zip, population FROM map_towns WHERE name = ?", params["town"])[0]
        return [says(row[_TOWN_FACTS[params["fact"]][0]])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["town"])
        yield page.stop(page.value(_TOWN_FACTS[params["fact"]][1]))


class RoadSpeed(TemplateClass):
    """Name the speed limit of a street."""

    name, group, sites = "maps-road-speed", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "What is the speed limit on {road} in {town}, in km/h?",
        "How many km/h may one drive on {road} in {town}?",
        "Find out how fast, in km/h, cars may go on {road} in {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Streets that are open to cars."""
        query = "SELECT r.name AS road, t.name AS town FROM map_roads r JOIN map_towns t ON t.id = r.town"
        return [dict(row) for row in rng.sample(world.rows(f"{query} WHERE r.speed > 0 ORDER BY r.id"), 40)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT r.speed FROM map_roads r JOIN map_towns t ON t.id = r.town WHERE r.name = ? AND t.name = ?"
        return [says(world.value(query, params["road"], params["town"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open_street(page, params)
        yield page.stop(page.value("Speed limit").split()[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield page.stop("30 or 50")


def _open_street(page: PageReader, params: Params) -> Iterator[str]:
    """Open a street from the list on the town's page."""
    yield from open_place(page, params["town"])
    yield from page.expand("Streets")
    yield page.click("link", params["road"], after="Streets")


class EntryFee(TemplateClass):
    """Name the entry fee of a place."""

    name, group, sites = "maps-entry-fee", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "How much is the entry to {place} in {town}?",
        "What does one pay to get into {place} in {town}?",
        "Look up the entry fee of {place}, {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a fee."""
        rows = places(world, "p.category IN ('museum', 'castle', 'campsite', 'swimming_pool') AND p.fee GLOB '[0-9]*'")
        return [{"place": row["name"], "town": row["town_name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(place(world, params["place"])["fee"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop(page.value("Entry"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield from open_place(page, params["place"])
        fee = page.value("Entry")
        yield page.stop(f"{fee} or {float(fee) + 1:.2f}")


class TraceLength(TemplateClass):
    """Name the length of the agent's trace."""

    name, group, sites = "maps-trace-length", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        'How long is my trace "{trace}"?',
        'What is the length of the trace of mine that is called "{trace}"?',
        'Look up how far I went on my trace "{trace}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT name AS trace FROM map_traces WHERE account = 1 GROUP BY name HAVING COUNT(*) = 1 ORDER BY id"
        return [dict(row) for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT length FROM map_traces WHERE account = 1 AND name = ?"
        return [says(format_length(world.value(query, params["trace"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from page.expand(re.compile(".+"), after="History")
        yield page.click("link", "My traces")
        yield page.stop(next(row["Length"] for row in page.table() if row["Trace"] == params["trace"]))


class HigherPeak(TemplateClass):
    """Name the higher of two peaks."""

    name, group, sites = "maps-higher-peak", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which is higher, {one} or {other}?",
        "Compare the elevations of {one} and {other}: which peak is the higher one?",
        "Of the peaks {one} and {other}, name the higher.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = places(world, "p.category = 'peak'")
        for one in rows:
            for other in rows:
                if one["elevation"] != other["elevation"]:
                    yield {"one": one["name"], "other": other["name"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        lower, higher = sorted(params.values(), key=lambda name: place(world, name)["elevation"])
        return [says(higher, others=[lower])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        heights = {}
        for name in (params["one"], params["other"]):
            yield from open_place(page, name)
            heights[name] = int(page.value("Elevation").split()[0])
        yield page.stop(max(heights, key=lambda name: heights[name]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with both."""
        yield page.stop(f"{params['one']} or {params['other']}")


class ShowPlace(TemplateClass):
    """Open the page of a place."""

    name, group, sites = "maps-show-place", "maps", ("maps",)
    kind, difficulty = "navigation", "easy"
    intents = (
        "Open the page of {place} in {town}.",
        "Show me {place} in {town} on its own page.",
        "Bring up everything the map knows of {place} ({town}).",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"place": row["name"], "town": row["town_name"]} for row in rng.sample(places(world), 30)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{MAP}/place/{place(world, params['place'])['id']}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop()


class ShowHistory(TemplateClass):
    """Show the edits of a place."""

    name, group, sites = "maps-show-history", "maps", ("maps",)
    kind, difficulty = "navigation", "easy"
    intents = (
        "Show me the history of edits of {place} in {town}.",
        "Open the list of all edits that {place} ({town}) has seen.",
        "Bring up the edit history of {place} in {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places that were edited."""
        rows = places(world, "p.version > 1")
        return [{"place": row["name"], "town": row["town_name"]} for row in rng.sample(rows, 30)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{MAP}/place/{place(world, params['place'])['id']}/history")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", "History of this place")
        yield page.stop()


class ShowPublicList(TemplateClass):
    """Open a user's public list."""

    name, group, sites = "maps-show-public-list", "maps", ("maps",)
    kind, difficulty = "navigation", "easy"
    intents = (
        'Open the public list "{list}" by {user}.',
        'Show me the places on the list "{list}" that {user} has made public.',
        'Among the public lists, go to "{list}" by {user}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Lists with unique names."""
        return [dict(row) for row in world.rows(f"{_PUBLIC_LISTS} AND a.id > 1 ORDER BY l.id")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT l.id FROM map_lists l JOIN map_accounts a ON a.id = l.account WHERE l.name = ? AND a.user = ?"
        return [EndsOn(f"{MAP}/list/{world.value(query, params['list'], params['user'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Lists")
        yield page.click("link", "Public lists")
        while not page.has("link", params["list"]):
            yield page.click("link", "Next")
        yield page.click("link", params["list"])
        yield page.stop()


_PUBLIC_LISTS = (
    "SELECT l.name AS list, a.user FROM map_lists l JOIN map_accounts a ON a.id = l.account "
    "WHERE l.visibility = 'public' AND l.name IN (SELECT name FROM map_lists GROUP BY name HAVING COUNT(*) = 1)"
)

TEMPLATES = (
    TownFact(),
    RoadSpeed(),
    EntryFee(),
    TraceLength(),
    HigherPeak(),
    ShowPlace(),
    ShowHistory(),
    ShowPublicList(),
)
