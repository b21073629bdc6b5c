"""What no policy should write, for the contract: texts of all kinds, and commands that are nearly right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

DIGITS = "9" * 5000
"""More than `int` reads: it raises ValueError over 4,300 digits, whatever `isdecimal` said before."""
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
    """Commands that are nearly right: the likeliest place for a parser to stumble."""
    halves = st.tuples(st.sampled_from(commands), st.sampled_from(commands), st.integers(0, 30), st.text(max_size=3))
    return halves.map(lambda parts: parts[0][: parts[2]] + parts[3] + parts[1][parts[2] :])


def with_long_numbers(commands: Iterable[str]) -> list[str]:
    """Those commands that hold a number, each with far too many digits in its place; one of a kind."""
    return list(dict.fromkeys(re.sub(r"\d+", DIGITS, command) for command in commands if re.search(r"\d", command)))


def complaints_of_members(observation: str, info: dict[str, Any]) -> list[str]:
    """Of a team: what may stand for the action of its member, whose own answer begins with it."""
    if "agents" not in info:
        return []
    seen = json.loads(observation)
    whys = {agent: own["invalid_action"] for agent, own in info["agents"].items()}
    return [f"{agent}: {why}" for agent, why in whys.items() if why is not None and why in seen.get(agent, why)]
