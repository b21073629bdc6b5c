"""A training command imports only what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from agentgym_trl.cli.imports import only_needed

_HELP = """
import sys
from agentgym_envs.cli import main
sys.argv = ["agentgym", "train", "grpo", "--help-all"]
try:
    main(sys.argv[1:])
finally:
    heavy = ("trl", "datasets", "peft", "sklearn", "trl.trainer.grpo_trainer")
    print("imported:", *(name for name in heavy if sys.modules.get(name)))
"""


@pytest.mark.slow
def test_help_imports_no_trainer() -> None:
    done = subprocess.run([sys.executable, "-c", _HELP], capture_output=True, text=True, check=True)
    assert "--learning_rate" in done.stdout
    assert done.stdout.splitlines()[-1] == "imported: trl"


def hidden(argv: list[str], monkeypatch: pytest.MonkeyPatch, own: bool = True) -> set[str]:
    """The packages that cannot be imported, of some that are not imported yet."""
    packages = ("sklearn", "wandb", "peft")
    for name in packages:
        monkeypatch.setitem(sys.modules, name, sys)  # so that it is restored after the test
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", ["agentgym", "train", *argv] if own else ["pytest"])
    with only_needed(argv):
        found = {name for name in packages if name in sys.modules and sys.modules[name] is None}
    assert found & sys.modules.keys() == found & {"wandb"}, "loggers stay hidden"
    return found


def test_packages_are_hidden_that_the_command_does_not_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert hidden(["grpo", "--env", "x"], monkeypatch) == {"sklearn", "wandb"}
    assert hidden(["grpo", "--help-all"], monkeypatch) == {"sklearn", "wandb", "peft"}
    assert hidden(["grpo", "--report-to", "wandb"], monkeypatch) == {"sklearn"}
    config = tmp_path / "run.yaml"
    config.write_text("report_to: all\n")
    assert hidden(["grpo", "--config", str(config)], monkeypatch) == {"sklearn"}
    assert hidden(["grpo", f"--config={config}"], monkeypatch) == {"sklearn"}


def test_nothing_is_hidden_from_a_program_that_calls_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hidden(["grpo", "--help-all"], monkeypatch, own=False) == set()


_CARD = """
import sys
sys.argv = ["agentgym", "train", "grpo"]
from agentgym_trl.cli.imports import only_needed
with only_needed(["grpo"]):
    import trl.trainer.base_trainer as trainer
print(trainer.is_wandb_available(), hasattr(trainer, "wandb"))
"""


@pytest.mark.slow
def test_trl_finds_no_logger_later_that_it_has_not_imported(tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text("run = None\n")
    paths = [str(tmp_path), *(path for path in sys.path if not path.endswith("tests/plugins/site"))]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", _CARD], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.splitlines()[-1] == "False False"


def test_installed_packages_are_listed_once() -> None:
    before = metadata.packages_distributions
    with only_needed([]):
        assert metadata.packages_distributions() is metadata.packages_distributions()
    assert metadata.packages_distributions is before
