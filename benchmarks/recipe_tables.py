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


def graded(ending: str) -> dict[str, Any]:
    """One more product at the end of each chain, and goals of depth 1 to 4."""
    table, grown = load(), list[list[str]]()
    for chain in chains(table):
        product = f"{chain[0]}_{ending}"
        table["recipes"].append([product, product, 1, [[chain[-1], 1]], ""])
        grown.append([*chain, product])
    return table | {"goals": {str(depth): [chain[depth] for chain in grown] for depth in range(1, 5)}}


def repeated(amounts: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """The same chains with recipes that make one item of several, so that the same craft is repeated.

    Each chain in turn takes the next of `amounts`: the number of ingredients of each of its crafts.
    """
    table = load()
    needed: dict[str, tuple[str, int]] = {}
    goals = []
    for index, chain in enumerate(chains(table)):
        numbers = amounts[index % len(amounts)]
        needed |= dict(zip(chain[1:], zip(chain, numbers, strict=False), strict=False))
        goals.append(chain[len(numbers)])
    table["recipes"] = [
        [name, product, 1, [needed[name]], tag] if name in needed else [name, product, count, parts, tag]
        for name, product, count, parts, tag in table["recipes"]
    ]
    return table | {"goals": {"3": goals}}
