import socket
import subprocess
import sys
from pathlib import Path

import pytest

import agentgym_envs
from agentgym_envs.cli import doctor_machine, doctor_packages, doctor_scenarios
from agentgym_envs.errors import EnvError
from agentgym_envs.registration import REGISTRATIONS, Registration, env_ids

from .conftest import Run, environment


def test_the_json_lists_everything(run: Run) -> None:
    outcome = run("doctor", "--json")
    found = outcome.json
    assert outcome.code == 0
    assert found["healthy"] is True
    assert found["version"] == agentgym_envs.__version__
    assert {"Python", "agentgym-envs", "gymnasium", "numpy"} <= {row["name"] for row in found["core"]}
    assert [one["id"] for one in found["environments"]] == list(env_ids())
    assert {extra["name"] for extra in found["extras"]} == set(doctor_packages.extras())
    assert next(one for one in found["environments"] if one["extra"] == "textcraft")["ready"] is True


def test_the_tables_list_everything(run: Run) -> None:
    shown = run("doctor").out
    assert all(env_id in shown for env_id in env_ids())
    assert all(name in shown for name in doctor_packages.extras())
    assert "The core is complete" in shown


@pytest.mark.slow
def test_a_missing_package_comes_with_its_install_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor_packages.version_of
    monkeypatch.setattr(doctor_packages, "version_of", lambda name: None if name == "minigrid" else installed(name))
    found = run("doctor", "--json")
    babyai = next(one for one in found.json["environments"] if one["id"] == "AgentGym/BabyAI-v0")
    assert found.code == 0  # an extra does not belong to the core
    assert babyai["ready"] is False
    assert babyai["needs"] == [{"what": "minigrid", "get": "pip install 'agentgym-envs[babyai]'"}]
    assert "babyai" in found.json["get_all"]
    assert "pip install 'agentgym-envs[babyai]'" in run("doctor").out


def test_each_command_is_shown_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor_packages.version_of
    monkeypatch.setattr(
        doctor_packages, "version_of", lambda name: None if name == "webarena-verified" else installed(name)
    )
    monkeypatch.setattr(doctor_machine, "official_tasks", lambda: "the file of its tasks")
    shown = run("doctor").out
    assert shown.count("pip install 'agentgym-envs[webarena-verified]'") == 1
    assert "pip install 'agentgym-envs[webarena-verified]'  # in a separate venv" in shown


def test_a_faulty_core_exits_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor_packages.version_of
    monkeypatch.setattr(doctor_packages, "version_of", lambda name: "0.1" if name == "gymnasium" else installed(name))
    outcome = run("doctor", "--json")
    assert outcome.code == 1
    assert outcome.json["healthy"] is False
    gymnasium = next(row for row in outcome.json["core"] if row["name"] == "gymnasium")
    assert "gymnasium is 0.1, required is >=1.2" in gymnasium["found"]


def test_deep_plays_an_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor_scenarios.play(doctor_scenarios.check_environment(REGISTRATIONS[0], {}))
    assert found.ready
    assert found.played is not None
    assert found.played["success"] is True
    assert found.played["turns"] > 0
    monkeypatch.setattr("agentgym_envs.textcraft.env.TextCraftEnv._plan", lambda env: [])
    assert not doctor_scenarios.play(doctor_scenarios.check_environment(REGISTRATIONS[0], {})).ready


@pytest.mark.parametrize(
    ("fault", "message"),
    [(EnvError("it crashed"), "EnvError: it crashed"), (RuntimeError("a bug"), "RuntimeError: a bug")],
)
def test_deep_reports_the_error_of_a_failed_episode(
    fault: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise fault

    monkeypatch.setattr("agentgym_envs.textcraft.env.TextCraftEnv._act", fail)
    played = doctor_scenarios.play(doctor_scenarios.check_environment(REGISTRATIONS[0], {})).played
    assert played is not None
    assert (played["success"], played["error"]) == (False, message)


@pytest.mark.slow
def test_the_doctor_imports_no_heavy_packages() -> None:
    code = (
        "import sys; from agentgym_envs.cli import main; main(['doctor', '--json']);"
        "sys.stderr.write(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "trl", "playwright", "minigrid", "py4j", "tantivy", "pettingzoo", "verl", "ray"}
    assert not set(done.stderr.split()) & heavy


@pytest.mark.slow
def test_no_secret_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTGYM_TOKEN", "OPENAI_API_KEY", "HF_TOKEN", "WA_GITLAB_PASSWORD"):
        monkeypatch.setenv(name, "hunter2-secret")
    assert "hunter2" not in run("doctor").out + run("doctor", "--json").out


@pytest.mark.parametrize(
    ("version", "wanted", "matches"),
    [
        ("1.2", ">=1.2", True),
        ("1.2.0", "==1.2", True),
        ("1.10", ">=1.9,<2", True),
        ("2.0", ">=1.9,<2", False),
        ("3.3.1", "<3.3,>=3.2", False),
        ("2.13.0+cpu", ">=2.6", True),
        ("1.2.5", "~=1.2.3", True),
        ("1.3.0", "~=1.2.3", False),
        ("1.4.7", "==1.4.*", True),
        ("1.5", "!=1.5", False),
        ("1.0", "", True),
    ],
)
def test_fits_matches_versions_against_ranges(version: str, wanted: str, matches: bool) -> None:
    assert doctor_packages.fits(version, wanted) is matches


def test_a_requirement_is_parsed_with_its_marker() -> None:
    found = doctor_packages.parse("verl==0.9.1; (python_version < '3.13') and extra == 'verl'")
    assert found == ("verl", "==0.9.1", ("verl",), "<3.13")
    assert doctor_packages.parse('uvicorn[standard]>=0.34; extra == "serve"')[:3] == ("uvicorn", ">=0.34", ("serve",))


def test_the_extra_of_an_environment_is_named_like_its_folder() -> None:
    by_id = {row.id: doctor_scenarios.extra_of(row) for row in REGISTRATIONS}
    assert by_id["AgentGym/MiniWoB-v0"] == "miniwob"
    assert by_id["AgentGym/WebArenaOfficial-v0"] == "webarena"
    assert by_id["AgentGym/TextCraftCoop-v0"] == "multiagent"
    assert doctor_scenarios.extra_of(Registration("X/Y-v0", "somewhere.env:Y", "")) is None


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert not doctor_machine.port(number).installed
    assert doctor_machine.port(number).installed


def test_a_wrong_chromium_path_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM_PATH", "/nowhere/chromium")
    component = doctor_machine.chromium()
    assert not component.installed
    assert "/nowhere/chromium" in component.found
    assert component.get == "unset CHROMIUM_PATH"


@pytest.mark.parametrize("java_home", ["old", "new"])
def test_the_java_version_is_read_from_its_release_file(
    java_home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    version = {"old": "1.8.0_402", "new": "21.0.4"}[java_home]
    (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    monkeypatch.setattr("agentgym_envs.sciworld.java.javas", lambda: iter([str(program)]))
    component = doctor_machine.java()
    assert component.installed is (java_home == "new")
    assert version in component.found
