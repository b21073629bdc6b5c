"""Every module can be imported, so that `scripts/check fast` imports each of them."""

import importlib

from tests.test_layers import ADAPTER_FILES, FILES, ROOT, module_name

ADAPTERS = ("adapters.trl.", "adapters.verl.")


def test_every_module_can_be_imported() -> None:
    names = [module_name(path) for path in (*FILES, *ADAPTER_FILES) if path.stem != "__main__"]  # those run a command
    assert len(names) > 500, ROOT
    for name in names:
        for adapter in ADAPTERS:
            name = name.removeprefix(adapter)
        importlib.import_module(name)
