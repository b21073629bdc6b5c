import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import agentgym_envs
from agentgym_envs.registration import REGISTRATIONS, env_class, env_ids, register_all

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in sorted(ROOT.glob("agentgym_envs/**/__init__.py"))
    if "__all__" in path.read_text(encoding="utf-8")
]


def imported_names(package: str) -> set[str]:
    """The public names that the package's `__init__` imports from its own modules."""
    source = (ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    functions = [node for node in ast.parse(source).body if not isinstance(node, ast.FunctionDef)]
    nodes = [node for part in functions for node in ast.walk(part) if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if node.level or (node.module or "").startswith("agentgym_envs")]
    names = {alias.asname or alias.name for node in own for alias in node.names}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_sorted_and_complete(name: str) -> None:
    package = importlib.import_module(name)
    assert sorted(package.__all__) == package.__all__
    assert set(package.__all__) == imported_names(name)
    assert not any(inspect.ismodule(getattr(package, public)) for public in package.__all__)


@pytest.mark.parametrize("name", agentgym_envs.__all__)
def test_every_export_has_a_docstring(name: str) -> None:
    value = getattr(agentgym_envs, name)
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}(")  # the default docstring of a dataclass


def test_the_package_exports_all_that_scenarios_and_callers_need() -> None:
    """One import line is enough to write a scenario and to handle its errors."""
    from agentgym_envs import EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError, errors

    names = ("EnvError", "EpisodeOver", "InvalidAction", "NoOracle", "UsageError")
    assert [EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError] == [getattr(errors, name) for name in names]
    assert set(names) <= set(agentgym_envs.__all__)


HEAVY = ("asyncio", "httpx", "torch", "transformers", "pettingzoo", "playwright", "starlette", "agentgym_envs.vector")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import agentgym_envs, sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert out.stdout.split() == []


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{agentgym_envs.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"[{agentgym_envs.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", REGISTRATIONS, ids=lambda row: row.id)
def test_every_id_is_registered_and_its_class_exists(row: agentgym_envs.registration.Registration) -> None:
    register_all()
    module, _, name = row.entry_point.partition(":")
    assert env_class(row.id) is getattr(importlib.import_module(module), name)
    spec = gym.spec(row.id)
    assert gym.envs.registration.EnvSpec.from_json(spec.to_json()).entry_point == spec.entry_point
    assert row.id.startswith("AgentGym/")
    assert row.summary


def test_a_custom_id_may_be_registered_twice() -> None:
    for _ in range(2):
        agentgym_envs.register("Toy/Twice-v0", "tests.toy:CountEnv")  # Gymnasium would warn, which is an error here
    assert env_class("Toy/Twice-v0").__name__ == "CountEnv"
    for wrong in ("tests.toy", "a:b:c", env_class("Toy/Twice-v0")):
        with pytest.raises(agentgym_envs.errors.UsageError, match="module:Class"):
            agentgym_envs.register("Toy/Wrong-v0", wrong)  # type: ignore[arg-type]
    assert "Toy/Wrong-v0" not in gym.registry


def test_registering_an_id_again_replaces_the_class() -> None:
    agentgym_envs.register("Toy/Anew-v0", "tests.toy:CountEnv")
    with pytest.warns(UserWarning, match="Overriding environment Toy/Anew-v0"):  # Gymnasium's
        agentgym_envs.register("Toy/Anew-v0", "tests.toy_envs:TrickyEnv")
    assert env_class("Toy/Anew-v0").__name__ == "TrickyEnv"


def test_ids_are_unique() -> None:
    assert len(set(env_ids())) == len(env_ids()) > 0


def test_gym_make_imports_the_suite_by_itself(tmp_path: Path) -> None:
    code = "import gymnasium as gym; print(gym.make('agentgym_envs:AgentGym/TextCraft-v0').reset(seed=0)[1]['task_id'])"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-W", "error", "-c", code]
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert out.stdout.startswith("textcraft/")
