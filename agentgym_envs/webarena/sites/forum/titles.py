"""Invented titles of books, films and games."""

from __future__ import annotations

import random

from agentgym_envs.webarena.sites.words import words

_QUALITIES = words(
    "Salt Hollow Patient Seventh Borrowed Silent Crooked Amber Winter Drowned Paper Distant Unwritten Narrow Gentle "
    "Burning Forgotten Second Blue Restless Empty Wooden Copper Invisible"
)
_NOUNS = words(
    "Orchard Ferry Lighthouse Clockmaker Garden Letter Harbour Winter Archive Orchestra Cartographer Well Bridge "
    "Daughter Stairway Beekeeper Island Mirror Station Gardener Tide Kitchen Meadow Piano Lantern Surgeon Quarry"
)
_LOOSE = words(
    "Ashes Rain Bread Silence Thunder Sugar Iron Feathers Dust Honey Smoke Glass Snow Copper Moss Salt Wool Ink"
)
_BOOKS = (
    "The {quality} {noun}",
    "The {noun} of {place}",
    "{loose} and {loose2}",
    "What the {noun} Knew",
    "A {noun} for {first}",
    "All the {loose} in {place}",
    "The {noun}'s Daughter",
    "{first} and the {quality} {noun}",
)
_FILMS = (
    "The {quality} {noun}",
    "{loose} over {place}",
    "Last Train to {place}",
    "{first}",
    "Two Days of {loose}",
    "The {noun} and the {noun2}",
    "Goodbye, {first}",
)
_GAMES = (
    "{loose} & {loose2}",
    "{noun}s of {place}",
    "The {quality} {noun}",
    "Mayor of {place}",
    "{place}",
    "Dukes and {noun}s",
    "{loose} Express",
)
_FIRST = words(
    "Ada Bruna Corin Delia Emrys Fenna Gilda Hedda Ilka Jory Kasimir Lorna Malin Nestor Odile Perrin Runa Tilda"
)
_LAST = words(
    "Arkwell Brandreth Caldecott Dorn Eskdale Fenwright Garrow Hollis Ingleby Kestner Lowther Marrable Ostrander"
)
_PLACES = words("Avermouth Belgarde Corran Dunwater Eskerly Farrowby Greyholm Hallowmere Ilvermere Karst Lorne Vessel")


def invented(rng: random.Random, kind: str, count: int = 24) -> tuple[str, ...]:
    """Return `count` different titles: books with an author, films with a year, or games."""
    titles: dict[str, str] = {}
    while len(titles) < count:
        title = rng.choice({"book": _BOOKS, "film": _FILMS, "game": _GAMES}[kind]).format_map(_parts(rng))
        titles.setdefault(title, _credited(rng, kind, title))
    return tuple(titles.values())


def _parts(rng: random.Random) -> dict[str, str]:
    (noun, noun2), (loose, loose2) = rng.sample(_NOUNS, 2), rng.sample(_LOOSE, 2)
    return {
        "quality": rng.choice(_QUALITIES),
        "noun": noun,
        "noun2": noun2,
        "loose": loose,
        "loose2": loose2,
        "first": rng.choice(_FIRST),
        "place": rng.choice(_PLACES),
    }


def _credited(rng: random.Random, kind: str, title: str) -> str:
    if kind == "book":
        return f"{title} by {rng.choice(_FIRST)} {rng.choice(_LAST)}"
    return f"{title} ({rng.randint(1948, 2024)})" if kind == "film" else title
