"""Edits of places, the agent's settings, and requests that the map cannot fulfil."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.maps.wordlists import CUISINES
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.maps.queries import (
    KEY_OF,
    LABEL_OF,
    MODE_OF,
    MODE_WORDS,
    cuisine_label,
    kind_words,
    label,
    place,
    places,
)
from agentgym_envs.webarena.tasks.maps.steps import (
    count,
    filter_places,
    listed_places,
    open_place,
    open_settings,
    read_summary,
    request_directions,
    show_places,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_HOURS = (
    "Mo-Fr 08:00-17:00",
    "Tu-Su 11:00-20:00",
    "Mo-Sa 09:00-19:30",
    "Mo-Fr 07:30-16:00; Sa 09:00-12:00",
    "We-Su 12:00-21:00",
    "Mo-Su 10:00-22:00",
)
_EDIT_COMMENTS = (
    "Read from the sign at the door",
    "They told me on the phone",
    "Survey on foot",
    "From their own website",
)
_ACCESS = {"full": "Yes", "limited": "Limited", "no": "No"}
_NEW_PLACES = {
    "cafe": ("Café Meridian", "The Fourth Cup", "Teatime"),
    "bakery": ("Flour Power House", "The Early Roll", "Corner Crust"),
    "bookshop": ("The Last Chapter", "Margin Notes", "Inkwell Books"),
    "bicycle_shop": ("Chain Reaction Repairs", "Second Gear", "Hub and Rim"),
    "florist": ("Stem and Petal", "Tulip Corner", "The Green Thumb"),
    "gallery": ("White Wall Gallery", "Gallery Northlight", "The Sketch Room"),
}
_DESCRIPTIONS = (
    "I map playgrounds and drinking fountains.",
    "New here; please be patient with me.",
    "Surveys on Sundays, by train and on foot.",
    "Interested in old street names.",
    "I check wheelchair access wherever I go.",
    "Mapping the market towns, one by one.",
)


def _edited(world: World, name: str, values: Mapping[str, Any], comment: str) -> Evaluator:
    """Return the evaluator of one edit: the place and its entry in the log."""
    row = place(world, name)
    version = row["version"] + 1
    after = {**values, "version": version, "changed": stamp(), "editor": 1}
    log = {"place": row["id"], "account": 1, "version": version, "comment": comment}
    return changed(Updated("map_places", {"id": row["id"]}, after), Added("map_changes", log))


class CorrectHours(TemplateClass):
    """Correct the opening hours of a place."""

    name, group, sites = "maps-correct-hours", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Set the opening hours of {place} in {town} to "{hours}". As what you changed, write "{comment}"',
        'The opening hours of {place} ({town}) are "{hours}" now. Correct them, with the comment "{comment}"',
        'Edit {place} in {town}: opening hours "{hours}", comment on the edit "{comment}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with other opening hours."""
        for row in rng.sample(places(world, "p.hours IS NOT NULL"), 40):
            hours = rng.choice([one for one in _HOURS if one != row["hours"]])
            yield {
                "place": row["name"],
                "town": row["town_name"],
                "hours": hours,
                "comment": rng.choice(_EDIT_COMMENTS),
            }

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [_edited(world, params["place"], {"hours": params["hours"]}, params["comment"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", "Edit")
        yield page.type("Opening hours", params["hours"])
        yield from _save(page, params["comment"])


def _save(page: PageReader, comment: str) -> Iterator[str]:
    yield page.type("What did you change?", comment)
    yield page.click("button", "Save")
    yield page.stop()


class SurveyAccess(TemplateClass):
    """Record the wheelchair access of a place."""

    name, group, sites = "maps-survey-access", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'Record on the map that {place} in {town} has {access} wheelchair access; comment the edit with "{comment}"',
        '{place} in {town} offers {access} wheelchair access. Put that right, with the comment "{comment}"',
        'Change the wheelchair access of {place} ({town}) to {access}, and as what you changed write "{comment}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Values that differ from the current one."""
        for row in rng.sample(places(world, "p.category != 'peak'"), 40):
            offered = [access for access, option in _ACCESS.items() if option.lower() != row["wheelchair"]]
            params = {"access": rng.choice(offered), "comment": rng.choice(_EDIT_COMMENTS)}
            yield {"place": row["name"], "town": row["town_name"], **params}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        access = _ACCESS[params["access"]].lower()
        return [_edited(world, params["place"], {"wheelchair": access}, params["comment"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", "Edit")
        yield page.choose("Wheelchair access", _ACCESS[params["access"]])
        yield from _save(page, params["comment"])


class CorrectContact(TemplateClass):
    """Correct the phone number and the website of a place in one edit."""

    name, group, sites = "maps-correct-contact", "maps", ("maps",)
    kind, difficulty, held_out = "change", "medium", True
    intents = (
        'Edit {place} in {town} once: phone "{phone}", website "{website}", and as what you changed "{comment}"',
        'In one edit, give {place} ({town}) the phone "{phone}" and the website "{website}", commented "{comment}"',
        '{place} in {town} has a new phone, "{phone}", and a new website, "{website}". One edit, comment "{comment}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with both."""
        for row in rng.sample(places(world, "p.phone IS NOT NULL AND p.website IS NOT NULL"), 20):
            phone = f"{row['phone'][:3]} 555 {rng.randint(100, 999)}0"
            website = row["website"].replace("https://", "https://www.")
            values = {"phone": phone, "website": website, "comment": rng.choice(_EDIT_COMMENTS)}
            yield {"place": row["name"], "town": row["town_name"], **values}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"phone": params["phone"], "website": params["website"]}
        return [_edited(world, params["place"], values, params["comment"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", "Edit")
        yield page.type("Phone", params["phone"])
        yield page.type("Website", params["website"])
        yield from _save(page, params["comment"])


class AddPlace(TemplateClass):
    """Add a place to the map."""

    name, group, sites = "maps-add-place", "maps", ("maps",)
    kind, difficulty = "change", "hard"
    intents = (
        'Add a place to the map: "{name}", of the kind {kind}, at {address}, opening hours "{hours}", phone "{phone}".',
        'A new {kind} called "{name}" is at {address} (opening hours "{hours}", phone "{phone}"). Put it on the map.',
        'Put "{name}" on the map: a {kind} at {address} with the opening hours "{hours}" and the phone "{phone}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Addresses without a place."""
        streets = world.rows(f"{_STREETS} ORDER BY r.id")
        for category, names in _NEW_PLACES.items():
            for row in rng.sample(streets, 6):
                house = rng.randint(2, 179)
                taken = world.value("SELECT id FROM map_places WHERE road = ? AND house = ?", row["id"], house)
                if taken is None:
                    address = f"{house} {row['name']}, {row['town']}"
                    phone = f"0{row['zip'][:2]} 555 {rng.randint(1000, 9999)}"
                    chosen = {"name": rng.choice(names), "hours": rng.choice(_HOURS), "phone": phone}
                    yield {"kind": kind_words(category), "address": address, **chosen}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        road, house = _address(world, params["address"])
        values = {"name": params["name"], "category": KEY_OF[params["kind"]], "hours": params["hours"]}
        values |= {"phone": params["phone"], "website": None, "operator": None}
        expected_place = {**values, "road": road, "house": house}
        return [changed(Added("map_places", expected_place), Added("map_changes", {"account": 1, "version": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Places")
        yield page.click("link", "Add a place")
        yield page.type("Name", params["name"])
        yield page.choose("Kind", label(params["kind"]))
        yield page.type("Address", params["address"])
        yield page.type("Opening hours", params["hours"])
        yield page.type("Phone", params["phone"])
        yield page.click("button", "Add place")
        yield page.stop()


_STREETS = (
    "SELECT r.id, r.name, t.name AS town, t.zip FROM map_roads r JOIN map_towns t ON t.id = r.town "
    "WHERE r.kind IN ('residential', 'tertiary')"
)


def _address(world: World, address: str) -> tuple[int, int]:
    """Return the road and the house number of "12 Mill Street, Foxford"."""
    street, _, town = address.partition(", ")
    house, _, name = street.partition(" ")
    road = world.value(f"SELECT id FROM ({_STREETS}) WHERE name = ? AND town = ?", name, town)
    return road, int(house)


class ChangeOwnAddress(TemplateClass):
    """Change the agent's home or work address."""

    name, group, sites = "maps-move-work", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        "Change my {own} address in the settings to {address}.",
        "I have moved: my {own} address is {address} now. Update my settings.",
        "Set {address} as my {own} address.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in rng.sample(world.rows(f"{_STREETS} ORDER BY r.id"), 30):
            address = f"{rng.randint(1, 180)} {row['name']}, {row['town']}"
            yield {"own": rng.choice(("home", "work")), "address": address}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        road, house = _address(world, params["address"])
        where = {"account": 1, "label": params["own"].capitalize()}
        return [changed(Updated("map_addresses", where, {"road": road, "house": house}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_settings(page)
        yield page.type(params["own"].capitalize(), params["address"])
        yield page.click("button", "Save addresses")
        yield page.stop()


class ChangeSettings(TemplateClass):
    """Change the agent's description and preferred mode of transport."""

    name, group, sites = "maps-change-settings", "maps", ("maps",)
    kind, difficulty = "change", "medium"
    intents = (
        'In my settings, say that I usually go {mode}, and let the text about me be "{about}"',
        'Change my settings: I usually go {mode}, and what it says about me should be "{about}"',
        'Set my usual mode so that I go {mode}, and make the text about me "{about}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Modes that differ from the current one."""
        mode = world.value("SELECT mode FROM map_accounts WHERE id = 1")
        return [
            {"mode": MODE_WORDS[one], "about": about} for one in MODE_WORDS if one != mode for about in _DESCRIPTIONS
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"mode": MODE_OF[params["mode"]], "about": params["about"]}
        return [changed(Updated("map_accounts", {"id": 1}, values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_settings(page)
        yield page.type("About you", params["about"])
        yield page.choose("You usually go by", LABEL_OF[params["mode"]])
        yield page.click("button", "Save settings")
        yield page.stop()


class NoSuchFood(TemplateClass):
    """Name the phone number of a restaurant that does not exist."""

    name, group, sites = "maps-no-such-food", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "What is the phone number of the restaurant in {town} that serves {cuisine} food?",
        "I want to book a table for {cuisine} food in {town}. Which number do I call?",
        "Give me the phone number of a restaurant in {town} with the cuisine {cuisine}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Cuisines that no restaurant of the town serves."""
        query = "SELECT id FROM map_places WHERE town = ? AND cuisine = ?"
        for town in world.rows("SELECT id, name FROM map_towns ORDER BY id"):
            missing = [one for one in CUISINES if world.value(query, town["id"], one) is None]
            if missing:
                yield {"town": town["name"], "cuisine": cuisine_label(rng.choice(missing))}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, "restaurant", params["town"])
        yield from page.expand("More filters")
        yield page.choose("Cuisine", params["cuisine"].capitalize())
        yield from show_places(page)
        yield page.not_achievable() if count(page, "place") == 0 else page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of another restaurant."""
        yield from filter_places(page, "restaurant", params["town"])
        yield from show_places(page)
        yield page.click("link", listed_places(page, "place")[0])
        yield page.stop(page.value("Address"))


class DeletePlace(TemplateClass):
    """Delete a place, which the map does not offer."""

    name, group, sites = "maps-delete-place", "maps", ("maps",)
    kind, difficulty = "change", "easy"
    intents = (
        "Delete {place} in {town} from the map.",
        "{place} in {town} is gone for good. Erase its entry from the map.",
        "Remove the page of {place} ({town}) from the map altogether.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"place": row["name"], "town": row["town_name"]} for row in rng.sample(places(world), 30)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_place(page, params["place"])
        yield page.click("link", "Edit")
        yield page.stop() if page.has("button", "Delete") else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Claim that it is done."""
        yield from open_place(page, params["place"])
        yield page.stop("Deleted.")


class NoSuchStreet(TemplateClass):
    """Name the distance to a street that does not exist."""

    name, group, sites = "maps-no-such-street", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many kilometres is it {mode} from {start} to {address}?",
        "What is the distance {mode} from {start} to the address {address}?",
        "I am at {start} and want to get to {address}. How far is that {mode}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Streets of other towns."""
        streets = sorted({row["name"] for row in world.rows(_STREETS)})
        towns = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
        for row in rng.sample(places(world), 40):
            street, town = rng.choice(streets), rng.choice(towns)
            if world.value(f"SELECT id FROM ({_STREETS}) WHERE name = ? AND town = ?", street, town) is None:
                address = f"{rng.randint(1, 180)} {street}, {town}"
                yield {"start": row["name"], "address": address, "mode": MODE_WORDS[rng.choice(tuple(MODE_WORDS))]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["address"], params["mode"])
        yield page.not_achievable() if page.has("heading", "Destination") else page.stop(read_summary(page).length)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the distance to the town."""
        yield from request_directions(page, params["start"], params["address"].partition(", ")[2], params["mode"])
        yield page.stop(read_summary(page).length)


TEMPLATES = (
    CorrectHours(),
    SurveyAccess(),
    CorrectContact(),
    AddPlace(),
    ChangeOwnAddress(),
    ChangeSettings(),
    NoSuchFood(),
    DeletePlace(),
    NoSuchStreet(),
)
