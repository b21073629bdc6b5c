"""What one page of the map says, and pages to be shown."""

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
from agentgym_envs.webarena.tasks.template import Params, Template

_TOWN_FACTS = {"postcode": ("zip", "Postcode"), "population": ("population", "Population")}


class TownFact(Template):
    """A fact of a town."""

    name, group, sites = "maps-town-fact", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "What is the {fact} of {town}?",
        "Tell me the {fact} of the town {town}.",
        "I need to know {town}'s {fact}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """All towns."""
        names = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
        return [{"town": name, "fact": fact} for name in names for fact in _TOWN_FACTS]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        row = world.rows("SELECT zip, population FROM map_towns WHERE name = ?", params["town"])[0]
        return [says(row[_TOWN_FACTS[params["fact"]][0]])]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from open_place(sight, params["town"])
        yield sight.stop(sight.value(_TOWN_FACTS[params["fact"]][1]))


class RoadSpeed(Template):
    """How fast one may drive on a street."""

    name, group, sites = "maps-road-speed", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "What is the speed limit on {road} in {town}, in km/h?",
        "How many km/h may one drive on {road} in {town}?",
        "Find out how fast, in km/h, cars may go on {road} in {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Streets on which cars may go."""
        query = "SELECT r.name AS road, t.name AS town FROM map_roads r JOIN map_towns t ON t.id = r.town"
        return [dict(row) for row in rng.sample(world.rows(f"{query} WHERE r.speed > 0 ORDER BY r.id"), 40)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        query = "SELECT r.speed FROM map_roads r JOIN map_towns t ON t.id = r.town WHERE r.name = ? AND t.name = ?"
        return [says(world.value(query, params["road"], params["town"]))]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from _open_street(sight, params)
        yield sight.stop(sight.value("Speed limit").split()[0])

    def wrong(self, sight: PageReader, params: Params) -> Iterator[str]:
        """Two guesses."""
        yield sight.stop("30 or 50")


def _open_street(sight: PageReader, params: Params) -> Iterator[str]:
    """By way of the town, which lists its streets."""
    yield from open_place(sight, params["town"])
    yield from sight.unfold("Streets")
    yield sight.click("link", params["road"], after="Streets")


class EntryFee(Template):
    """What it costs to go in somewhere."""

    name, group, sites = "maps-entry-fee", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "How much is the entry to {place} in {town}?",
        "What does one pay to get into {place} in {town}?",
        "Look up the entry fee of {place}, {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Where there is a fee."""
        rows = places(world, "p.category IN ('museum', 'castle', 'campsite', 'swimming_pool') AND p.fee GLOB '[0-9]*'")
        return [{"place": row["name"], "town": row["town_name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        return [says(place(world, params["place"])["fee"])]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from open_place(sight, params["place"])
        yield sight.stop(sight.value("Entry"))

    def wrong(self, sight: PageReader, params: Params) -> Iterator[str]:
        """Two guesses."""
        yield from open_place(sight, params["place"])
        fee = sight.value("Entry")
        yield sight.stop(f"{fee} or {float(fee) + 1:.2f}")


class TraceLength(Template):
    """How long a trace of one's own is."""

    name, group, sites = "maps-trace-length", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        'How long is my trace "{trace}"?',
        'What is the length of the trace of mine that is called "{trace}"?',
        'Look up how far I went on my trace "{trace}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """All of them."""
        query = "SELECT name AS trace FROM map_traces WHERE account = 1 GROUP BY name HAVING COUNT(*) = 1 ORDER BY id"
        return [dict(row) for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        query = "SELECT length FROM map_traces WHERE account = 1 AND name = ?"
        return [says(format_length(world.value(query, params["trace"])))]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from sight.unfold(re.compile(".+"), after="History")
        yield sight.click("link", "My traces")
        yield sight.stop(next(row["Length"] for row in sight.table() if row["Trace"] == params["trace"]))


class HigherPeak(Template):
    """Which of two peaks is higher."""

    name, group, sites = "maps-higher-peak", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which is higher, {one} or {other}?",
        "Compare the elevations of {one} and {other}: which peak is the higher one?",
        "Of the peaks {one} and {other}, name the higher.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of peaks of different height."""
        rows = places(world, "p.category = 'peak'")
        for one in rows:
            for other in rows:
                if one["elevation"] != other["elevation"]:
                    yield {"one": one["name"], "other": other["name"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        lower, higher = sorted(params.values(), key=lambda name: place(world, name)["elevation"])
        return [says(higher, others=[lower])]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        heights = {}
        for name in (params["one"], params["other"]):
            yield from open_place(sight, name)
            heights[name] = int(sight.value("Elevation").split()[0])
        yield sight.stop(max(heights, key=lambda name: heights[name]))

    def wrong(self, sight: PageReader, params: Params) -> Iterator[str]:
        """Both."""
        yield sight.stop(f"{params['one']} or {params['other']}")


class ShowPlace(Template):
    """Show the page of a place."""

    name, group, sites = "maps-show-place", "maps", ("maps",)
    kind, difficulty = "navigation", "easy"
    intents = (
        "Open the page of {place} in {town}.",
        "Show me {place} in {town} on its own page.",
        "Bring up everything the map knows of {place} ({town}).",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Any place."""
        return [{"place": row["name"], "town": row["town_name"]} for row in rng.sample(places(world), 30)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        return [EndsOn(f"{MAP}/place/{place(world, params['place'])['id']}")]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from open_place(sight, params["place"])
        yield sight.stop()


class ShowHistory(Template):
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
        """See `Template`."""
        return [EndsOn(f"{MAP}/place/{place(world, params['place'])['id']}/history")]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield from open_place(sight, params["place"])
        yield sight.click("link", "History of this place")
        yield sight.stop()


class ShowPublicList(Template):
    """Show a list that somebody made public."""

    name, group, sites = "maps-show-public-list", "maps", ("maps",)
    kind, difficulty = "navigation", "easy"
    intents = (
        'Open the public list "{list}" by {user}.',
        'Show me the places on the list "{list}" that {user} has made public.',
        'Among the public lists, go to "{list}" by {user}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Lists whose names are no other list's."""
        return [dict(row) for row in world.rows(f"{_PUBLIC} AND a.id > 1 ORDER BY l.id")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """See `Template`."""
        query = "SELECT l.id FROM map_lists l JOIN map_accounts a ON a.id = l.account WHERE l.name = ? AND a.user = ?"
        return [EndsOn(f"{MAP}/list/{world.value(query, params['list'], params['user'])}")]

    def oracle(self, sight: PageReader, params: Params) -> Iterator[str]:
        """See `Template`."""
        yield sight.click("link", "Lists")
        yield sight.click("link", "Public lists")
        while not sight.has("link", params["list"]):
            yield sight.click("link", "Next")
        yield sight.click("link", params["list"])
        yield sight.stop()


_PUBLIC = (
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
