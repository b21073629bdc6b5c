"""Files of an export: complete or not there, one per episode or one line each, and readable by those they are for."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import TrajectoryError, UsageError
from agentgym_envs.export.atif_import import from_atif
from agentgym_envs.export.episodes import find_files, read_files
from agentgym_envs.export.formats import FORMATS, ExportCounts, ExportOptions
from agentgym_envs.export.nemo import NemoTask, config
from agentgym_envs.whole_files import replacing, write_whole
from tests.export.episodes import played, read_run, write_run
from tests.peers import run_with

CONFIG = """
import sys
from omegaconf import OmegaConf
from nemo_gym.config_types import maybe_get_server_instance_config
from nemo_gym.global_config import GlobalConfigDictParser
config = OmegaConf.create(sys.stdin.read())
config.policy_model = {"responses_api_models": {"fake": {"entrypoint": "app.py"}}}
for name, server in config.items():
    found, error = maybe_get_server_instance_config(name, server)
    print(name, found is not None, error)
parser = GlobalConfigDictParser()
parser.validate_and_populate_defaults(parser.filter_for_server_instance_configs(config), "127.0.0.1", 20000, 30000)
print("references are valid")
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path)


def write(name: str, run: Path, out: Path, **options: Any) -> ExportCounts:
    counts = ExportCounts()
    FORMATS[name].load()(read_files(find_files([run])), out, ExportOptions(**options), counts)
    return counts


def test_a_run_is_read_with_its_tokens(run: Path) -> None:
    first, second, team = read_run(run)
    assert [each.name for each in (first, second, team)] == [f"trajectories-{number}" for number in (1, 2, 3)]
    assert (len(first.tokens), len(second.tokens), len(team.tokens)) == (1, 1, 0)
    assert len({each.id for each in (first, second, team)}) == 3


def test_equal_lines_have_different_ids(run: Path) -> None:
    path = run / "trajectories.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] * 3)
    ids = [one.id for one in read_run(run)]
    assert len(set(ids)) == 3 and ids == [one.id for one in read_run(run)]


def test_an_incomplete_last_line_is_left_out(run: Path) -> None:
    path = run / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert len(read_run(run)) == 2


def test_an_invalid_line_is_named(run: Path) -> None:
    (run / "trajectories.jsonl").write_bytes(b'{"env_id": 3}\n')
    with pytest.raises(TrajectoryError, match=r"trajectories\.jsonl:1: not a trajectory"):
        read_run(run)


def test_files_of_the_same_name_keep_their_episodes_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name)
    names = [one.name for one in read_files(find_files([tmp_path]))]
    assert len(set(names)) == 6


def test_paths_without_trajectories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file or folder"):
        find_files([tmp_path / "none"])
    with pytest.raises(UsageError, match="there are no trajectories in"):
        find_files([tmp_path])


def test_atif_is_a_document_per_episode_or_per_line(run: Path, tmp_path: Path) -> None:
    assert write("atif", run, tmp_path / "out").episodes == 3
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"trajectories-{number}.atif.json" for number in (1, 2, 3)]
    write("atif", run, tmp_path / "all.atif.jsonl")
    lines = (tmp_path / "all.atif.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [json.loads(file.read_text()) for file in files]
    assert [from_atif(json.loads(line)) for line in lines] == [one.trajectory for one in read_run(run)]


def test_documents_of_an_earlier_export_are_removed(run: Path, tmp_path: Path) -> None:
    write_whole(tmp_path / "out" / "old-1.atif.json", "{}")
    write_whole(tmp_path / "out" / "notes.txt", "mine")
    write("atif", run, tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert "old-1.atif.json" not in names and "notes.txt" in names and len(names) == 4


def test_otlp_is_a_trace_per_line(run: Path, tmp_path: Path) -> None:
    counts = write("otlp", run, tmp_path / "traces.jsonl")
    assert (counts.episodes, counts.without_times) == (3, 0)
    assert all("resourceSpans" in json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines())


def test_rows_name_each_task_and_seed_once(run: Path, tmp_path: Path) -> None:
    counts = write("nemo", run, tmp_path / "out", port=9000, max_turns=7)
    rows = [json.loads(line) for line in (tmp_path / "out/rows.jsonl").read_text().splitlines()]
    keys = {(one.trajectory.env_id, one.trajectory.task.id, one.trajectory.seed) for one in read_run(run)}
    assert {(row["agentgym"]["env"], row["agentgym"]["task"], row["agentgym"]["seed"]) for row in rows} == keys
    assert counts.rows == len(rows) == len(keys) < counts.episodes + 1
    assert all(row["responses_create_params"]["input"][0]["role"] == "system" for row in rows)
    assert (tmp_path / "out/resources_servers/agentgym/requirements.txt").exists()
    compile((tmp_path / "out/resources_servers/agentgym/app.py").read_text(), "app.py", "exec")


def test_the_configuration_is_yaml_whose_parts_refer_to_each_other() -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(config("rows.jsonl", "127.0.0.1", 9000, 7))
    server = found["agentgym"]["resources_servers"]["agentgym"]
    agent = found["agentgym_gymnasium_agent"]["responses_api_agents"]["gymnasium_agent"]
    assert (server["host"], server["port"], agent["max_steps"]) == ("127.0.0.1", 9000, 7)
    assert agent["resources_server"]["name"] in found and agent["datasets"][0]["jsonl_fpath"] == "rows.jsonl"
    reference = NemoTask.of(played()).row()["agent_ref"]
    assert reference["name"] in found and reference["type"] in found[reference["name"]]


@pytest.mark.slow
def test_nemo_gym_accepts_the_configuration() -> None:
    lines = config("rows.jsonl", "127.0.0.1", 9000, 7).splitlines()
    found = run_with("nemo_gym.global_config", CONFIG, lines)
    assert found == [
        f"{name} True None"
        for name in (
            "agentgym",
            "agentgym_gymnasium_agent",
            "agentgym_gymnasium_agent_environment_server",
            "policy_model",
        )
    ] + ["references are valid"]


def test_an_interrupted_file_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("before")
    for error in (KeyboardInterrupt(), OSError(errno.ENOSPC, "full")):
        with pytest.raises(type(error)), replacing(path) as file:
            file.write(b"half")
            raise error
    assert path.read_text() == "before" and [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "text"


def test_an_interrupted_folder_keeps_its_complete_documents(run: Path, tmp_path: Path) -> None:
    def some() -> Iterator[Any]:
        yield from read_run(run)[:2]
        raise KeyboardInterrupt

    counts = ExportCounts()
    with pytest.raises(KeyboardInterrupt):
        FORMATS["atif"].load()(some(), tmp_path / "out", ExportOptions(), counts)
    files = list((tmp_path / "out").iterdir())
    assert counts.episodes == len(files) == 2
    assert all(json.loads(file.read_text())["schema_version"] == "ATIF-v1.8" for file in files)
