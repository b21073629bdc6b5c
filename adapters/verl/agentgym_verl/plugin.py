"""The entry point `agentgym` of the group `verl.plugins`, which verl imports in each of its processes.

verl logs a plugin that fails to import at the level DEBUG only, and later reports that the agent loop is not
registered. `check_registered` reports the reason.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from verl.utils import import_utils

from agentgym_envs.errors import UsageError
from agentgym_verl import AGENT_NAME


def _trl_has_value_heads() -> bool:
    spec = find_spec("trl")
    return spec is not None and (Path(spec.origin or "").parent / "experimental" / "ppo").is_dir()


# verl 0.9.1 imports a class from any installed trl, and fails if that trl no longer has it (1.10 and newer, which our
# own extra `trl` requires). verl needs the class only for models with a value head.
if not _trl_has_value_heads():
    import_utils.is_trl_available = lambda: False

from verl.experimental.agent_loop.agent_loop import _agent_loop_registry  # noqa: E402

_TARGET = "agentgym_verl.loop.GymAgentLoop"

# Not verl's decorator: it needs the class, and would overwrite an entry with the same name in a user's own file when
# the class is imported.
_agent_loop_registry.setdefault(AGENT_NAME, {"_target_": _TARGET})

from agentgym_verl import trainers as trainers  # noqa: E402  (registers itself; after the lines above, which it needs)


def check_registered() -> None:
    """Raise UsageError, with the reason, if verl's processes would not find the agent loop."""
    import verl

    policy = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto")
    allowed = [name.strip() for name in policy.split(",")]
    if policy.strip().lower() != "auto" and AGENT_NAME not in allowed:
        raise UsageError(
            f"VERL_USE_EXTERNAL_PLUGINS={policy} stops verl from loading the agent loop; unset it, or add {AGENT_NAME}"
        )
    if not _entry_points():
        raise UsageError(
            "this installation of agentgym-envs has no entry point for verl; reinstall it: "
            "pip install 'agentgym-envs[verl]' (for a checkout: pip install -e '.[verl]')"
        )
    found = _agent_loop_registry.get(AGENT_NAME, {}).get("_target_")
    if found != _TARGET:
        raise UsageError(f"verl {verl.__version__} has {found!r} as the agent loop {AGENT_NAME!r}, not {_TARGET}")


def _entry_points() -> list[str]:
    from importlib.metadata import entry_points

    return [point.value for point in entry_points(group="verl.plugins") if point.name == AGENT_NAME]
