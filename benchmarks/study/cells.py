"""Tables in Markdown and what is in their cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentgym_envs.evaluate import Estimate


def shown(estimate: Estimate, sign: str = "") -> str:
    """A mean and its interval."""
    text = f"{estimate.mean:{sign}.0f}"
    return text if math.isnan(estimate.low) else f"{text} [{estimate.low:{sign}.0f}, {estimate.high:{sign}.0f}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
