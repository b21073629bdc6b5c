"""Articles about the invented country of a world, from its map, its shop and its lore."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator

from agentgym_envs.webarena.sites.encyclopedia import wordlists
from agentgym_envs.webarena.sites.encyclopedia.articles import Article, ArticleSection, joined
from agentgym_envs.webarena.sites.encyclopedia.lore import HistoricPerson, Landmark, Lore, Maker, lore
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.world import World

_SIDES = ((0.34, "west"), (0.67, "middle"), (1.01, "east"))
_NEAR = 4
_TOWNS = "SELECT t.*, r.name AS region_name FROM map_towns t JOIN map_regions r ON r.id = t.region ORDER BY t.id"


def invented_articles(world: World) -> Iterator[Article]:
    """Yield all articles about the country of a world."""
    land = world.rows("SELECT * FROM map_country")[0]
    country = str(land["name"])
    known = lore(world)
    towns = world.rows(_TOWNS)
    yield _country_article(land, towns)
    yield from _region_articles(world, country, towns)
    yield from (_town_article(country, town, towns, known) for town in towns)
    yield from (_person_article(country, person, known) for person in known.people)
    yield from (_landmark_article(country, landmark) for landmark in known.landmarks)
    yield from (_maker_article(country, maker) for maker in known.makers)


def _country_article(land: sqlite3.Row, towns: list[sqlite3.Row]) -> Article:
    country = land["name"]
    people = sum(town["population"] for town in towns)
    regions = list(dict.fromkeys(town["region_name"] for town in towns))
    capital = towns[0]["name"]
    lead = (
        f"{country} is a country with {len(regions)} regions and {len(towns)} towns. Its capital and largest town is "
        f"{capital}. About {people:,} people live in its towns."
    )
    largest = tuple((town["name"], f"{town['population']:,} inhabitants, {town['region_name']}") for town in towns[:10])
    facts = (("Capital", capital), ("Regions", str(len(regions))), ("Towns", str(len(towns))))
    geography = (
        f"{country} measures {land['width']:.0f} km from west to east and {land['height']:.0f} km from north to south. "
        f"The regions are {joined(regions)}."
    )
    sections = (
        ArticleSection("Geography", (geography,)),
        ArticleSection("Largest towns", (), largest),
        ArticleSection("Transport", ("State Railways connects the larger towns; motorways meet near the capital.",)),
    )
    return Article(country, "Country", (lead,), (*facts, ("People in towns", f"{people:,}")), sections, (country,))


def _side(town: sqlite3.Row) -> str:
    return next(side for limit, side in _SIDES if town["x"] / 420 < limit)


def _region_articles(world: World, country: str, towns: list[sqlite3.Row]) -> Iterator[Article]:
    for row in world.rows("SELECT r.*, t.name AS seat_name FROM map_regions r JOIN map_towns t ON t.id = r.seat"):
        own = [town for town in towns if town["region"] == row["id"]]
        people = sum(town["population"] for town in own)
        lead = f"{row['name']} is a region of {country}. It is administered from {row['seat_name']}."
        entries = tuple((town["name"], f"{town['population']:,} inhabitants") for town in own)
        facts = (("Seat", row["seat_name"]), ("Towns", str(len(own))), ("People in towns", f"{people:,}"))
        section = ArticleSection("Towns", (), entries)
        category = f"Regions of {country}"
        yield Article(row["name"], f"Region of {country}", (lead,), facts, (section,), (category,))


def _town_article(country: str, town: sqlite3.Row, towns: list[sqlite3.Row], known: Lore) -> Article:
    name, region, year = town["name"], town["region_name"], known.first_named[town["name"]]
    lead = (
        f"{name} is a town in {region}, in the {_side(town)} of {country}. It has {town['population']:,} inhabitants."
    )
    facts = (
        ("Region", region),
        ("Population", f"{town['population']:,}"),
        ("Elevation", f"{town['elevation']} m"),
        ("First named", str(year)),
    )
    sections = [
        ArticleSection("History", _town_history(town, year)),
        ArticleSection("Geography", (_town_geography(town, towns),)),
        *_town_economy(name, known),
        *_town_buildings(name, known),
        ArticleSection("People from the town", (), tuple(_natives(name, known))),
    ]
    kept = tuple(section for section in sections if section.paragraphs or section.entries)
    return Article(name, f"Town in {region}", (lead,), facts, kept, (f"Towns of {country}", region))


def _town_history(town: sqlite3.Row, year: int) -> tuple[str, ...]:
    rng = random.Random(f"history/{town['name']}/{year}")
    market, fire, railway = year + rng.randint(40, 160), rng.randint(1540, 1760), rng.randint(1846, 1899)
    trade = rng.choice(("wool", "salt", "timber", "grain", "pottery", "leather"))
    return (
        f"A charter of {year} is the first document to name {town['name']}. The town received the right to hold a "
        f"market in {market} and lived from {trade} for centuries.",
        f"A fire destroyed half of the houses in {fire}. The railway arrived in {railway}, and the town grew beyond "
        f"its walls, most of which were taken down {rng.randint(2, 19)} years later.",
    )


def _town_geography(town: sqlite3.Row, towns: list[sqlite3.Row]) -> str:
    others = [one for one in towns if one["id"] != town["id"]]
    near = sorted(others, key=lambda one: (one["x"] - town["x"]) ** 2 + (one["y"] - town["y"]) ** 2)[:_NEAR]
    names = joined([one["name"] for one in near])
    return f"{town['name']} lies {town['elevation']} m above sea level. The nearest towns are {names}."


def _town_economy(name: str, known: Lore) -> Iterator[ArticleSection]:
    makers = [maker for maker in known.makers if maker.town == name]
    if makers:
        entries = tuple((maker.brand, f"since {maker.year}: {joined(maker.goods)}") for maker in makers)
        yield ArticleSection("Companies", (), entries)


def _town_buildings(name: str, known: Lore) -> Iterator[ArticleSection]:
    found = [landmark for landmark in known.landmarks if landmark.town == name]
    if found:
        entries = tuple((one.name, f"{_kind(one)} by {one.architect.name}, {one.year}") for one in found)
        yield ArticleSection("Buildings", (), entries)


def _kind(landmark: Landmark) -> str:
    return CATEGORIES[landmark.category].label.lower()


def _natives(name: str, known: Lore) -> Iterator[tuple[str, str]]:
    born = sorted((one for one in known.people if one.birthplace == name), key=lambda one: one.born)
    yield from ((one.name, f"({one.years}), {one.trade}") for one in born)


def _person_article(country: str, person: HistoricPerson, known: Lore) -> Article:
    he = "She" if person.woman else "He"
    trade = _with_article(person.trade)
    lead = f"{person.name} ({person.born} – {person.died}) was {trade} from {country}.{_known_for(person, he, known)}"
    facts = (
        ("Born", f"{person.born}, {person.birthplace}"),
        ("Died", f"{person.died}, {person.deathplace}"),
        ("Occupation", person.trade),
    )
    sections = [
        ArticleSection("Early life", _early_life(person, he)),
        ArticleSection("Career", _career(person, he)),
        ArticleSection("Works", (), tuple((title, str(year)) for title, year in person.works)),
        ArticleSection("Buildings", (), tuple(_buildings(person, known))),
        ArticleSection("Later years", (_later_years(person, he),)),
    ]
    kept = tuple(section for section in sections if section.paragraphs or section.entries)
    categories = (f"{person.trade.capitalize()}s", f"People from {person.birthplace}")
    return Article(person.name, f"{person.trade.capitalize()}, {person.years}", (lead,), facts, kept, categories)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _known_for(person: HistoricPerson, he: str, known: Lore) -> str:
    companies = [maker.brand for maker in known.makers if maker.founder == person]
    buildings = [one.name for one in known.landmarks if one.architect == person]
    if companies:
        return f" {he} founded {companies[0]}."
    if buildings:
        return f" {he} designed {buildings[0]}."
    return f" {he} is best known for “{person.works[0][0]}”." if person.works else ""


def _early_life(person: HistoricPerson, he: str) -> tuple[str, ...]:
    rng = random.Random(f"youth/{person.name}/{person.born}")
    age, his = rng.randint(3, 11), "her" if person.woman else "his"
    school = rng.choice(("a grammar school", "the school of a convent", "a private school", "the town's school"))
    return (
        f"{person.name} was born in {person.birthplace} on {person.born}, the {person.child} child of "
        f"{person.parents}. When {he.lower()} was {age}, the family moved to {person.raised}, where {he.lower()} went "
        f"to {school}. {he} wrote later that {person.raised} had been {his} true home.",
    )


def _career(person: HistoricPerson, he: str) -> tuple[str, ...]:
    rng = random.Random(f"career/{person.name}/{person.born}")
    begin = person.born.year + rng.randint(17, 23)
    subject = wordlists.TRADES.get(person.trade, ("", "drawing and arithmetic"))[1]
    text = f"In {begin}, {he.lower()} began to study {subject}. {he} spent {rng.randint(2, 6)} years in {person.abroad}"
    text += f" and returned in {begin + rng.randint(7, 10)}."
    if person.trade == "chemist":
        text += f" Most of {'her' if person.woman else 'his'} work was on {rng.choice(wordlists.ELEMENTS)}."
    return (text,)


def _buildings(person: HistoricPerson, known: Lore) -> Iterator[tuple[str, str]]:
    own = sorted((one for one in known.landmarks if one.architect == person), key=lambda one: one.year)
    yield from ((one.name, f"{_kind(one)} in {one.town}, {one.year}") for one in own)


def _later_years(person: HistoricPerson, he: str) -> str:
    age = person.died.year - person.born.year - (person.died[1:] < person.born[1:])
    return f"{he} moved to {person.deathplace} in old age and died there on {person.died}, aged {age}."


def _landmark_article(country: str, landmark: Landmark) -> Article:
    kind, architect = _kind(landmark), landmark.architect
    done = "restored" if landmark.category == "castle" else "designed"
    opened = "reopened" if landmark.category == "castle" else "opened"
    lead = (
        f"{landmark.name} is a {kind} in {landmark.town}, {country}. It was {done} by the architect {architect.name}."
    )
    rng = random.Random(f"landmark/{landmark.name}/{landmark.year}")
    cost, years = rng.randint(40, 900), rng.randint(2, 7)
    history = (
        f"The council of {landmark.town} decided on the building in {landmark.year - years}. {architect.name} was "
        f"chosen among {rng.randint(4, 31)} architects. It {opened} in {landmark.year}, after {years} years of work "
        f"that cost {cost},000 crowns."
    )
    facts = (
        ("Kind", kind),
        ("Town", landmark.town),
        ("Architect", architect.name),
        (opened.capitalize(), str(landmark.year)),
    )
    plural = CATEGORIES[landmark.category].plural
    categories = (f"{plural} in {country}",)
    section = ArticleSection("History", (history,))
    return Article(landmark.name, f"{kind.capitalize()} in {landmark.town}", (lead,), facts, (section,), categories)


def _maker_article(country: str, maker: Maker) -> Article:
    rng = random.Random(f"maker/{maker.brand}/{maker.year}")
    lead = (
        f"{maker.brand} is a company in {maker.town}, {country}. {maker.founder.name} founded it in {maker.year}. It "
        f"is known for {joined([one.lower() for one in maker.goods])}."
    )
    workers, moved = rng.randint(3, 14), maker.year + rng.randint(4, 30)
    history = (
        f"{maker.founder.name} began with {workers} workers in a yard behind a bakery. The company moved to larger "
        f"halls in {moved} and was the first in {country} to number every piece it made."
    )
    facts = (("Founded", str(maker.year)), ("Founder", maker.founder.name), ("Seat", maker.town))
    sections = (
        ArticleSection("History", (history,)),
        ArticleSection("Goods", (), tuple((one, "") for one in maker.goods)),
    )
    category = f"Companies of {country}"
    return Article(maker.brand, f"Company in {maker.town}", (lead,), facts, sections, (category,))
