"""Tasks of several steps, such as a search followed by a route or an edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Removed
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    MODE_OF,
    MODE_WORDS,
    NEARBY_CATEGORIES,
    clear_nearest,
    kilometres,
    kind_words,
    largest,
    largest_place_params,
    minutes,
    nearest,
    pairs,
    place,
    places,
    route_between,
    route_between_towns,
    unique_names,
)
from agentgym_envs.webarena.tasks.maps.steps import (
    filter_places,
    find_nearby,
    hedged_duration,
    listed_places,
    open_place,
    read_summary,
    request_directions,
    show_places,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_PROBLEMS = (
    "The number on the sign at the entrance is another one.",
    "Half of it is closed until the summer.",
    "It is being extended at the moment.",
    "Please somebody count again, I found fewer.",
)


class NearestPhone(TemplateClass):
    """Name the phone number of the nearest place of a kind."""

    name, group, sites = "maps-nearest-phone", "maps", ("maps",)
    kind, difficulty, held_out = "information", "medium", True
    intents = (
        "What is the phone number of the {kind} nearest to {place} in a straight line?",
        "I am at {place} and want to call the {kind} that is closest as the crow flies. What is its number?",
        "Find the {kind} that is nearest to {place}, as the crow flies, and tell me its phone number.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a clearly nearest one, which has a phone number."""
        for row in rng.sample(places(world), 90):
            category = rng.choice(
                ("hotel", "museum", "pharmacy", "bank", "library", "restaurant", "doctors", "hospital")
            )
            found = clear_nearest(world, row["name"], category) if category != row["category"] else None
            if found is not None and found["phone"]:
                yield {"place": row["name"], "kind": kind_words(category)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = nearest(world, params["place"], KEY_OF[params["kind"]])[:12]
        return [says(first["phone"], others=[row["phone"] for row in others if row["phone"]])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from find_nearby(page, params["place"], params["kind"])
        yield page.click("link", page.table()[0]["Place"])
        yield page.stop(page.value("Phone"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of the starting place, or with its address."""
        yield from open_place(page, params["place"])
        yield page.stop(page.value("Phone" if page.has("rowheader", "Phone") else "Address"))


class FastestOfThree(TemplateClass):
    """Name the place of three with the shortest travel time."""

    name, group, sites = "maps-soonest-of-three", "maps", ("maps",)
    kind, difficulty = "information", "hard"
    intents = (
        "Going {mode} from {start}, which do I reach in the least time: {one}, {two} or {three}?",
        "Which of {one}, {two} and {three} can I reach in the least time {mode} from {start}?",
        "I set out from {start} {mode}. Compare {one}, {two} and {three}, and name the one that I reach soonest.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Three places of a category in the town of the start."""
        known = unique_names(world)
        for start in rng.sample(places(world), 300):
            near = nearest(world, start["name"], rng.choice(NEARBY_CATEGORIES))[:9]
            names = [row["name"] for row in near if row["town"] == start["town"] and row["name"] in known]
            if len(names) > 2:
                chosen = dict(zip(("one", "two", "three"), rng.sample(names, 3), strict=True))
                params = {"start": start["name"], **chosen, "mode": MODE_WORDS[rng.choice(tuple(MODE_WORDS))]}
                first, second, _ = sorted(_times(world, params).values())
                if second > first + 1:
                    yield params

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = sorted(_times(world, params).items(), key=lambda one: one[1])
        return [says(first[0], others=[name for name, _ in others])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        times = {}
        yield from request_directions(page, params["start"], params["one"], params["mode"])
        times[params["one"]] = read_summary(page).minutes
        for name in (params["two"], params["three"]):
            yield page.type("To", name)
            yield page.click("button", "Go")
            times[name] = read_summary(page).minutes
        yield page.stop(min(times, key=lambda name: times[name]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two of them."""
        yield page.stop(f"{params['one']} or {params['two']}")


def _times(world: World, params: Params) -> dict[str, int]:
    mode, names = MODE_OF[params["mode"]], (params["one"], params["two"], params["three"])
    return {name: minutes(route_between(world, mode, params["start"], name)) for name in names}


class RoundTrip(TemplateClass):
    """Name the length of a route by way of a third place."""

    name, group, sites = "maps-round-trip", "maps", ("maps",)
    kind, difficulty = "information", "hard"
    intents = (
        "I go {mode} from {start} to {over} and then on to {end}. How many kilometres is that altogether?",
        "How many kilometres long is the trip {mode} from {start} by way of {over} to {end}, both parts together?",
        "Add up the kilometres {mode}: first from {start} to {over}, then from {over} to {end}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places in three towns, with both parts long enough for the site to give kilometres."""
        known = unique_names(world)
        for start, over in pairs(world, rng, 60, most_km=90, where="p.house IS NOT NULL"):
            end = rng.choice(nearest(world, over["name"], rng.choice(NEARBY_CATEGORIES))[3:12])
            if len({start["town"], over["town"], end["town"]}) == 3 and end["name"] in known:
                yield {"start": start["name"], "over": over["name"], "end": end["name"], "mode": MODE_WORDS["bicycle"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        mode = MODE_OF[params["mode"]]
        parts = [("start", "over"), ("over", "end")]
        total = sum(kilometres(route_between(world, mode, params[one], params[other])) for one, other in parts)
        return [says(f"{total:.1f}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["over"], params["mode"])
        first = float(read_summary(page).kilometres.replace(",", ""))
        yield page.type("From", params["over"])
        yield page.type("To", params["end"])
        yield page.click("button", "Go")
        yield page.stop(f"{first + float(read_summary(page).kilometres.replace(',', '')):.1f} km")

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the first part only."""
        yield from request_directions(page, params["start"], params["over"], params["mode"])
        yield page.stop(read_summary(page).length)


class ReportLargest(TemplateClass):
    """Report a problem at the largest place of a kind in a town."""

    name, group, sites = "maps-report-largest", "maps", ("maps",)
    kind, difficulty = "change", "hard"
    intents = (
        'Report a problem at the {kind} in {town} that has the most {things}: "{text}"',
        'Find the {kind} with the largest number of {things} in {town}, and add the note "{text}" about it.',
        'Which {kind} in {town} has the most {things}? Leave a note there that says "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{**params, "text": rng.choice(_PROBLEMS)} for params in largest_place_params(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = largest(world, params)[0]["id"]
        comment = {"account": 1, "action": "opened", "text": params["text"]}
        return [changed(Added("map_notes", {"place": found}), Added("map_note_comments", comment))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_largest(page, params)
        yield page.click("link", "Report a problem")
        yield page.type("What is wrong or missing?", params["text"])
        yield page.click("button", "Add note")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Report it at the smallest."""
        yield from open_largest(page, params, -1)
        yield page.click("link", "Report a problem")
        yield page.type("What is wrong or missing?", params["text"])
        yield page.click("button", "Add note")
        yield page.stop()


def open_largest(page: PageReader, params: Params, rank: int = 0) -> Iterator[str]:
    """Open the largest place of a kind in a town, or another one by `order`."""
    yield from filter_places(page, params["kind"], params["town"])
    yield page.choose("Sort by", "Size, largest first")
    yield from show_places(page)
    yield page.click("link", listed_places(page, "place")[rank])


class SaveLargest(TemplateClass):
    """Save the largest place of a kind in a town to a list."""

    name, group, sites = "maps-save-largest", "maps", ("maps",)
    kind, difficulty = "change", "hard"
    intents = (
        'Save the {kind} in {town} that has the most {things} to my list "{list}".',
        'Find the {kind} with the largest number of {things} in {town} and put it on my list "{list}".',
        'Add to my list "{list}" whichever {kind} in {town} has the most {things}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places that are on none of the lists yet."""
        lists = [row["name"] for row in world.rows("SELECT name FROM map_lists WHERE account = 1 ORDER BY id")]
        query = "SELECT s.id FROM map_saved s JOIN map_lists l ON l.id = s.list WHERE l.account = 1 AND s.place = ?"
        for params in largest_place_params(world):
            if world.value(query, largest(world, params)[0]["id"]) is None:
                yield {**params, "list": rng.choice(lists)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value("SELECT id FROM map_lists WHERE account = 1 AND name = ?", params["list"])
        return [changed(Added("map_saved", {"list": number, "place": largest(world, params)[0]["id"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_largest(page, params)
        yield page.choose("List", params["list"])
        yield page.click("button", "Save to list")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Open the place without saving it."""
        yield from open_largest(page, params)
        yield page.stop()


class DurationToLargest(TemplateClass):
    """Name the travel time to the largest place of a kind in a town."""

    name, group, sites = "maps-way-to-largest", "maps", ("maps",)
    kind, difficulty = "information", "hard"
    intents = (
        "How long does it take by car from {start} to the {kind} with the most {things} in {town}?",
        "Find the {kind} in {town} that has the most {things}. How much time is it by car from {start} to there?",
        "I drive from {start} to {town}, to the {kind} with the largest number of {things}. How long does that take?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Starting places in other towns."""
        for params in largest_place_params(world):
            start = rng.choice(places(world, "t.name != ? AND p.house IS NOT NULL", params["town"]))
            yield {**params, "start": start["name"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(f"{minutes(route_between(world, 'car', params['start'], largest(world, params)[0]['name']))} min")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, params["kind"], params["town"])
        yield page.choose("Sort by", "Size, largest first")
        yield from show_places(page)
        name = listed_places(page, "place")[0]
        yield from request_directions(page, params["start"], name, MODE_WORDS["car"])
        yield page.stop(read_summary(page).time)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield from request_directions(page, params["start"], params["town"], MODE_WORDS["car"])
        yield page.stop(hedged_duration(page))


class TwoLargestTowns(TemplateClass):
    """Name the distance between the two largest towns of a region."""

    name, group, sites = "maps-two-largest-towns", "maps", ("maps",)
    kind, difficulty, held_out = "information", "hard", True
    intents = (
        "How many kilometres is it {mode} between the two towns of {region} with the most inhabitants?",
        "Take the two largest towns of {region} by population. How far in kilometres is one from the other {mode}?",
        "How many kilometres is it {mode} from the most populous town of {region} to the second most populous?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Regions with at least three towns."""
        query = "SELECT r.name FROM map_regions r JOIN map_towns t ON t.region = r.id GROUP BY r.id HAVING COUNT(*) > 2"
        regions = [row["name"] for row in world.rows(f"{query} ORDER BY r.id")]
        return [
            {"region": region, "mode": mode} for region in regions for mode in MODE_OF if mode != MODE_WORDS["foot"]
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT t.name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE r.name = ?"
        first, second = world.rows(f"{query} ORDER BY t.population DESC LIMIT 2", params["region"])
        return [
            says(
                f"{kilometres(route_between_towns(world, MODE_OF[params['mode']], first['name'], second['name'])):.1f}"
            )
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Towns")
        yield page.choose("Region", params["region"])
        yield page.choose("Sort by", "Population, largest first")
        yield page.click("button", "Show")
        first, second = (row["Town"] for row in page.table()[:2])
        yield from request_directions(page, first, second, params["mode"])
        yield page.stop(read_summary(page).kilometres)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the time instead."""
        yield page.click("link", "Towns")
        yield page.choose("Region", params["region"])
        yield page.click("button", "Show")
        first, second = (row["Town"] for row in page.table()[:2])
        yield from request_directions(page, first, second, params["mode"])
        yield page.stop(read_summary(page).time)


class MoveSaved(TemplateClass):
    """Move a place from one list to another."""

    name, group, sites = "maps-move-saved", "maps", ("maps",)
    kind, difficulty, held_out = "change", "medium", True
    intents = (
        'Move {place} from my list "{old}" to my list "{new}".',
        'Take {place} off my list "{old}" and put it on "{new}" instead.',
        '{place} belongs on my list "{new}", not on "{old}". Move it there.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places that are on a single list."""
        lists = [row["name"] for row in world.rows("SELECT name FROM map_lists WHERE account = 1 ORDER BY id")]
        for row in world.rows(f"{_SAVED} GROUP BY p.id HAVING COUNT(*) = 1 ORDER BY s.id"):
            new = rng.choice([name for name in lists if name != row["old"]])
            if len(world.rows("SELECT id FROM map_places WHERE name = ?", row["place"])) == 1:
                yield {"place": row["place"], "old": row["old"], "new": new}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        old, new = (world.value(_OWN_LIST, params[end]) for end in ("old", "new"))
        number = place(world, params["place"])["id"]
        removed, added = {"list": old, "place": number}, {"list": new, "place": number}
        return [changed(Removed("map_saved", removed), Added("map_saved", added))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("button", f"Remove from {params['old']}")
        yield page.choose("List", params["new"])
        yield page.click("button", "Save to list")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Save it to the other list without removing it from the first."""
        yield from open_place(page, params["place"])
        yield page.choose("List", params["new"])
        yield page.click("button", "Save to list")
        yield page.stop()


_OWN_LIST = "SELECT id FROM map_lists WHERE account = 1 AND name = ?"
_SAVED = (
    "SELECT p.name AS place, l.name AS old FROM map_saved s JOIN map_lists l ON l.id = s.list "
    "JOIN map_places p ON p.id = s.place WHERE l.account = 1"
)

TEMPLATES = (
    NearestPhone(),
    FastestOfThree(),
    RoundTrip(),
    ReportLargest(),
    SaveLargest(),
    DurationToLargest(),
    TwoLargestTowns(),
    MoveSaved(),
)
