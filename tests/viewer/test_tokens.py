"""The tokens of an episode, from the file next to its trajectories."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.rollout.token_file import TokenWriter, tokens_path
from agentgym_envs.trajectory import TrajectoryWriter
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.tokens import has_tokens, tokens_of
from tests.viewer.token_episodes import CODEC, episode


def record(path: Path, *episodes: list[TokenTrajectory]) -> list[bytes]:
    with TrajectoryWriter(path) as writer, TokenWriter(path) as tokens:
        for segments in episodes:
            tokens.write(writer.write(segments[-1].trajectory), segments, CODEC)
    return path.read_bytes().splitlines(keepends=True)


def test_each_episode_has_its_own_tokens(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    one, two = episode("go"), episode("up", "wait")
    lines = record(path, [one], [two, two])
    shown = tokens_of(path, lines[1])
    assert shown["note"] is None and len(shown["segments"]) == 2
    (first,) = tokens_of(path, lines[0].rstrip(b"\n"))["segments"]
    assert first["prompt"] == CODEC.pieces(one.prompt_ids) and first["prompt_ids"] == one.prompt_ids
    assert first["pieces"] == CODEC.pieces(one.ids) and first["ids"] == one.ids
    assert first["mask"] == one.assistant_mask and first["rewards"] == one.rewards
    assert first["logprobs"] == one.logprobs
    json.dumps(shown, allow_nan=False)


def test_missing_or_broken_tokens_have_a_note(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    (line, *_) = record(path, [replace(episode("go"), logprobs=None)], [episode("go")], [episode("up")])
    note = tokens_of(path, line)["note"]
    assert "no log-probabilities" in note and "2 episodes of this file are identical" in note
    missing = tokens_of(path, b'{"another": "line"}')
    assert missing["segments"] == [] and "--record-tokens" in missing["note"] and "--tokens" in missing["note"]
    tokens_path(path).write_bytes(tokens_path(path).read_bytes().replace(b'"mask"', b'"musk"'))
    broken = tokens_of(path, line)
    assert broken["segments"] == [] and "cannot be read" in broken["note"] and str(tmp_path) not in broken["note"]


def test_viewer_finds_token_files(tmp_path: Path) -> None:
    record(tmp_path / "with" / "t.jsonl", [episode("go")])
    with TrajectoryWriter(tmp_path / "without" / "t.jsonl") as writer:
        writer.write(episode("go").trajectory)
    viewer = Viewer([tmp_path])
    assert viewer.summary()["count"] == 2, "token files are not trajectories"
    found: list[Any] = [viewer.tokens(number)["segments"] for number in (0, 1)]
    assert sorted(map(len, found)) == [0, 1]
    assert has_tokens(tmp_path / "with" / "t.jsonl") and not has_tokens(tmp_path / "without" / "t.jsonl")


@pytest.mark.parametrize("logprobs", [None, float("nan")])
def test_non_finite_logprobs_become_null(logprobs: float | None, tmp_path: Path) -> None:
    one = episode("go")
    one = replace(one, logprobs=None if logprobs is None else [logprobs] * len(one.ids))
    (line,) = record(tmp_path / "t.jsonl", [one])
    json.dumps(tokens_of(tmp_path / "t.jsonl", line), allow_nan=False)
