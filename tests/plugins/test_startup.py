"""The tests and their processes start cheaply."""

import gc
import json
import subprocess
import sys
from importlib.util import find_spec

from tests.plugins.startup import OPTIONAL, THRESHOLD, without_optional_packages


def test_collected_tests_are_no_garbage() -> None:
    assert gc.isenabled() and gc.get_freeze_count() > 10_000


def test_processes_have_the_same_settings() -> None:
    hidden = "[name for name, module in sys.modules.items() if module is None]"
    code = f"import gc, json, sys; print(json.dumps([gc.get_threshold(), {hidden}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [list(THRESHOLD), list(OPTIONAL)]


def test_optional_packages_are_hidden_for_a_while() -> None:
    before = {name: sys.modules.pop(name) for name in OPTIONAL if name in sys.modules}
    with without_optional_packages():
        assert [find_spec(name) for name in OPTIONAL] == [None] * len(OPTIONAL)
    assert find_spec("wandb") is None and "sklearn" not in sys.modules
    sys.modules.update(before)
