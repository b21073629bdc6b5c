"""Every module can be imported, so that `scripts/check fast` imports each of them."""

import importlib

from tests.test_layers import ADAPTER_FILES, FILES, ROOT, module_name

ADAPTERS = ("adapters.trl.", "adapters.verl.", "adapters.verifiers.")
PEERS = ("agentgym_envs.mcp.", "agentgym_envs.inspect_tasks", "agentgym_verifiers")
"""The modules whose packages exclude those of the other tests; `tests/doors` imports them."""


def test_every_module_can_be_imported() -> None:
    names = [module_name(path) for path in (*FILES, *ADAPTER_FILES) if path.stem != "__main__"]  # those run a command
    assert len(names) > 500, ROOT
    for name in names:
        for adapter in ADAPTERS:
            name = name.removeprefix(adapter)
        if not name.startswith(PEERS):
            importlib.import_module(name)
