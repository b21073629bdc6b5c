"""The command line `agentgym`; `app.py` has the table of commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; see `app.main`. Ctrl-C during the imports prints no traceback."""
    try:
        from agentgym_envs.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("agentgym: interrupted\n")
        return 130
    return run(argv)
