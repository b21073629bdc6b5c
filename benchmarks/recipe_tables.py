"""Tables of recipes that extend the quick start's, for studies that need other goals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentgym_trl.demo.settings import RECIPES


def load() -> dict[str, Any]:
    """The table of the quick start."""
    table: dict[str, Any] = json.loads(RECIPES.read_text(encoding="utf-8"))
    return table


def chains(table: dict[str, Any]) -> list[list[str]]:
    """For each base item, the items that are crafted from it one after another, the base item first."""
    made_by = {parts[0][0]: product for name, product, _, parts, _ in table["recipes"] if "_from_" not in name}
    found = [[base] for base in table["base_items"]]
    for chain in found:
        while chain[-1] in made_by:
            chain.append(made_by[chain[-1]])
    return found


def write(path: Path, table: dict[str, Any]) -> str:
    """Write a table once; return its path for `recipe_table`."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(table), encoding="utf-8")
    return str(path)


def graded(endings: Sequence[str]) -> dict[str, Any]:
    """A further product at the end of each chain for each ending, and goals of every depth."""
    table, grown = load(), chains(load())
    for chain in grown:
        for ending in endings:
            product = f"{chain[0]}_{ending}"
            table["recipes"].append([product, product, 1, [[chain[-1], 1]], ""])
            chain.append(product)
    depths = range(1, min(len(chain) for chain in grown))
    return table | {"goals": {str(depth): [chain[depth] for chain in grown] for depth in depths}}
