"""Unique random names of places."""

from __future__ import annotations

import random
import re

from agentgym_envs.webarena.sites.maps.wordlists import CHAIN_FOOD, CHAINS, CUISINES, FAST_FOOD, MUSEUMS, NAMES, WORDS

_SLOT = re.compile(r"\b(ADJ|ANIMAL|THING|TREE|SURNAME|TOWN|STREET)\b")
_CHAIN_SHARE = {"supermarket": 0.85, "bank": 1.0, "fuel": 1.0, "charging_station": 1.0, "pharmacy": 0.4, "cafe": 0.2}
_CHAIN_SHARE |= {"fast_food": 0.4, "hotel": 0.2, "convenience": 0.5, "clothes": 0.4, "cinema": 0.5, "parking": 0.5}
_CHAIN_SHARE |= {"bicycle_rental": 1.0, "services": 1.0}
_CAFE_FOOD = ("coffee_shop", "coffee_shop", "cake", "breakfast", "tea", "ice_cream")
_OWNED = {
    "library": "Town of TOWN",
    "swimming_pool": "Town of TOWN",
    "station": "State Railways",
    "hospital": "Health Board",
}
_OWNED |= {
    "university": "State",
    "school": "Town of TOWN",
    "post_office": "State Post",
    "sports_centre": "Town of TOWN",
}


class Namer:
    """Generates names of places. `_taken` holds all names so far."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def name(self, category: str, town: str, street: str) -> tuple[str, str | None, str | None] | None:
        """Return an unused name with its cuisine and operator, if any.

        Returns None after twelve draws of names that are taken; the caller draws another street.
        """
        for _ in range(12):
            drawn = self._draw(category, town, street)
            if drawn[0] not in self._taken:
                self._taken.add(drawn[0])
                return drawn
        return None

    def museum(self, town: str) -> tuple[str, str]:
        """Return the name of a museum and its subject."""
        while True:
            subject, contents = self._rng.choice(MUSEUMS)
            name = f"{town} {subject}"
            if name not in self._taken:
                self._taken.add(name)
                return name, contents

    def fill_in(self, pattern: str, town: str = "", street: str = "") -> str:
        """Choose one of the alternatives of a pattern and fill in its placeholders."""
        given = {"TOWN": town, "STREET": street}
        chosen = self._rng.choice(pattern.split("|"))
        return _SLOT.sub(lambda slot: given.get(slot[0]) or self._rng.choice(WORDS[slot[0]]), chosen)

    def _draw(self, category: str, town: str, street: str) -> tuple[str, str | None, str | None]:
        if category == "restaurant":
            cuisine = self._rng.choice(tuple(CUISINES))
            return self._restaurant(cuisine, town, street), cuisine, None
        if self._rng.random() < _CHAIN_SHARE.get(category, 0.0):
            return self._branch(category, town, street)
        name = self.fill_in(NAMES[category], town, street)
        food: str | None = None
        if category == "cafe":
            food = self._rng.choice(_CAFE_FOOD)
        elif category == "fast_food":
            food = next(sold for word, sold in FAST_FOOD.items() if word in name)
        owner = _OWNED.get(category)
        return name, food, self.fill_in(owner, town) if owner else None

    def _restaurant(self, cuisine: str, town: str, street: str) -> str:
        name = " ".join(self.fill_in(part, town, street) for part in CUISINES[cuisine])
        return f"{name} {town}" if name in self._taken else name

    def _branch(self, category: str, town: str, street: str) -> tuple[str, str | None, str | None]:
        """Return the name of a chain's branch: with the town, and also with the street if that name is taken."""
        chain = self._rng.choice(CHAINS[category])
        name = f"{chain} {town}"
        name = f"{name} {street}" if name in self._taken else name
        return name, CHAIN_FOOD.get(chain, "coffee_shop" if category == "cafe" else None), chain
