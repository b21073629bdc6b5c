"""The oracle's queries: short and worded like those of people."""

from __future__ import annotations

from collections.abc import Mapping

QUERY: Mapping[str, tuple[str, str]] = {
    "capital": ("capital of {}", "{} country capital"),
    "peak": ("highest point of {}", "highest point of {}"),
    "anthem": ("{} national anthem", "national anthem of {}"),
    "tld": ("{} internet country code", "{} internet country code"),
    "phone": ("{} international dialling code", "{} international dialling code"),
    "currency": ("{} currency", "currency of the country {}"),
    "independence": ("{} independence date", "date of independence of {}"),
    "holiday": ("{} national holiday date", "{} national holiday date"),
    "peak_m": ("{} highest point height", "{} highest point height"),
    "area": ("{} total area", "{} total area"),
    "population": ("{} population 2015", "population of the country {} in 2015, inhabitants"),
    "life": ("{} life expectancy at birth", "{} life expectancy at birth"),
    "border": ("{} total length of land borders", "{} total length of land borders"),
    "coast": ("{} coastline length", "{} coastline length"),
    "roads": ("{} roads total length", "{} roads total length"),
    "rail": ("{} railways total length", "{} railways total length"),
    "borders": ("{} longest land border", "{} land borders"),
}
"""Queries for each attribute of a country; the second one is for the countries in `HARD`."""
HARD = frozenset(("BA", "BF", "BZ", "CZ", "GN", "KN", "LB", "ME", "MN", "VC"))
"""Countries that share their name with many towns, or a word of it with other countries."""
QUERY_AIRPORT = {"city": "city", "iata": "IATA code", "icao": "ICAO code", "elevation": "elevation"}
QUERY_ELEMENT = {
    "symbol": "chemical symbol",
    "number": "atomic number",
    "weight": "standard atomic weight",
    "cas": "CAS registry number",
}
