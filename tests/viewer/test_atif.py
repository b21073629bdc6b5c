"""ATIF in the viewer: documents of a folder, their sub-agents, tokens, searches, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.export.atif import to_atif
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.filters import parse_page
from tests.export.episodes import of_team, with_answers
from tests.export.test_atif import FOREIGN

INNER = {**FOREIGN, "trajectory_id": "inner", "agent": {"name": "helper", "version": "1"}}
OUTER = {**FOREIGN, "trajectory_id": "outer", "subagent_trajectories": [INNER, {**INNER, "trajectory_id": "second"}]}


def viewer_of(*paths: Path) -> Viewer:
    viewer = Viewer(paths)
    viewer.index.refresh()
    return viewer


def save(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def rows(viewer: Viewer, **wanted: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = viewer.page(parse_page(list(wanted.items())))["rows"]
    return found


def test_sub_agents_of_others_are_episodes(tmp_path: Path) -> None:
    viewer = viewer_of(save(tmp_path / "agent" / "trajectory.json", OUTER).parent)
    found = rows(viewer)
    assert [row["task"] for row in found] == ["outer", "inner", "second"]
    assert [row["agent"] for row in found] == ["terminus", "helper", "helper"]
    assert [viewer.episode(row["id"])["turns"][1]["action"] for row in found] == ["Done."] * 3


def test_our_own_records_are_shown_as_before(tmp_path: Path) -> None:
    one = of_team()
    viewer = viewer_of(save(tmp_path / "t.atif.json", to_atif(one)))
    (row,) = rows(viewer)
    shown = viewer.episode(row["id"])
    assert shown["team"] is not None and row["env"] == one.trajectory.env_id
    assert [turn["action"] for turn in shown["turns"]] == one.trajectory.actions


def test_tokens_are_shown_by_their_ids(tmp_path: Path) -> None:
    one = with_answers("go")
    viewer = viewer_of(save(tmp_path / "t.atif.json", to_atif(one)))
    (row,) = rows(viewer)
    (segment,) = viewer.tokens(row["id"])["segments"]
    assert row["has_tokens"] and segment["ids"] == one.tokens[0].ids and segment["mask"] == one.tokens[0].mask
    assert segment["pieces"][0] == f"⟨{segment['ids'][0]}⟩"


def test_a_document_without_tokens_has_a_note(tmp_path: Path) -> None:
    viewer = viewer_of(save(tmp_path / "t.atif.json", to_atif(ExportEpisode(with_answers("go").trajectory))))
    (row,) = rows(viewer)
    assert not row["has_tokens"] and viewer.tokens(row["id"])["note"]


def test_texts_are_searched(tmp_path: Path) -> None:
    save(tmp_path / "a.atif.json", FOREIGN)
    save(tmp_path / "b.atif.json", to_atif(with_answers("stay")))
    viewer = viewer_of(tmp_path)
    for text, count in (("And?", 1), ("x.py", 1), ("stay", 1), ("cat", 1), ("nowhere", 0)):
        assert len(rows(viewer, q=text)) == count, text


def test_a_list_and_lines_hold_several_documents(tmp_path: Path) -> None:
    save(tmp_path / "list.atif.json", [FOREIGN, {**FOREIGN, "session_id": "s-2"}])
    (tmp_path / "lines.atif.jsonl").write_text(f"{json.dumps(FOREIGN)}\n{json.dumps(FOREIGN)}\n")
    assert len(rows(viewer_of(tmp_path))) == 4


def test_other_json_files_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    save(tmp_path / "trajectory.json", {"schema_version": "2"})
    save(tmp_path / "package.json", FOREIGN)
    assert rows(viewer_of(tmp_path)) == [] and rows(viewer_of(tmp_path / "package.json")) != []


@pytest.mark.parametrize("damage", ["truncated", "steps", "tokens"])
def test_damaged_documents_are_problems_not_crashes(tmp_path: Path, damage: str) -> None:
    text = json.dumps(FOREIGN)
    if damage == "truncated":
        text = text[:-9]
    elif damage == "steps":
        text = text.replace('"agent", "message"', '"agent", "massage"').replace('"message": "Looking."', '"message": 3')
        text = text.replace('"step_id": 3', '"step_id": 3, "observation": 3')
    else:
        text = text.replace("[4, 5]", '"4"')
    path = tmp_path / "t.atif.json"
    path.write_text(text)
    viewer = viewer_of(path)
    if damage == "tokens":
        assert viewer.tokens(rows(viewer)[0]["id"])["note"].startswith("The tokens cannot be shown")
    else:
        assert any(str(path) in problem for problem in viewer.summary()["problems"]) or rows(viewer)


def test_a_replaced_document_is_read_again(tmp_path: Path) -> None:
    path = save(tmp_path / "t.atif.json", FOREIGN)
    viewer = viewer_of(path)
    assert [row["task"] for row in rows(viewer)] == ["s-1"]
    save(path, {**FOREIGN, "session_id": "another"})
    viewer.index.refresh()
    assert [row["task"] for row in rows(viewer)] == ["another"]
