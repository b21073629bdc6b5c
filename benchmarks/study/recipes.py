"""TextCraft's recipes of the study: chains of crafts of the same kinds of items, so that distances to goals are known.

An item is one of `FORMS` of one of `KINDS`, such as an oak stick. The chain of a kind begins with its base item and
goes once around the forms, so the goal of depth d takes one turn to get the base item and d crafts. Chains of
different kinds begin with different forms: what a long chain needs occurs in the short chains of other kinds.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

KINDS = tuple("oak birch pine maple cedar willow ash elm teak palm larch yew iron gold copper tin".split())  # noqa: SIM905
FORMS = tuple("log plank stick frame crate cart barrel shelf".split())  # noqa: SIM905
DEPTHS = (1, 3, 5, 7)
RECIPES = Path(__file__).with_name("recipes.json")
"""The table, made by `python -m benchmarks.study.recipes`."""
_USELESS = ["cup", "hat", "drum", "box"]


def make_table() -> dict[str, object]:
    """The contents of `RECIPES`."""
    rng = random.Random(0)
    forms = len(FORMS)
    chains = [[f"{kind}_{FORMS[(first + step) % forms]}" for step in range(forms)] for first, kind in enumerate(KINDS)]
    goals = {str(depth): [chain[depth] for chain in chains] for depth in DEPTHS}
    recipes = [recipe for kind, chain in zip(KINDS, chains, strict=True) for recipe in _recipes(kind, chain, rng)]
    return {"version": 1, "tags": {}, "base_items": [chain[0] for chain in chains], "goals": goals, "recipes": recipes}


def _recipes(kind: str, chain: list[str], rng: random.Random) -> list[list[object]]:
    """The crafts of a chain; from each of its items two useless ones can be made, too."""
    found: list[list[object]] = []
    for number, (part, product) in enumerate(pairwise(chain)):
        found.append([product, product, rng.randint(2, 4), [[part, rng.randint(1, 2)]], ""])
        found += [
            [f"{kind}_{name}_{number}", f"{kind}_{name}", rng.randint(1, 4), [[part, rng.randint(1, 3)]], ""]
            for name in rng.sample(_USELESS, 2)
        ]
    return found


if __name__ == "__main__":
    RECIPES.write_text(json.dumps(make_table()) + "\n", encoding="utf-8")
