"""Questions about places, towns and users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.maps.hours import days, is_open
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    SIZES,
    cuisine_label,
    kind_words,
    largest,
    largest_place_params,
    place,
    places,
)
from agentgym_envs.webarena.tasks.maps.steps import count, filter_places, listed_places, open_place, show_places
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

_FACTS = {
    "phone number": ("phone", "Phone"),
    "website": ("website", "Website"),
    "operator": ("operator", "Operator"),
    "wheelchair access": ("wheelchair", "Wheelchair access"),
}
_SIZE_WORDS = {word: word.capitalize() for word in SIZES.values()}


class PlaceFact(TemplateClass):
    """Name a fact of a place."""

    name, group, sites = "maps-place-fact", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "What is the {fact} of {place} in {town}?",
        "I need the {fact} of {place} in {town}.",
        "Look up {place} in {town} and tell me its {fact}.",
        "Find out the {fact} of {place}, {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a value for the fact."""
        for fact in ("phone number", "website"):
            for row in rng.sample(places(world, f"p.{_FACTS[fact][0]} IS NOT NULL"), 20):
                yield {"place": row["name"], "town": row["town_name"], "fact": fact}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        name = _FACTS[params["fact"]][0]
        value = place(world, params["place"])[name]
        if name != "website":
            return [says(value)]
        others = [row[name] for row in places(world, "p.website IS NOT NULL")]
        return [says(value.removeprefix("https://"), others=[one.removeprefix("https://") for one in others])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop(page.value(_FACTS[params["fact"]][1]))


class ClosingTime(TemplateClass):
    """Name the closing time of a place on a day."""

    name, group, sites = "maps-closing-time", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "Until what time is {place} in {town} open on {day}?",
        "When does {place} in {town} close on a {day}?",
        "On {day}, at what time does {place} ({town}) shut?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Days with a single period of opening hours."""
        rows = places(world, "p.hours IS NOT NULL AND p.hours != '24/7'")
        for row in rng.sample(rows, 60):
            spans = [(day, span) for day, span in days(row["hours"]) if re.fullmatch(r"\S+–\S+", span)]
            others = {span[-5:] for _, span in spans}
            day = rng.choice(spans)[0]
            if len(others) > 1 or rng.random() < 0.5:
                yield {"place": row["name"], "town": row["town_name"], "day": day}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        spans = dict(days(place(world, params["place"])["hours"]))
        return [says(spans[params["day"]][-5:])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop(page.value(params["day"]).partition("–")[2])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the opening time."""
        yield from open_place(page, params["place"])
        yield page.stop(page.value(params["day"]).partition("–")[0])


class PlaceSize(TemplateClass):
    """Name the size of a place, such as the rooms of a hotel or the sockets of a charging station."""

    name, group, sites = "maps-place-size", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "How many {things} does {place} in {town} have?",
        "Tell me the number of {things} of {place} in {town}.",
        "I would like to know how many {things} there are at {place}, {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for category, things in SIZES.items():
            rows = places(world, "p.category = ? AND p.capacity IS NOT NULL", category)
            for row in rng.sample(rows, min(len(rows), 10)):
                yield {"place": row["name"], "town": row["town_name"], "things": things}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(place(world, params["place"])["capacity"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop(page.value(_SIZE_WORDS[params["things"]]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield from open_place(page, params["place"])
        number = int(page.value(_SIZE_WORDS[params["things"]]))
        yield page.stop(f"{number} or {number + 1}")


class OpenNow(TemplateClass):
    """Count the places of a kind in a town that are open now."""

    name, group, sites = "maps-open-now", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many places of the kind {kind} in {town} are open now?",
        "Count the places of the kind {kind} in {town} that are open now.",
        "Of all places of the kind {kind} in {town}, how many are open at this moment?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Kinds and towns with open and closed places."""
        query = "SELECT p.category, t.name AS town, p.hours FROM map_places p JOIN map_towns t ON t.id = p.town"
        found: dict[tuple[str, str], list[bool]] = {}
        for row in world.rows(f"{query} WHERE p.hours IS NOT NULL ORDER BY p.id"):
            found.setdefault((row["category"], row["town"]), []).append(is_open(row["hours"]))
        for (category, town), states in found.items():
            if any(states) and not all(states):
                yield {"kind": kind_words(category), "town": town}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT p.hours FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ? AND t.name = ?"
        rows = world.rows(f"{query} AND p.hours IS NOT NULL", KEY_OF[params["kind"]], params["town"])
        return [says(sum(is_open(row["hours"]) for row in rows))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, params["kind"], params["town"])
        yield from page.expand("More filters")
        yield page.click("checkbox", "Open now")
        yield from show_places(page)
        yield page.stop(count(page, "place"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count all of them."""
        yield from filter_places(page, params["kind"], params["town"])
        yield from show_places(page)
        yield page.stop(count(page, "place"))


class ServedFood(TemplateClass):
    """Name the restaurants of a cuisine in a town."""

    name, group, sites = "maps-served-food", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which restaurants in {town} serve {cuisine} food? Name all of them.",
        "Where can one eat {cuisine} food in {town}? List every restaurant of that cuisine.",
        "Name all restaurants in {town} whose cuisine is {cuisine}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Towns with one to five such restaurants."""
        rows = world.rows(
            "SELECT p.cuisine, t.name AS town FROM map_places p JOIN map_towns t ON t.id = p.town "
            "WHERE p.category = 'restaurant' GROUP BY p.cuisine, t.id HAVING COUNT(*) BETWEEN 1 AND 5 ORDER BY 1, 2"
        )
        return [{"cuisine": cuisine_label(row["cuisine"]), "town": row["town"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = world.rows(
            "SELECT p.name, p.cuisine FROM map_places p JOIN map_towns t ON t.id = p.town "
            "WHERE p.category = 'restaurant' AND t.name = ? ORDER BY p.id",
            params["town"],
        )
        cuisine = params["cuisine"].lower().replace(" ", "_")
        wanted = [row["name"] for row in rows if row["cuisine"] == cuisine]
        return [says(*wanted, others=[row["name"] for row in rows if row["cuisine"] != cuisine])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, "restaurant", params["town"])
        yield from page.expand("More filters")
        yield page.choose("Cuisine", params["cuisine"].capitalize())
        yield from show_places(page)
        yield page.stop(", ".join(listed_places(page, "place")))


class LargestOfKind(TemplateClass):
    """Name the largest place of a kind in a town."""

    name, group, sites = "maps-largest-of-kind", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which place of the kind {kind} in {town} has the most {things}?",
        "Which {kind} in {town} has the largest number of {things}?",
        "Tell me the {kind} with the most {things} in {town}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return largest_place_params(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = (row["name"] for row in largest(world, params))
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, params["kind"], params["town"])
        yield page.choose("Sort by", "Size, largest first")
        yield from show_places(page)
        yield page.stop(listed_places(page, "place")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the last place of the list."""
        yield from filter_places(page, params["kind"], params["town"])
        yield page.choose("Sort by", "Size, largest first")
        yield from show_places(page)
        yield page.stop(listed_places(page, "place")[-1])


_EXTREMES = {
    "the most inhabitants": ("population", "Population, largest first", 0),
    "the fewest inhabitants": ("population", "Population, largest first", -1),
    "the highest elevation": ("elevation", "Elevation, highest first", 0),
    "the lowest elevation": ("elevation", "Elevation, highest first", -1),
}


class ExtremeTown(TemplateClass):
    """Name the town of a region with the highest or lowest value of a figure."""

    name, group, sites = "maps-extreme-town", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which town in {region} has {most}?",
        "Among the towns of {region}, name the one with {most}.",
        "I am looking for the town in the region {region} that has {most}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Regions with three to fifteen towns and a single extreme."""
        for row in world.rows("SELECT r.id, r.name FROM map_regions r ORDER BY r.id"):
            for most, (column, _, index) in _EXTREMES.items():
                values = sorted(
                    one[column] for one in world.rows("SELECT * FROM map_towns WHERE region = ?", row["id"])
                )
                extreme = values[-1] if index == 0 else values[0]
                if 2 < len(values) <= 15 and values.count(extreme) == 1:
                    yield {"region": row["name"], "most": most}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        column, _, index = _EXTREMES[params["most"]]
        order = "DESC" if index == 0 else "ASC"
        rows = world.rows(
            "SELECT t.name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE r.name = ? "
            f"ORDER BY t.{column} {order}",
            params["region"],
        )
        first, *others = (row["name"] for row in rows)
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        _, order, index = _EXTREMES[params["most"]]
        yield page.click("link", "Towns")
        yield page.choose("Region", params["region"])
        yield page.choose("Sort by", order)
        yield page.click("button", "Show")
        yield page.stop(page.table()[index]["Town"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the other end of the list."""
        _, order, index = _EXTREMES[params["most"]]
        yield page.click("link", "Towns")
        yield page.choose("Region", params["region"])
        yield page.choose("Sort by", order)
        yield page.click("button", "Show")
        yield page.stop(page.table()[-1 - index]["Town"])


class LastEditor(TemplateClass):
    """Name the last editor of a place."""

    name, group, sites = "maps-last-editor", "maps", ("maps",)
    kind, difficulty = "information", "easy"
    intents = (
        "Who made the last edit of {place} in {town}?",
        "Give me the user name of whoever edited {place} in {town} last.",
        "By which user was {place} ({town}) edited most recently?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with at least three versions, the first by another user."""
        first = "(SELECT account FROM map_changes c WHERE c.place = p.id ORDER BY version LIMIT 1)"
        rows = places(world, f"p.version > 2 AND p.editor != {first}")
        return [{"place": row["name"], "town": row["town_name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        editor = place(world, params["place"])["editor"]
        user = world.value("SELECT user FROM map_accounts WHERE id = ?", editor)
        named = f"{params['place']} {params['town']}".lower()
        others = world.rows("SELECT user FROM map_accounts WHERE id <> ? ORDER BY id", editor)
        return [says(user, others=[one["user"] for one in others if one["user"].lower() not in named])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.stop(page.texts(after=re.compile(r"Version \d+, last edited .* by"))[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the first editor."""
        yield from open_place(page, params["place"])
        yield page.click("link", "History of this place")
        yield page.stop(page.table()[-1]["Edited by"])


class EditCount(TemplateClass):
    """Count the edits of a user."""

    name, group, sites = "maps-edit-count", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many edits has the contributor {user} made?",
        "Look up among the contributors how many edits {user} has made.",
        "What is the number of edits of {user}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users whose numbers of edits and of opened notes differ."""
        notes = "(SELECT COUNT(*) FROM map_note_comments m WHERE m.account = a.id AND m.action = 'opened')"
        edits = "(SELECT COUNT(*) FROM map_changes c WHERE c.account = a.id)"
        query = f"SELECT a.user FROM map_accounts a WHERE a.id > 1 AND {edits} != {notes} ORDER BY a.id"
        return [{"user": row["user"]} for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT COUNT(*) FROM map_changes c JOIN map_accounts a ON a.id = c.account WHERE a.user = ?"
        return [says(world.value(query, params["user"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Contributors")
        while not page.has("link", params["user"]):
            yield page.click("link", "Next")
        yield page.stop(_row(page, params["user"])["Edits"])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of notes."""
        yield page.click("link", "Contributors")
        while not page.has("link", params["user"]):
            yield page.click("link", "Next")
        yield page.stop(_row(page, params["user"])["Notes"])


def _row(page: PageReader, user: str) -> dict[str, str]:
    return next(row for row in page.table() if row["User"] == user)


TEMPLATES = (
    PlaceFact(),
    ClosingTime(),
    PlaceSize(),
    OpenNow(),
    ServedFood(),
    LargestOfKind(),
    ExtremeTown(),
    LastEditor(),
    EditCount(),
)
