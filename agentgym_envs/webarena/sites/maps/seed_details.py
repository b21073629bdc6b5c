"""Details of places in the style of OpenStreetMap, such as opening hours, contact data and facilities."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from agentgym_envs.webarena.sites.country import Town

_DAY = ("Mo-Fr 09:00-18:00; Sa 09:00-13:00", "Mo-Fr 08:30-18:30; Sa 09:00-16:00", "Tu-Sa 10:00-18:00")
_SHOP = ("Mo-Sa 10:00-19:00", "Mo-Fr 10:00-18:30; Sa 10:00-17:00", "Tu-Fr 10:00-18:00; Sa 10:00-15:00")
_TABLE = (
    "Tu-Su 12:00-22:30",
    "Mo-Su 11:30-23:00",
    "We-Mo 17:30-23:00",
    "Tu-Sa 18:00-23:30",
    "Mo-Fr 11:30-15:00; Mo-Sa 18:00-22:30",
    "Mo-Su 12:00-22:00",
    "Th-Tu 12:00-21:30",
)
_PRACTICE = ("Mo-Fr 08:00-17:00", "Mo-Th 08:00-18:00; Fr 08:00-13:00", "Mo-Fr 08:30-12:30; Mo,Tu,Th 14:00-18:00")
_HOURS: dict[str, tuple[str, ...]] = {
    "restaurant": _TABLE,
    "cafe": ("Mo-Su 08:00-18:00", "Tu-Su 09:00-18:00", "Mo-Fr 07:00-17:00; Sa 09:00-16:00", "We-Su 10:00-19:00"),
    "pub": ("Mo-Su 16:00-24:00", "Tu-Su 17:00-24:00", "Mo-Th 15:00-23:00; Fr-Su 12:00-24:00"),
    "fast_food": ("Mo-Su 11:00-22:00", "Mo-Sa 11:00-21:00", "Mo-Th 11:00-23:00; Fr-Su 11:00-24:00"),
    "bakery": ("Mo-Sa 06:30-18:00", "Mo-Fr 06:00-18:00; Sa 06:00-13:00; Su 08:00-11:00", "Tu-Su 07:00-14:00"),
    "hotel": ("24/7",),
    "museum": ("Tu-Su 10:00-17:00", "We-Su 10:00-18:00", "Tu-Su 10:00-18:00; Th 10:00-21:00", "Mo-Sa 09:30-16:30"),
    "gallery": ("We-Sa 12:00-18:00", "Tu-Fr 11:00-18:00; Sa 11:00-16:00"),
    "theatre": ("Tu-Sa 16:00-22:00",),
    "cinema": ("Mo-Su 14:00-24:00", "Mo-Fr 16:00-23:30; Sa-Su 12:00-24:00"),
    "library": ("Mo-Fr 10:00-19:00; Sa 10:00-14:00", "Tu-Fr 09:30-18:00; Sa 09:30-13:00", "Mo-Sa 09:00-20:00"),
    "castle": ("Tu-Su 10:00-17:00", "We-Su 11:00-16:00"),
    "pharmacy": ("Mo-Fr 08:30-18:30; Sa 09:00-13:00", "Mo-Sa 08:00-20:00", "24/7", "Mo-Fr 09:00-18:00"),
    "hospital": ("24/7",),
    "doctors": _PRACTICE,
    "dentist": _PRACTICE,
    "veterinary": _PRACTICE,
    "town_hall": ("Mo-Fr 08:00-16:00", "Mo-Th 08:30-16:30; Fr 08:30-12:30"),
    "post_office": ("Mo-Fr 09:00-17:30; Sa 09:00-12:00", "Mo-Fr 08:30-18:00"),
    "police": ("24/7",),
    "bank": ("Mo-Fr 09:00-16:00", "Mo-Fr 09:30-17:00", "Mo-We,Fr 09:00-16:00; Th 09:00-18:00"),
    "supermarket": ("Mo-Sa 07:00-22:00", "Mo-Sa 08:00-21:00; Su 10:00-18:00", "Mo-Sa 08:00-20:00"),
    "convenience": ("Mo-Su 07:00-23:00", "Mo-Su 06:00-24:00", "24/7"),
    "bookshop": _SHOP,
    "clothes": _SHOP,
    "hardware": _DAY,
    "florist": _DAY,
    "bicycle_shop": _SHOP,
    "hairdresser": ("Tu-Fr 09:00-18:00; Sa 08:00-14:00", "Tu-Sa 09:00-18:30", "Mo-Fr 10:00-20:00"),
    "marketplace": ("We,Sa 07:00-13:00", "Tu,Fr 08:00-14:00", "Mo-Sa 08:00-18:00"),
    "swimming_pool": ("Mo-Fr 06:30-21:00; Sa-Su 09:00-19:00", "Tu-Su 10:00-20:00"),
    "sports_centre": ("Mo-Su 07:00-22:00", "Mo-Fr 08:00-22:00; Sa-Su 09:00-18:00"),
    "fuel": ("24/7", "Mo-Su 06:00-22:00", "Mo-Sa 06:00-21:00; Su 08:00-20:00"),
    "charging_station": ("24/7",),
    "parking": ("24/7", "24/7", "Mo-Sa 06:00-23:00"),
    "bicycle_rental": ("24/7",),
    "services": ("24/7",),
}
_ROOMS = {"hotel": (14, 240), "hostel": (20, 130), "guest_house": (4, 14), "campsite": (25, 180)}
_SIZES = _ROOMS | {"hospital": (60, 640), "cinema": (90, 900), "theatre": (120, 1100), "parking": (20, 620)}
_SIZES |= {"charging_station": (2, 16), "bicycle_rental": (6, 40), "school": (90, 900), "university": (1200, 21_000)}
_FEES = {"museum": (400, 1600, 6), "castle": (500, 1400, 1), "swimming_pool": (300, 900, 1), "campsite": (900, 2600, 1)}
"""Minimum and maximum entry fee in cents, and n, where one in n places is free (1: none is free)."""
_PHONELESS = ("park", "peak", "viewpoint", "charging_station", "bicycle_rental", "parking")
_SITELESS = (*_PHONELESS, "fire_station", "police", "post_office", "marketplace")
_WIFI = (
    "cafe",
    "hotel",
    "hostel",
    "guest_house",
    "library",
    "restaurant",
    "pub",
    "university",
    "station",
    "airport",
    "services",
)
_OUTDOOR = ("cafe", "restaurant", "pub", "fast_food")


@dataclass(frozen=True, slots=True)
class Details:
    """Columns of `map_places` with the same names."""

    cuisine: str | None
    stars: int | None
    operator: str | None
    capacity: int | None
    elevation: int | None
    fee: str | None
    wheelchair: str | None
    internet: str | None
    outdoor: int | None
    hours: str | None
    phone: str | None
    website: str | None
    about: str | None


def details(
    rng: random.Random,
    category: str,
    name: str,
    town: Town,
    *,
    subject: str | None,
    cuisine: str | None,
    operator: str | None,
) -> Details:
    """Generate the details of a place. Some are missing, as on maps by volunteers."""
    stars = rng.choices((2, 3, 4, 5), (3, 6, 4, 1))[0] if category == "hotel" else None
    return Details(
        cuisine=cuisine,
        stars=stars,
        operator=operator,
        capacity=_capacity(rng, category, stars),
        elevation=rng.randint(310, 1480) if category == "peak" else None,
        fee=_fee(rng, category),
        wheelchair=rng.choices(("yes", "limited", "no", None), (6, 2, 2, 1))[0] if category != "peak" else None,
        internet=rng.choices(("wlan", "no"), (3, 1))[0] if category in _WIFI else None,
        outdoor=int(rng.random() < 0.5) if category in _OUTDOOR else None,
        hours=rng.choice(_HOURS[category]) if category in _HOURS else None,
        phone=None if category in _PHONELESS or rng.random() < 0.08 else _phone(rng, town),
        website=None if category in _SITELESS or rng.random() < 0.15 else _website(name),
        about=_about(rng, category, subject, town),
    )


def _capacity(rng: random.Random, category: str, stars: int | None) -> int | None:
    if category not in _SIZES:
        return None
    least, most = _SIZES[category]
    size: float = least + (most - least) * math.pow(rng.random(), 2.2) * (1 if stars is None else stars / 5)
    return 2 * round(size / 2) if size < 50 else round(size)


def _fee(rng: random.Random, category: str) -> str | None:
    if category == "parking":
        return rng.choice(("free", f"{rng.randrange(100, 420, 10) / 100:.2f} per hour"))
    if category == "charging_station":
        return f"0.{rng.randint(32, 79)} per kWh"
    if category not in _FEES:
        return None
    least, most, free = _FEES[category]
    if free > 1 and rng.random() < 1 / free:
        return "free"
    return f"{rng.randrange(least, most, 50) / 100:.2f}"


def _phone(rng: random.Random, town: Town) -> str:
    return f"0{town.zip[:2]} 555 {rng.randint(1000, 9999)}"


def _website(name: str) -> str:
    plain = name.lower().replace("é", "e").replace("ó", "o").replace("'", "")
    return f"https://{re.sub(r'[^a-z0-9]+', '-', plain).strip('-')}.example"


def _about(rng: random.Random, category: str, subject: str | None, town: Town) -> str | None:
    """Return a short description for visitors."""
    if category == "museum":
        year, house = rng.randint(1848, 2012), rng.choice(("a former granary", "the old customs house", "a tram depot"))
        return f"Shows {subject}. Opened in {year} in {house}."
    if category == "castle":
        century = rng.choice(("twelfth", "thirteenth", "fourteenth", "sixteenth"))
        left = rng.choice(("of which the keep still stands", "rebuilt after a fire", "with its moat and gardens"))
        return f"A castle of the {century} century, {left}."
    if category == "park":
        first, second = rng.sample(_PARK_THINGS, 2)
        return f"With {first} and {second}. Laid out in {rng.randint(1860, 1998)}."
    if category == "viewpoint":
        sight = rng.choice(("the whole valley", "the lake", f"the roofs of {town.name}", "three ranges of hills"))
        return f"From here one sees {sight}; {rng.choice(('best at sunset', 'a bench and a table', 'steps lead up'))}."
    return None


_PARK_THINGS = (
    "a duck pond",
    "a bandstand",
    "a playground",
    "a rose garden",
    "old beeches",
    "a fountain",
    "chess tables",
    "a kiosk that sells ice cream",
    "a skate ramp",
    "a herb garden",
    "a sundial",
    "tennis courts",
)
