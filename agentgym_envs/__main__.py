"""Entry point of `python -m agentgym_envs`, the same as `agentgym`."""

import sys

from agentgym_envs.cli import main

sys.exit(main())
