"""Options of `reset` as PettingZoo has them: an environment ignores what it does not know."""

from __future__ import annotations

import warnings
from typing import Any

from agentgym_envs.core import RESET_OPTIONS


def known_options(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """The options without those that no environment of the suite has, which a `UserWarning` names.

    `TextEnv.reset` refuses them, so that a mistyped name is noticed. PettingZoo's tests and wrappers pass options that
    mean something to other environments, so a team's `reset` warns instead.
    """
    if not isinstance(options, dict) or options.keys() <= RESET_OPTIONS:
        return options
    unknown = sorted(map(str, options.keys() - RESET_OPTIONS))
    warnings.warn(f"reset ignores the options {unknown}: it knows {sorted(RESET_OPTIONS)}", stacklevel=3)
    return {name: value for name, value in options.items() if name in RESET_OPTIONS}
