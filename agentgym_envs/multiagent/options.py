"""Options of a team's `reset`: unknown ones are ignored, as PettingZoo expects."""

from __future__ import annotations

import warnings
from typing import Any

from agentgym_envs.core import RESET_OPTIONS


def known_options(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Drop unknown options, with a `UserWarning` that names them.

    `TextEnv.reset` refuses unknown options, so that a typo is noticed. PettingZoo's tests and wrappers pass options for
    other environments, so a team's `reset` only warns.
    """
    if not isinstance(options, dict) or options.keys() <= RESET_OPTIONS:
        return options
    unknown = sorted(map(str, options.keys() - RESET_OPTIONS))
    warnings.warn(f"reset ignores the options {unknown}: it knows {sorted(RESET_OPTIONS)}", stacklevel=3)
    return {name: value for name, value in options.items() if name in RESET_OPTIONS}
