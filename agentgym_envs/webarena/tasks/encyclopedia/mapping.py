"""Tasks from the encyclopedia to the map: birthplaces and museums."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.encyclopedia.lore import HistoricPerson, Landmark, Lore, lore
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.encyclopedia.steps import linked, open_article, post_added, post_in_forum
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries as map_queries
from agentgym_envs.webarena.tasks.maps import steps as map_steps
from agentgym_envs.webarena.tasks.multi_site import open_on_map
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import do
from agentgym_envs.webarena.tasks.template import Params, Template

_POST_TITLES = ("How far is that?", "A trip for the history club", "Distance for our next outing", "For the quiz")


def _person(world: World, name: str) -> HistoricPerson:
    return next(one for one in lore(world).people if one.name == name)


def _people(world: World) -> list[Params]:
    return [{"person": one.name} for one in lore(world).people]


def _town(world: World, name: str) -> int:
    return int(world.value("SELECT id FROM map_towns WHERE name = ?", name))


def _museums(known: Lore) -> dict[str, Landmark]:
    """Return the museum of each architect who designed one."""
    return {one.architect.name: one for one in known.landmarks if one.category == "museum"}


def museum(world: World, architect: str) -> Landmark:
    """Return the museum that an architect designed."""
    return _museums(lore(world))[architect]


def museum_on_page(page: PageReader) -> str:
    """Return the museum in the list of an architect's buildings."""
    texts = page.texts()
    return texts[next(index for index, text in enumerate(texts) if text.startswith("museum in")) - 1]


def open_town(page: PageReader, person: str, label: str) -> Steps[str]:
    """Open the map's page of a town in a person's facts, and return its name."""
    yield from open_article(page, person)
    town = linked(page, label)
    yield from open_on_map(page, town)
    return town


birthplace_on_map = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-birthplace-on-map",
    "navigation",
    "medium",
    since=2,
    intents=(
        "Show me the birthplace of {person} on the map: open the map's page of that town.",
        "In which town was {person} born, according to the encyclopedia? Open that town on the map.",
        "Look up where {person} was born and bring me to the page of that town on the map.",
    ),
    instances=choose(_people, sample=40),
    expected=lambda world, person: EndsOn(f"{ORIGINS['maps']}/town/{_town(world, _person(world, person).birthplace)}"),
    solution=[do(open_town, "{person}", "Born")],
    mistake=[do(open_town, "{person}", "Died")],
)


def _postcode(world: World, person: str) -> Says:
    town = _person(world, person).birthplace
    codes = {row["name"]: row["zip"] for row in world.rows("SELECT name, zip FROM map_towns")}
    return says(codes[town], others=[code for name, code in codes.items() if name != town])


def read_postcode(page: PageReader, person: str, label: str) -> Steps[str]:
    """Read the postcode of a town in a person's facts."""
    yield from open_town(page, person, label)
    return page.value("Postcode")


birthplace_postcode = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-birthplace-postcode",
    "information",
    "medium",
    since=2,
    intents=(
        "What is the postcode of the town in which {person} was born?",
        "{person} has an article in the encyclopedia. Which postcode does the map give for the place of birth?",
        "Tell me the postcode of the birthplace of {person}.",
    ),
    instances=choose(_people, sample=40),
    expected=_postcode,
    solution=lambda page, person: read_postcode(page, person, "Born"),
    mistake=lambda page, person: read_postcode(page, person, "Died"),
)


def _pairs(world: World, rng: Random) -> Iterator[Params]:
    """Yield pairs of people from different towns."""
    people = lore(world).people
    for _ in range(40):
        first, second = rng.sample(people, 2)
        if first.birthplace != second.birthplace:
            yield {"first": first.name, "second": second.name}


def _kilometres(world: World, first: str, second: str) -> str:
    towns = (_person(world, first).birthplace, _person(world, second).birthplace)
    return f"{map_queries.kilometres(map_queries.route_between_towns(world, 'car', *towns)):,.1f} km"


def measure(page: PageReader, first: str, second: str, label: str = "Born") -> Steps[str]:
    """Read the length of the way by car between the birthplaces of two people."""
    yield from open_article(page, first)
    start = linked(page, "Born")
    yield from open_article(page, second)
    end = linked(page, label)
    yield page.goto(f"{ORIGINS['maps']}/")
    yield from map_steps.request_directions(page, start, end, "by car")
    return map_steps.read_summary(page).length


birthplaces_apart = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-birthplaces-apart",
    "information",
    "medium",
    since=2,
    intents=(
        "How many kilometres is it by car from the birthplace of {first} to the birthplace of {second}?",
        "{first} and {second} were born in different towns. How many kilometres is it by car from the town of {first} "
        "to that of {second}?",
        "Find out where {first} and {second} were born. What distance in kilometres does the map give from the one "
        "town to the other, by car?",
    ),
    instances=_pairs,
    expected=lambda world, first, second: says(_kilometres(world, first, second)),
    solution=measure,
    mistake=lambda page, first, second: measure(page, first, second, "Died"),
)

