"""Convert a run's options to Hydra's overrides, and compose the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import agentgym_verl
from agentgym_envs.errors import UsageError

CONFIG_DIR = str(Path(agentgym_verl.__file__).parent.absolute() / "config")
CONFIG_NAME = "agentgym"
_PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[A-Za-z/][\w./@+-]*", re.ASCII | re.IGNORECASE)
_BEFORE_INTERPOLATION = re.compile(r"(\\*)\$\{")
_BEFORE_QUOTE = re.compile(r"(\\*)('|\Z)")


def override(key: str, value: Any) -> str:
    """`key=value` in Hydra's grammar, with text quoted where necessary."""
    if isinstance(value, bool | int):
        return f"{key}={str(value).lower()}"
    text = str(value)
    if _PLAIN.fullmatch(text):
        return f"{key}={text}"
    # Backslashes escape only before a quote (in Hydra) and before "${" (in OmegaConf), which starts an interpolation.
    literal = _BEFORE_INTERPOLATION.sub(lambda found: found[1] * 2 + r"\${", text)
    quoted = _BEFORE_QUOTE.sub(lambda found: found[1] * 2 + found[2].replace("'", r"\'"), literal)
    return f"{key}='{quoted}'"


def overrides(values: Mapping[str, Any]) -> list[str]:
    """One override for each value that is not None."""
    return [override(key, value) for key, value in values.items() if value is not None]


def compose_config(given: Sequence[str]) -> Any:
    """Compose verl's configuration with ours and these overrides, as `main_ppo` does. Raises UsageError."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_dir(CONFIG_DIR, version_base=None):
            config = compose(CONFIG_NAME, list(given))
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(f"verl's configuration does not compose: {one_line(error)}") from None
    return config


def choices(group: str) -> list[str]:
    """The names of the files in a config group."""
    return sorted(path.stem for path in (Path(CONFIG_DIR) / group).glob("*.yaml"))


def check_choice(option: str, group: str, name: str | None) -> None:
    """Raise UsageError if a config group has no file of that name."""
    if name is not None and name not in choices(group):
        raise UsageError(f"{option} must be one of {', '.join(choices(group))}; got {name!r}")


def one_line(error: Exception) -> str:
    """The message of an error of Hydra or verl in one line, without the position in the configuration."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("full_key:"))
