"""Edits of places, the agent's settings, and requests that the map cannot fulfil."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.maps.wordlists import CUISINES
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, LABEL_OF, MODE_OF, MODE_WORDS, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, expand, given, not_offered, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

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


def _edited(world: World, name: str, values: Mapping[str, Any], comment: str) -> list[Expected]:
    """Return the changes of one edit: the place and its entry in the log."""
    row = queries.place(world, name)
    version = row["version"] + 1
    after = {**values, "version": version, "changed": stamp(), "editor": 1}
    log = {"place": row["id"], "account": 1, "version": version, "comment": comment}
    return [Updated("map_places", {"id": row["id"]}, after), Added("map_changes", log)]


def _correct_hours_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with other opening hours."""
    for row in rng.sample(queries.places(world, "p.hours IS NOT NULL"), 40):
        hours = rng.choice([one for one in _HOURS if one != row["hours"]])
        yield {"place": row["name"], "town": row["town_name"], "hours": hours, "comment": rng.choice(_EDIT_COMMENTS)}


def _save(page: PageReader, comment: str) -> Iterator[str]:
    yield page.type("What did you change?", comment)
    yield page.click("button", "Save")


correct_hours = MapTemplate(
    "maps-correct-hours",
    "change",
    "medium",
    intents=(
        'Set the opening hours of {place} in {town} to "{hours}". As what you changed, write "{comment}"',
        'The opening hours of {place} ({town}) are "{hours}" now. Correct them, with the comment "{comment}"',
        'Edit {place} in {town}: opening hours "{hours}", comment on the edit "{comment}"',
    ),
    instances=_correct_hours_instances,
    expected=lambda world, place, hours, comment: _edited(world, place, {"hours": hours}, comment),
    solution=[
        do(steps.open_place, "{place}"),
        click("link", "Edit"),
        type_text("Opening hours", "{hours}"),
        do(_save, "{comment}"),
    ],
)


def _survey_access_instances(world: World, rng: Random) -> Iterator[Params]:
    """Values that differ from the current one."""
    for row in rng.sample(queries.places(world, "p.category != 'peak'"), 40):
        offered = [access for access, option in _ACCESS.items() if option.lower() != row["wheelchair"]]
        params = {"access": rng.choice(offered), "comment": rng.choice(_EDIT_COMMENTS)}
        yield {"place": row["name"], "town": row["town_name"], **params}


survey_access = MapTemplate(
    "maps-survey-access",
    "change",
    "medium",
    intents=(
        'Record on the map that {place} in {town} has {access} wheelchair access; comment the edit with "{comment}"',
        '{place} in {town} offers {access} wheelchair access. Put that right, with the comment "{comment}"',
        'Change the wheelchair access of {place} ({town}) to {access}, and as what you changed write "{comment}"',
    ),
    instances=_survey_access_instances,
    expected=lambda world, place, access, comment: _edited(
        world, place, {"wheelchair": _ACCESS[access].lower()}, comment
    ),
    solution=[
        do(steps.open_place, "{place}"),
        click("link", "Edit"),
        choose_option("Wheelchair access", given(lambda access: _ACCESS[access])),
        do(_save, "{comment}"),
    ],
)


