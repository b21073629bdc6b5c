"""Names of places, by chance, no two the same."""

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
    """Names places; `taken` are all names given so far, with the kind of food or the subject that each says."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def name(self, category: str, town: str, street: str) -> tuple[str, str | None, str | None] | None:
        """A name that no place has, with the cuisine and the operator that go with it, if any.

        None if chance finds none: another street may help.
        """
        for _ in range(12):
            found = self._draw(category, town, street)
            if found[0] not in self._taken:
                self._taken.add(found[0])
                return found
        return None

    def museum(self, town: str) -> tuple[str, str]:
        """A museum and what is in it."""
        while True:
            subject, told = self._rng.choice(MUSEUMS)
            name = f"{town} {subject}"
            if name not in self._taken:
                self._taken.add(name)
                return name, told

    def fill_in(self, pattern: str, town: str = "", street: str = "") -> str:
        """One of a pattern's alternatives, with words in its slots."""
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
        """A chain's: the first of a town is called after it, others after their streets as well."""
        chain = self._rng.choice(CHAINS[category])
        name = f"{chain} {town}"
        name = f"{name} {street}" if name in self._taken else name
        return name, CHAIN_FOOD.get(chain, "coffee_shop" if category == "cafe" else None), chain
