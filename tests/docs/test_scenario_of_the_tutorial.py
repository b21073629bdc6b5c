"""The scenario that docs/tutorials/new-scenario.md writes piece by piece keeps the contract that the page names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import gymnasium as gym
import pytest

from agentgym_envs.cli.app import main
from agentgym_envs.trajectory import read_trajectories
from tests import contract
from tests.docs.snippets import blocks

PAGE = "docs/tutorials/new-scenario.md"
PARTS = ("TASKS = [", "class HuntEnv", "register(")
ID = "My/Hunt-v0"


def module_of_the_page() -> str:
    """The page's blocks of the scenario, as its reader puts them into a module."""
    found = [block.code for part in PARTS for block in blocks(PAGE, "python") if part in block.code]
    assert len(found) == len(PARTS)
    return "\n\n".join(found)


@pytest.fixture(scope="module")
def env_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("own") / "mypackage"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "hunt.py").write_text(module_of_the_page())
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder.parent)
        yield f"mypackage.hunt:{ID}"
    gym.registry.pop(ID, None)
    for name in ("mypackage.hunt", "mypackage"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_the_scenario_keeps_the_contract(check: Callable[[contract.Make], None], env_id: str) -> None:
    check(partial(gym.make, env_id))


def test_the_random_player_finishes_an_episode(env_id: str, tmp_path: Path) -> None:
    assert main(["eval", env_id, "--policy", "random", "--max-turns", "8", "--out", str(tmp_path)]) == 0
    turns = [turn for played in read_trajectories(tmp_path / "trajectories.jsonl") for turn in played.turns]
    assert turns and not any(turn.info["invalid_action"] for turn in turns)


def test_the_scenario_passes_its_validation(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    checks = ("runtime", "statistical", "static.manifest", "semantic.oracle_max", "semantic.no_solution_leakage")
    assert main(["validate", env_id, "--checks", ",".join(checks)]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_the_scenario_passes_every_check(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", env_id]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_the_scenario_has_no_finding_in_an_audit(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", env_id]) == 0
    assert "0 findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("check", "written", "instead", "says"),
    [
        (contract.oracle_solves, " {self.solved}", "", "`_state` is equal at the start and at the goal"),
        (contract.survives_garbage, " or len(text) > 6", "", "ValueError"),
        (contract.oracle_solves, "reward=1.0", "reward=0.9", "its last step must be `terminated`"),
        (
            contract.replays_from_info,
            "rng.choice(['Good luck!', 'Go!'])",
            "__import__('random').random()",
            "draw only from the `rng`",
        ),
    ],
)
def test_the_contract_finds_a_mistake(
    check: Callable[[contract.Make], None], written: str, instead: str, says: str
) -> None:
    code = module_of_the_page().partition("from agentgym_envs.registration")[0]
    assert written in code
    names: dict[str, object] = {"__name__": "hunt"}
    exec(code.replace(written, instead), names)
    with pytest.raises(AssertionError, match=says):
        check(names["HuntEnv"])  # type: ignore[arg-type]
