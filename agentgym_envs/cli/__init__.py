"""The command line: `agentgym`; `app.py` has the table of its commands."""

from agentgym_envs.cli.app import main

__all__ = ["main"]
