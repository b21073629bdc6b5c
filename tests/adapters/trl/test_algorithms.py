"""The table of algorithms: commands, help and documentation follow from it; the package's lazy exports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agentgym_trl
from agentgym_envs.cli import main
from agentgym_envs.registration import load_object
from agentgym_trl.algorithms import ALGORITHMS, Algorithm, algorithm_table, online_algorithms
from agentgym_trl.credit_methods import CREDIT_METHODS, CreditMethod, credit_table
from tests.adapters.trl.small import config

ROOT = Path(__file__).parents[3]
CALLS: list[list[str]] = []


def run_new(argv: list[str]) -> int:
    CALLS.append(argv)
    return 7


def new_estimator(batch: Any, config: Any) -> Any:
    return batch, config


def test_a_row_with_a_command_adds_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Algorithm(summary="a new one", advantage="none", papers=("1234.56789",), command=f"{__name__}:run_new")
    monkeypatch.setitem(ALGORITHMS, "new", row)
    CALLS.clear()
    assert main(["train", "new", "--option", "1"]) == 7 and CALLS == [["--option", "1"]]
    assert main(["train"]) == 0
    assert "\n  new                   a new one\n" in capsys.readouterr().out + "\n"
    assert "| `new` | none |  |  | [1234.56789](https://arxiv.org/abs/1234.56789) |\n" in algorithm_table()
    assert "new" not in online_algorithms()


def test_a_row_with_an_estimator_adds_an_online_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    row = Algorithm(summary="a new one", advantage="new", estimator=f"{__name__}:new_estimator", critic=True)
    monkeypatch.setitem(ALGORITHMS, "new", row)
    assert row.estimate("batch", "config") == ("batch", "config")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    assert main(["train", "new", "--env", "textcraft"]) == 2
    assert "no model was given" in capsys.readouterr().err
    assert "| `new` | new |  | yes |  |\n" in algorithm_table()


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_row_names_functions_that_exist(name: str) -> None:
    algorithm = ALGORITHMS[name]
    assert bool(algorithm.estimator) != bool(algorithm.command)
    assert callable(load_object(algorithm.estimator or algorithm.command))
    assert algorithm.summary and algorithm.advantage


def test_a_row_adds_a_credit_method(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = CreditMethod(summary="a new one", advantage="new", papers=("1.2",), estimator=f"{__name__}:new_estimator")
    monkeypatch.setitem(CREDIT_METHODS, "new", row)
    assert "| `new` | new | [1.2](https://arxiv.org/abs/1.2) |\n" in credit_table()
    assert config(tmp_path, credit="new", algorithm="ppo").credit == "new"
    for name, expected in (("new", ("batch", "config")), ("episode", "own")):
        algorithm: Any = SimpleNamespace(estimate=lambda *_: "own")
        assert CREDIT_METHODS[name].estimate(algorithm, "batch", "config") == expected  # type: ignore[arg-type]
    assert all(not method.estimator or callable(load_object(method.estimator)) for method in CREDIT_METHODS.values())


def test_the_table_and_the_package_import_neither_torch_nor_trl() -> None:
    names = "agentgym_trl.algorithms, agentgym_trl.credit_methods"
    code = f"import sys, {names}; print({{'torch', 'trl', 'transformers'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "set()\n"


def test_the_public_names_are_imported_on_first_use() -> None:
    assert agentgym_trl.__all__ == sorted(agentgym_trl.__all__)
    for name in agentgym_trl.__all__:
        value = getattr(agentgym_trl, name)
        assert value.__name__ == name and value.__doc__
    assert set(agentgym_trl.__all__) <= set(dir(agentgym_trl))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        agentgym_trl.Nothing  # noqa: B018
