"""`python -m agentgym_envs` is `agentgym`."""

import sys

from agentgym_envs.cli import main

sys.exit(main())
