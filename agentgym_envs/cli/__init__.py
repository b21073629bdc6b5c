"""The command line: `agentgym list | play | solve | eval | demos | bench | serve | train | tiny-model | verl`."""

from agentgym_envs.cli.app import main

__all__ = ["main"]
