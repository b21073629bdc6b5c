"""What solves MiniWoB's tasks: a function a page, or one for several pages that ask for the same thing.

An oracle goes by what the agent sees. Some peek at the page besides (`PEEKS`), and say why.
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
"""The JavaScript whose value an oracle is given besides what is to be seen."""
