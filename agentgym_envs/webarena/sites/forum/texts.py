"""Filling of placeholders such as {town}, {thing} and {n}. Within one text, a placeholder keeps its value."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from agentgym_envs.webarena.sites.country import Country
from agentgym_envs.webarena.sites.forum.wordlists import DAYS, RELATIVES, SINCE, TIMES

_PASSING = ("n", "big", "year", "time", "since", "day", "relative", "rec")
_VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!one\b|uni|use)")


class Slots(dict[str, str]):
    """The values of the placeholders of one text, drawn on first use."""

    def __init__(self, rng: random.Random, country: Country, things: Sequence[str], given: dict[str, str]) -> None:
        super().__init__(given)
        self._rng, self._country, self._things = rng, country, things

    def __missing__(self, key: str) -> str:
        self[key] = value = self._draw(key)
        return value

    def _draw(self, key: str) -> str:
        rng = self._rng
        match key:
            case "town" | "other_town" | "town2":
                names = [town.name for town in self._country.towns]
                return rng.choice([name for name in names if name not in self.values()])
            case "thing" | "other" | "rec":
                return rng.choice([thing for thing in self._things if thing not in self.values()])
            case "n":
                return str(rng.randint(4, 9))
            case "big":
                return str(rng.randint(12, 58))
            case "year":
                return str(rng.randint(2012, 2024))
            case "country":
                return self._country.name
            case _:
                return rng.choice({"time": TIMES, "since": SINCE, "day": DAYS, "relative": RELATIVES}[key])

    def fill(self, text: str) -> str:
        """Return the text with its placeholders filled and its first letter capitalized."""
        filled = _VOWEL.sub(r"\1n ", text.format_map(self))
        return filled[:1].upper() + filled[1:]

    def copy(self) -> Slots:
        """Return slots for another text on the same subject. Numbers and times are drawn again; the rest is kept."""
        kept = {key: value for key, value in self.items() if key not in _PASSING}
        return Slots(self._rng, self._country, self._things, kept)
