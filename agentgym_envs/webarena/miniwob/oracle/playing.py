"""Oracles of the pages that are games."""

from __future__ import annotations

import re
from importlib.resources import files

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill, number


def generate(page: WidgetReader) -> Action:
    """Generate numbers until one fits."""
    shown = next((text for text in page.texts if re.fullmatch(r"\d+", text)), None)
    return click(page.one("button", "Submit" if shown and _fits(int(shown), page.goal) else "Generate"))


def _fits(value: int, goal: str) -> bool:
    if "odd" in goal or "even" in goal:
        return value % 2 == ("odd" in goal)
    bound = number(goal)
    return value < bound if "less" in goal else value > bound


def guess(page: WidgetReader) -> Action:
    """Guess from the middle outwards; the hint on the last guess is enough."""
    hint = " ".join(page.texts)
    last = re.search(r"The number is (lower|higher) than (\d)", hint)
    value = 5 if last is None else int(last[2]) + (1 if last[1] == "higher" else -1)
    return fill([(page.fields[0], str(value))], page.one("button", "Submit"))


def tic_tac_toe(page: WidgetReader) -> Action:
    """Play a winning move. Peeks at the opponent's random moves, since no strategy always wins."""
    if page.peek is None:
        raise NoOracle("this game cannot be won any more")
    return click(page.all("button")[page.peek])


SOLVERS: dict[str, Solver] = {"generate-number": generate, "guess-number": guess, "tic-tac-toe": tic_tac_toe}
PEEKS = {"tic-tac-toe": files(__package__).joinpath("tic_tac_toe.js").read_text(encoding="utf-8")}
