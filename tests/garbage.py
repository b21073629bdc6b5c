"""Garbage actions for the contract: texts of all kinds, and commands that are almost correct."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

DIGITS = "9" * 5000
"""More digits than `int` accepts: it raises ValueError above 4,300 digits, even if `isdecimal` is true."""
JUNK = (
    "",
    "inventory please",
    "\x00",
    "Thought: hm\nAction: look",
    "é🙂" * 50,
    "x" * 20_000,
    "\ud800",
    "{}",
    "\n\n",
    f"take {DIGITS}",
)


def mutated(commands: Sequence[str]) -> st.SearchStrategy[str]:
    """Commands that are almost correct, where parsers are most likely to fail."""
    halves = st.tuples(st.sampled_from(commands), st.sampled_from(commands), st.integers(0, 30), st.text(max_size=3))
    return halves.map(lambda parts: parts[0][: parts[2]] + parts[3] + parts[1][parts[2] :])


def with_long_numbers(commands: Iterable[str]) -> list[str]:
    """The commands with a number, with far too many digits instead; one command of each kind."""
    return list(dict.fromkeys(re.sub(r"\d+", DIGITS, command) for command in commands if re.search(r"\d", command)))


def complaints_of_members(observation: str, info: dict[str, Any]) -> list[str]:
    """The valid values of a team's `invalid_action`: those of its members, if their replies contain them."""
    if "agents" not in info:
        return []
    seen = json.loads(observation)
    whys = {agent: own["invalid_action"] for agent, own in info["agents"].items()}
    return [f"{agent}: {why}" for agent, why in whys.items() if why is not None and why in seen.get(agent, why)]
