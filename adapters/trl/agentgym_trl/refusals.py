"""What libraries refuse, in one line of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from agentgym_envs.errors import AgentGymError, UsageError


@contextmanager
def refusals() -> Iterator[None]:
    """What TRL and transformers refuse while a run is set up is a usage error; what the machine refuses is not."""
    try:
        yield
    except SafetensorError as error:
        raise UsageError(f"the model's weights do not load: {error}") from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        if isinstance(error, AgentGymError) or (isinstance(error, OSError) and error.errno):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(lines[0]) from error
