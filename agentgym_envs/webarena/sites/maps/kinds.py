"""The categories of places, with their labels and colours."""

from __future__ import annotations

from typing import NamedTuple


class Category(NamedTuple):
    """A category of places. `glyph` is drawn on the marker. From zoom level `shown` on, every place has a marker."""

    label: str
    plural: str
    group: str
    glyph: str
    shown: int = 6


_ROWS = """
restaurant|Restaurant|Restaurants|Food|R
cafe|Café|Cafés|Food|C
pub|Pub|Pubs|Food|P
fast_food|Fast food|Fast food|Food|F
bakery|Bakery|Bakeries|Food|B
hotel|Hotel|Hotels|Stay|H
hostel|Hostel|Hostels|Stay|h
guest_house|Guest house|Guest houses|Stay|G
campsite|Campsite|Campsites|Stay|△|3
museum|Museum|Museums|Culture|M
gallery|Gallery|Galleries|Culture|g
theatre|Theatre|Theatres|Culture|T
cinema|Cinema|Cinemas|Culture|c
library|Library|Libraries|Culture|L
castle|Castle|Castles|Culture|♜|3
viewpoint|Viewpoint|Viewpoints|Nature|✶|3
peak|Peak|Peaks|Nature|▲|2
park|Park|Parks|Nature|♣|5
pharmacy|Pharmacy|Pharmacies|Health|+
hospital|Hospital|Hospitals|Health|H|5
doctors|Doctor's surgery|Doctors' surgeries|Health|D
dentist|Dentist|Dentists|Health|d
veterinary|Vet|Vets|Health|v
school|School|Schools|Services|s
university|University|Universities|Services|U|5
town_hall|Town hall|Town halls|Services|⌂|5
post_office|Post office|Post offices|Services|✉
police|Police station|Police stations|Services|p
fire_station|Fire station|Fire stations|Services|f
bank|Bank|Banks|Services|$
office|Office|Offices|Services|o
supermarket|Supermarket|Supermarkets|Shops|S
convenience|Corner shop|Corner shops|Shops|s
bookshop|Bookshop|Bookshops|Shops|b
clothes|Clothes shop|Clothes shops|Shops|c
hardware|Hardware shop|Hardware shops|Shops|h
florist|Florist|Florists|Shops|f
bicycle_shop|Bicycle shop|Bicycle shops|Shops|y
hairdresser|Hairdresser|Hairdressers|Shops|✂
marketplace|Market|Markets|Shops|m
swimming_pool|Swimming pool|Swimming pools|Sport|≈
sports_centre|Sports centre|Sports centres|Sport|x
station|Railway station|Railway stations|Transport|⇄|4
airport|Airport|Airports|Transport|✈|2
fuel|Petrol station|Petrol stations|Transport|p
charging_station|Charging station|Charging stations|Transport|z
parking|Car park|Car parks|Transport|P
bicycle_rental|Bicycle hire|Bicycle hire stations|Transport|b
services|Motorway services|Motorway services|Transport|⌁|3
"""


def _read() -> dict[str, Category]:
    categories = {}
    for line in _ROWS.split("\n")[1:-1]:
        key, label, plural, group, glyph, *shown = line.split("|")
        categories[key] = Category(label, plural, group, glyph, *map(int, shown))
    return categories


CATEGORIES = _read()
COLOURS = {
    "Food": "#c7632a",
    "Stay": "#3b6fb6",
    "Culture": "#8a5a9e",
    "Nature": "#3f8f4f",
    "Health": "#c0344b",
    "Services": "#6b6f76",
    "Shops": "#9a7b1f",
    "Sport": "#2a9187",
    "Transport": "#2f5d8c",
}
"""Colours of markers, by group of the category."""
