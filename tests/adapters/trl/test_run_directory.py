"""The directory of a run: its owner, and the actions that it allows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.run_directory import record_results
from agentgym_trl.run_directory import claim_run_directory

SETTINGS = {"env": "AgentGym/TextCraft-v0", "seed": 1, "groups": None}


def test_a_new_directory_is_made_and_marked(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert claim_run_directory(out, SETTINGS, resume=False) is None
    assert json.loads((out / "run.json").read_text()) == {"schema": 2, **SETTINGS}
    (tmp_path / "empty").mkdir()
    assert claim_run_directory(tmp_path / "empty", SETTINGS, resume=True) is None


def test_a_run_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    claim_run_directory(tmp_path, SETTINGS, resume=False)
    assert claim_run_directory(tmp_path, SETTINGS, resume=True) is None  # stopped before its first checkpoint
    for step in (5, 10, 9):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text('{"global_step": 1}')
    for name, text in (("checkpoint-11", None), ("checkpoint-12", '{"glo'), ("checkpoint-x", "{}")):  # incomplete
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "trainer_state.json").write_text(text)
    assert claim_run_directory(tmp_path, SETTINGS, resume=True) == str(tmp_path / "checkpoint-10")


def test_results_are_recorded_and_are_no_settings(tmp_path: Path) -> None:
    claim_run_directory(tmp_path, SETTINGS, resume=False)
    for step in (1, 2):
        record_results(tmp_path, {"last": {"step": step}})
    found = json.loads((tmp_path / "run.json").read_text())
    assert found == {"schema": 2, **SETTINGS, "evaluation": {"last": {"step": 2}}}
    claim_run_directory(tmp_path, SETTINGS, resume=True)


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    claim_run_directory(tmp_path, SETTINGS, resume=False)
    with pytest.raises(UsageError, match=r"already holds a run; continue it with --resume, or choose another"):
        claim_run_directory(tmp_path, SETTINGS, resume=False)


@pytest.mark.parametrize("changed", [{"seed": 2}, {"env": "Other-v0"}, {"groups": ["depth-1"]}, {"new": "setting"}])
def test_another_run_is_detected(changed: dict, tmp_path: Path) -> None:
    claim_run_directory(tmp_path, SETTINGS, resume=False)
    key, value = next(iter(changed.items()))
    with pytest.raises(UsageError) as caught:
        claim_run_directory(tmp_path, {**SETTINGS, **changed}, resume=True)
    assert f"holds another run: its {key} is {SETTINGS.get(key)!r}, not {value!r}" in str(caught.value)
    assert json.loads((tmp_path / "run.json").read_text()) == {"schema": 2, **SETTINGS}


@pytest.mark.parametrize("schema", [{}, {"schema": 1}, {"schema": 3}])
def test_a_run_of_another_version_is_refused(schema: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**schema, **SETTINGS}))
    with pytest.raises(UsageError, match="another version of agentgym-envs began this run"):
        claim_run_directory(tmp_path, SETTINGS, resume=True)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '"env"', "\x00"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_of_another_program_is_left_alone(text: str | None, resume: bool, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError, match="is not empty and holds no run of ours; choose another --out"):
        claim_run_directory(tmp_path, SETTINGS, resume=resume)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(UsageError, match="out is a file; --out must be a directory"):
        claim_run_directory(tmp_path / "out", SETTINGS, resume=False)