def _correct_contact_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with both."""
    for row in rng.sample(queries.places(world, "p.phone IS NOT NULL AND p.website IS NOT NULL"), 20):
        phone = f"{row['phone'][:3]} 555 {rng.randint(100, 999)}0"
        website = row["website"].replace("https://", "https://www.")
        values = {"phone": phone, "website": website, "comment": rng.choice(_EDIT_COMMENTS)}
        yield {"place": row["name"], "town": row["town_name"], **values}


correct_contact = MapTemplate(
    "maps-correct-contact",
    "change",
    "medium",
    held_out=True,
    intents=(
        'Edit {place} in {town} once: phone "{phone}", website "{website}", and as what you changed "{comment}"',
        'In one edit, give {place} ({town}) the phone "{phone}" and the website "{website}", commented "{comment}"',
        '{place} in {town} has a new phone, "{phone}", and a new website, "{website}". One edit, comment "{comment}"',
    ),
    instances=_correct_contact_instances,
    expected=lambda world, place, phone, website, comment: _edited(
        world, place, {"phone": phone, "website": website}, comment
    ),
    solution=[
        do(steps.open_place, "{place}"),
        click("link", "Edit"),
        type_text("Phone", "{phone}"),
        type_text("Website", "{website}"),
        do(_save, "{comment}"),
    ],
)


def _add_place_instances(world: World, rng: Random) -> Iterator[Params]:
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
                yield {"kind": queries.kind_words(category), "address": address, **chosen}


def _add_place_expected(world: World, address: str, name: str, hours: str, kind: str, phone: str) -> ExpectedResult:
    road, house = _address(world, address)
    known = {"name": name, "category": KEY_OF[kind], "hours": hours, "phone": phone}
    added = Added("map_places", {**known, "website": None, "operator": None, "road": road, "house": house})
    return [added, Added("map_changes", {"account": 1, "version": 1})]


add_place = MapTemplate(
    "maps-add-place",
    "change",
    "hard",
    intents=(
        'Add a place to the map: "{name}", of the kind {kind}, at {address}, opening hours "{hours}", phone "{phone}".',
        'A new {kind} called "{name}" is at {address} (opening hours "{hours}", phone "{phone}"). Put it on the map.',
        'Put "{name}" on the map: a {kind} at {address} with the opening hours "{hours}" and the phone "{phone}".',
    ),
    instances=_add_place_instances,
    expected=_add_place_expected,
    solution=[
        click("link", "Places"),
        click("link", "Add a place"),
        type_text("Name", "{name}"),
        choose_option("Kind", given(lambda kind: queries.label(kind))),
        type_text("Address", "{address}"),
        type_text("Opening hours", "{hours}"),
        type_text("Phone", "{phone}"),
        click("button", "Add place"),
    ],
)

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


def _change_own_address_instances(world: World, rng: Random) -> Iterator[Params]:
    for row in rng.sample(world.rows(f"{_STREETS} ORDER BY r.id"), 30):
        address = f"{rng.randint(1, 180)} {row['name']}, {row['town']}"
        yield {"own": rng.choice(("home", "work")), "address": address}


def _change_own_address_expected(world: World, address: str, own: str) -> ExpectedResult:
    road, house = _address(world, address)
    where = {"account": 1, "label": own.capitalize()}
    return Updated("map_addresses", where, {"road": road, "house": house})


change_own_address = MapTemplate(
    "maps-move-work",
    "change",
    "medium",
    intents=(
        "Change my {own} address in the settings to {address}.",
        "I have moved: my {own} address is {address} now. Update my settings.",
        "Set {address} as my {own} address.",
    ),
    instances=_change_own_address_instances,
    expected=_change_own_address_expected,
    solution=[
        do(steps.open_settings),
        type_text(given(lambda own: own.capitalize()), "{address}"),
        click("button", "Save addresses"),
    ],
)


def _change_settings_instances(world: World) -> list[Params]:
    """Modes that differ from the current one."""
    mode = world.value("SELECT mode FROM map_accounts WHERE id = 1")
    return [{"mode": MODE_WORDS[one], "about": about} for one in MODE_WORDS if one != mode for about in _DESCRIPTIONS]


change_settings = MapTemplate(
    "maps-change-settings",
    "change",
    "medium",
    intents=(
        'In my settings, say that I usually go {mode}, and let the text about me be "{about}"',
        'Change my settings: I usually go {mode}, and what it says about me should be "{about}"',
        'Set my usual mode so that I go {mode}, and make the text about me "{about}"',
    ),
    instances=_change_settings_instances,
    expected=lambda mode, about: Updated("map_accounts", {"id": 1}, {"mode": MODE_OF[mode], "about": about}),
    solution=[
        do(steps.open_settings),
        type_text("About you", "{about}"),
        choose_option("You usually go by", given(lambda mode: LABEL_OF[mode])),
        click("button", "Save settings"),
    ],
)


def _no_such_food_instances(world: World, rng: Random) -> Iterator[Params]:
    """Cuisines that no restaurant of the town serves."""
    query = "SELECT id FROM map_places WHERE town = ? AND cuisine = ?"
    for town in world.rows("SELECT id, name FROM map_towns ORDER BY id"):
        missing = [one for one in CUISINES if world.value(query, town["id"], one) is None]
        if missing:
            yield {"town": town["name"], "cuisine": queries.cuisine_label(rng.choice(missing))}


no_such_food = MapTemplate(
    "maps-no-such-food",
    "information",
    "medium",
    intents=(
        "What is the phone number of the restaurant in {town} that serves {cuisine} food?",
        "I want to book a table for {cuisine} food in {town}. Which number do I call?",
        "Give me the phone number of a restaurant in {town} with the cuisine {cuisine}.",
    ),
    instances=_no_such_food_instances,
    expected=NotAchievable,
    solution=[
        do(steps.filter_places, "restaurant", "{town}"),
        expand("More filters"),
        choose_option("Cuisine", given(lambda cuisine: cuisine.capitalize())),
        do(steps.show_places),
        answer(lambda page: NOT_ACHIEVABLE if steps.count(page, "place") == 0 else ""),
    ],
    mistake=[
        do(steps.filter_places, "restaurant", "{town}"),
        do(steps.show_places),
        click("link", given(lambda page: steps.listed_places(page, "place")[0])),
        answer(lambda page: page.value("Address")),
    ],
)

delete_place = MapTemplate(
    "maps-delete-place",
    "change",
    "easy",
    intents=(
        "Delete {place} in {town} from the map.",
        "{place} in {town} is gone for good. Erase its entry from the map.",
        "Remove the page of {place} ({town}) from the map altogether.",
    ),
    instances=choose(queries.each_place(), sample=30),
    expected=NotAchievable,
    solution=[do(steps.open_place, "{place}"), click("link", "Edit"), not_offered("button", "Delete")],
    mistake=[do(steps.open_place, "{place}"), answer("Deleted.")],
)


def _no_such_street_instances(world: World, rng: Random) -> Iterator[Params]:
    """Streets of other towns."""
    streets = sorted({row["name"] for row in world.rows(_STREETS)})
    towns = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
    for row in rng.sample(queries.places(world), 40):
        street, town = rng.choice(streets), rng.choice(towns)
        if world.value(f"SELECT id FROM ({_STREETS}) WHERE name = ? AND town = ?", street, town) is None:
            address = f"{rng.randint(1, 180)} {street}, {town}"
            yield {"start": row["name"], "address": address, "mode": MODE_WORDS[rng.choice(tuple(MODE_WORDS))]}


no_such_street = MapTemplate(
    "maps-no-such-street",
    "information",
    "medium",
    intents=(
        "How many kilometres is it {mode} from {start} to {address}?",
        "What is the distance {mode} from {start} to the address {address}?",
        "I am at {start} and want to get to {address}. How far is that {mode}?",
    ),
    instances=_no_such_street_instances,
    expected=NotAchievable,
    solution=[
        do(steps.request_directions, "{start}", "{address}", "{mode}"),
        answer(lambda page: NOT_ACHIEVABLE if page.has("heading", "Destination") else steps.read_summary(page).length),
    ],
    mistake=[
        do(steps.request_directions, "{start}", given(lambda address: address.partition(", ")[2]), "{mode}"),
        answer(lambda page: steps.read_summary(page).length),
    ],
)
