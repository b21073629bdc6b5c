"""The oracles of MiniWoB's tasks: one function for each page, or for several similar pages.

An oracle reads what the agent sees. Some also peek at the page (`PEEKS`); their docstrings give the reason.
"""

from __future__ import annotations

from agentgym_envs.webarena.miniwob.oracle import (
    adjusting,
    choosing,
    clicking,
    dating,
    entering,
    forms,
    mailing,
    playing,
    posting,
    reading,
    searching,
    unfolding,
)
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver

SOLVERS: dict[str, Solver] = {
    **adjusting.SOLVERS,
    **choosing.SOLVERS,
    **clicking.SOLVERS,
    **dating.SOLVERS,
    **entering.SOLVERS,
    **forms.SOLVERS,
    **mailing.SOLVERS,
    **playing.SOLVERS,
    **posting.SOLVERS,
    **reading.SOLVERS,
    **searching.SOLVERS,
    **unfolding.SOLVERS,
}
"""The oracle of each page."""
PEEKS: dict[str, str] = {
    **adjusting.PEEKS,
    **choosing.PEEKS,
    **entering.PEEKS,
    **forms.PEEKS,
    **mailing.PEEKS,
    **playing.PEEKS,
    **reading.PEEKS,
}
"""JavaScript whose value is the `peek` of a page's oracle."""