distance_in_post = Template(
    "maps",
    ("encyclopedia", "maps", "forum"),
    "encyclopedia-distance-in-post",
    "change",
    "hard",
    since=2,
    held_out=True,
    intents=(
        'Write a post titled "{title}" on the forum board {board}. Its text is only the distance by car between the '
        "birthplaces of {first} and {second} as the map gives it, from the first to the second, such as 85.3 km.",
        'On the board {board} of the forum, post under the title "{title}" how far it is by car from the birthplace of '
        "{first} to that of {second}: nothing but the map's distance, in the form 85.3 km.",
        "Find the towns in which {first} and {second} were born, and the map's distance by car from the one to the "
        'other. Post only that (like 85.3 km) on {board} in the forum, titled "{title}".',
    ),
    instances=choose(_pairs, board=forum_queries.boards, title=_POST_TITLES),
    expected=lambda world, board, title, first, second: post_added(
        world, board, title, _kilometres(world, first, second)
    ),
    solution=lambda page, first, second, board, title: _measure_and_post(page, first, second, board, title, "Born"),
    mistake=lambda page, first, second, board, title: _measure_and_post(page, first, second, board, title, "Died"),
)


def _measure_and_post(page: PageReader, first: str, second: str, board: str, title: str, label: str) -> Steps[None]:
    length = yield from measure(page, first, second, label)
    yield from post_in_forum(page, board, title, length)


def _architects(world: World) -> list[Params]:
    """Return architects whose museum is on none of the agent's lists."""
    saved = {row["place"] for row in world.rows("SELECT place FROM map_saved")}
    return [{"architect": name} for name, one in _museums(lore(world)).items() if one.place not in saved]


def save_museum(page: PageReader, architect: str, list: str) -> Steps[None]:
    """Save the museum by an architect to a list of the map."""
    yield from open_article(page, architect)
    yield from open_on_map(page, museum_on_page(page))
    if page.find("combobox", "List").properties.get("value") != list:
        yield page.choose("List", list)
    yield page.click("button", "Save to list")


museum_to_list = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-museum-to-list",
    "change",
    "medium",
    since=2,
    intents=(
        'Put the museum that {architect} designed on my list "{list}" of the map.',
        'Which museum did {architect} design? Save it to my list "{list}" on the map, without a note.',
        'My list "{list}" on the map should also have the museum by the architect {architect}.',
    ),
    instances=choose(_architects, list=map_queries.own_lists),
    expected=lambda world, architect, list: Added(
        "map_saved", {"list": map_queries.own_list(world, list), "place": museum(world, architect).place, "note": ""}
    ),
    solution=save_museum,
)


def _year_reported(world: World, architect: str) -> list[Expected]:
    found = museum(world, architect)
    comment = {"account": 1, "action": "opened", "text": f"Opened in {found.year}"}
    note = {"place": found.place, "status": "open"}
    return [Added("map_notes", note), Added("map_note_comments", comment)]


def report_year(page: PageReader, architect: str) -> Steps[None]:
    """Report the year of the museum by an architect on the map."""
    yield from open_article(page, architect)
    name = museum_on_page(page)
    yield page.click("link", name)
    year = page.value("Opened")
    yield from open_on_map(page, name)
    yield from map_steps.report_problem(page, f"Opened in {year}")


museum_year_note = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-museum-year-note",
    "change",
    "hard",
    since=2,
    intents=(
        "The map should say when the museum by {architect} opened. Report a problem at that museum, with exactly the "
        'words "Opened in" and the year that the encyclopedia gives.',
        "Find the museum that {architect} designed and the year in which it opened. Add a note about the museum to the "
        'map that says only "Opened in YEAR", with that year.',
        'Leave a note on the map at the museum designed by {architect}: "Opened in", and then the year in which it '
        "opened, and nothing else.",
    ),
    instances=lambda world: [{"architect": name} for name in _museums(lore(world))],
    expected=_year_reported,
    solution=report_year,
)


def _phones(world: World) -> list[Params]:
    """Return architects whose museum has a telephone number."""
    known = {row["id"] for row in world.rows("SELECT id FROM map_places WHERE phone IS NOT NULL")}
    return [{"architect": name} for name, one in _museums(lore(world)).items() if one.place in known]


def post_phone(page: PageReader, architect: str, board: str) -> Steps[None]:
    """Post the phone number of the museum by an architect in the forum."""
    yield from open_article(page, architect)
    name = museum_on_page(page)
    yield from open_on_map(page, name)
    yield from post_in_forum(page, board, name, page.value("Phone"))


def _phone_posted(world: World, architect: str, board: str) -> Added:
    found = museum(world, architect)
    phone = world.value("SELECT phone FROM map_places WHERE id = ?", found.place)
    return post_added(world, board, found.name, phone)


museum_phone_post = Template(
    "maps",
    ("encyclopedia", "maps", "forum"),
    "encyclopedia-museum-phone-post",
    "change",
    "hard",
    since=2,
    intents=(
        "Which museum did {architect} design? Write a post on the forum board {board}: its title is the name of the "
        "museum, its text only the phone number that the map gives for it.",
        "Post on the board {board} of the forum. Title: the museum by the architect {architect}. Text: the telephone "
        "number of that museum on the map, and nothing more.",
        "People on {board} in the forum ask how to reach the museum that {architect} designed. Post its phone number "
        "from the map, alone, under the name of the museum as the title.",
    ),
    instances=choose(_phones, board=forum_queries.boards),
    expected=_phone_posted,
    solution=post_phone,
)
