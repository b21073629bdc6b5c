"""What solves MiniWoB's tasks: a function a page, or one for several pages that ask for the same thing.

An oracle goes by what the agent sees. Some peek at the page besides (`PEEKS`), and say why.
"""

from __future__ import annotations

from agentgym_envs.webarena.miniwob.oracle import (
    adjusting,
    choosing,
    clicking,
    dating,
    editing,
    email,
    forms,
    playing,
    reading,
    searching,
    social,
    typing,
    unfolding,
)
from agentgym_envs.webarena.miniwob.oracle.sight import Sight, Solver

__all__ = ["PEEKS", "SOLVERS", "Sight", "Solver"]

SOLVERS: dict[str, Solver] = {
    **adjusting.SOLVERS,
    **choosing.SOLVERS,
    **clicking.SOLVERS,
    **dating.SOLVERS,
    **editing.SOLVERS,
    **email.SOLVERS,
    **forms.SOLVERS,
    **playing.SOLVERS,
    **reading.SOLVERS,
    **searching.SOLVERS,
    **social.SOLVERS,
    **typing.SOLVERS,
    **unfolding.SOLVERS,
}
"""The oracle of each page."""
PEEKS: dict[str, str] = {
    **adjusting.PEEKS,
    **choosing.PEEKS,
    **editing.PEEKS,
    **email.PEEKS,
    **forms.PEEKS,
    **playing.PEEKS,
    **reading.PEEKS,
    **typing.PEEKS,
}
"""The JavaScript whose value an oracle is given besides what is to be seen."""
