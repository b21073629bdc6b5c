"""Write `recipes.json`, the table of the demo: twelve chains of crafts, and side products as distractors.

python scripts/make_demo_recipes.py
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

RECIPES = Path(__file__).parents[1] / "adapters" / "trl" / "agentgym_trl" / "demo" / "recipes.json"

_CHAINS = (
    "wheat flour dough bread",
    "log plank stick ladder",
    "clay brick wall house",
    "wool yarn cloth coat",
    "ore iron nail hammer",
    "sand glass bottle potion",
    "milk cream butter cake",
    "reed paper page book",
    "cotton thread rope net",
    "stone gravel cement tower",
    "grape juice wine vinegar",
    "bean powder cocoa candy",
)
"""A base item, two intermediate products and the end of each chain; the last two are goals, of depth 2 and 3."""
_SIDE_PRODUCTS = ["bag", "bell", "bowl", "box", "cup", "drum", "fan", "hat", "lamp", "mat", "pot", "toy"]
_SIDE_PRODUCTS_OF_A_CHAIN = 6
_MAX_AMOUNT = 4


def make_table(seed: int = 0) -> dict[str, Any]:
    """A recipe table in the format of TextCraft's, in which one craft of each recipe of a chain is enough."""
    rng, recipes = random.Random(seed), []
    chains = [chain.split() for chain in _CHAINS]
    for chain in chains:
        needed = rng.randint(1, _MAX_AMOUNT)
        for ingredient, product in itertools.pairwise(chain):
            makes = rng.randint(1, _MAX_AMOUNT)
            recipes.append([product, product, makes, [[ingredient, needed]], ""])
            needed = rng.randint(1, makes)
        for side_product in rng.sample(_SIDE_PRODUCTS, _SIDE_PRODUCTS_OF_A_CHAIN):
            part = [rng.choice(chain[:2]), rng.randint(1, _MAX_AMOUNT)]
            name = f"{side_product}_from_{chain[0]}"
            recipes.append([name, side_product, rng.randint(1, _MAX_AMOUNT), [part], ""])
    return {
        "version": 1,
        "recipes": recipes,
        "tags": {},
        "base_items": [chain[0] for chain in chains],
        "goals": {"2": [chain[2] for chain in chains], "3": [chain[3] for chain in chains]},
    }


def write_table(path: Path = RECIPES) -> None:
    """Write the table with one recipe per line."""
    table = make_table()
    rows = ",\n".join(json.dumps(row) for row in table.pop("recipes"))
    head = json.dumps(table)[1:-1]
    path.write_text(f'{{{head},\n"recipes": [\n{rows}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    write_table()
