"""A release has one version everywhere, a complete wheel, true tables and a valid workflow."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from releasing.__main__ import _arguments
from releasing.artefacts import Artefact, build, faults, metadata_faults
from releasing.project import distributions, versions

import agentgym_envs
from agentgym_envs.registration import env_ids

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GITHUB = ROOT / ".github"
(PACKAGE,) = distributions(ROOT)
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere() -> None:
    assert set(versions(ROOT).values()) == {PROJECT["version"]} == {agentgym_envs.__version__}


def test_the_changelog_has_this_version_or_marks_it_unreleased() -> None:
    headings = re.findall(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert len(headings) == len(set(headings))
    released = headings[1:]
    assert not released or released[0] == PROJECT["version"], "the newest release is not the version of the package"


def test_the_citation_has_the_required_fields() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"].rstrip(".") == PROJECT["description"]
    assert all(reference["authors"] and reference["title"] for reference in citation["references"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Artefact]:
    """The sdist of the tracked files, and a wheel built from it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("artefacts")
    return build(PACKAGE, sys.executable, folder, folder / "dist")


@pytest.mark.slow
def test_sdist_and_wheel_have_the_tracked_files_and_nothing_else(made: list[Artefact]) -> None:
    """Pages, data and configurations, too: they are read at run time."""
    assert [artefact.kind for artefact in made] == ["sdist", "wheel"]
    assert {artefact.kind: list(faults(PACKAGE, artefact)) for artefact in made} == {"sdist": [], "wheel": []}
    packages = {name.partition("/")[0] for name in made[1].files if ".dist-info/" not in name}
    assert packages == {"agentgym_envs", "agentgym_trl", "agentgym_verifiers", "agentgym_verl"}
    assert {"agentgym_envs/py.typed", "agentgym_envs/textcraft/data/tasks.jsonl"} <= set(made[1].files)


@pytest.mark.slow
def test_the_metadata_is_that_of_the_project(made: list[Artefact]) -> None:
    known = frozenset(pytest.importorskip("trove_classifiers").classifiers)
    assert [list(metadata_faults(PACKAGE, artefact, known)) for artefact in made] == [[], []]
    assert f"'{PROJECT['classifiers'][0]}' is not a classifier" in list(
        metadata_faults(PACKAGE, made[0], known - {PROJECT["classifiers"][0]})
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("agentgym_envs/__pycache__/core.cpython-311.pyc", b"", "must not be shipped"),
        ("agentgym_envs/notes.txt", b"", "does not belong there"),
        ("../outside", b"", "leads out of the archive"),
        ("agentgym_envs/core.py", b"x" * 9_000_000, "has 9.0 MB"),
        ("agentgym_envs/core.py", b"key = 'AKIA" + b"A" * 16 + b"'", "contains a secret"),
        ("agentgym_envs/core.py", b"-----BEGIN RSA PRIVATE KEY-----\n" + b"a" * 64, "contains a secret"),
        ("agentgym_envs/core.py", b"", "agentgym_envs/core.py is not as in the repository"),
        ("agentgym_envs/core.py", None, "agentgym_envs/core.py is missing"),
    ],
)
def test_a_planted_fault_of_an_artefact_is_found(
    made: list[Artefact], name: str, data: bytes | None, part: str
) -> None:
    files = {} if data is None else {name: data}
    assert part in "; ".join(faults(PACKAGE, replace(made[1], files=files)))


@pytest.mark.slow
def test_the_page_of_task_tables_is_up_to_date() -> None:
    made = script("make_task_docs")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run python scripts/make_task_docs.py"


def test_the_page_of_task_tables_names_every_environment() -> None:
    page = text("docs/tasks.md")
    assert all(f"| `{env_id}` |" in page for env_id in env_ids())


def test_the_workflow_runs_the_check_with_pinned_actions() -> None:
    workflow = yaml.safe_load((GITHUB / "workflows" / "check.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["check"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["scripts/check $WHAT"]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert uses and all(PINNED.fullmatch(name) for name in uses)
    assert workflow["permissions"] == {"contents": "read"}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest in workflow["jobs"]["check"]["strategy"]["matrix"]["python"]


def workflow(name: str) -> Any:
    return yaml.safe_load((GITHUB / "workflows" / name).read_text(encoding="utf-8"))


def uses(job: dict[str, Any]) -> list[str]:
    return [step["uses"].partition("@")[0] for step in job.get("steps", ()) if "uses" in step]


def test_the_release_workflow_publishes_the_tested_files() -> None:
    release = workflow("release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None} and release["permissions"] == {}
    jobs = release["jobs"]
    assert jobs["check"]["with"] == {"what": "all"} and jobs["test"]["needs"] == "build"
    assert set(jobs["publish"]["needs"]) == {"check", "test"} and jobs["announce"]["needs"] == "publish"
    builders = [name for name, job in jobs.items() for step in job.get("steps", ()) if _builds(step.get("run", ""))]
    assert builders == ["build"]
    assert [name for name, job in jobs.items() if "actions/upload-artifact" in uses(job)] == ["build"]
    for name in ("publish", "publish-to-test-index"):
        job = jobs[name]
        assert job["permissions"] == {"id-token": "write"} and job["environment"]["name"] in ("pypi", "testpypi")
        assert uses(job) == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]  # and no code of ours
        assert not [step for step in job["steps"] if "run" in step or "password" in step.get("with", {})]
    others = [job for name, job in jobs.items() if not name.startswith("publish")]
    assert not [job for job in others if "id-token" in job["permissions"]]


def _builds(command: str) -> bool:
    return "scripts/release" in command and "--built" not in command


def test_every_action_of_every_workflow_is_pinned() -> None:
    for path in (GITHUB / "workflows").glob("*.yml"):
        jobs = workflow(path.name)["jobs"].values()
        named = [step["uses"] for job in jobs for step in job.get("steps", ()) if "uses" in step]
        assert all(PINNED.fullmatch(name) for name in named), path.name


def test_the_options_of_the_workflow_are_those_of_the_script() -> None:
    for job in workflow("release.yml")["jobs"].values():
        for step in job.get("steps", ()):
            if step.get("run", "").startswith("scripts/release "):
                assert _arguments(step["run"].split()[1:]).dry_run


@pytest.mark.slow
def test_the_workflows_follow_the_schema() -> None:
    pytest.importorskip("check_jsonschema")
    names = map(str, (GITHUB / "workflows").glob("*.yml"))
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *names]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("zizmor") is None, reason="zizmor is not installed")
def test_zizmor_finds_no_risk_in_the_workflows() -> None:
    words = ["zizmor", "--offline", "--min-severity", "medium", str(GITHUB / "workflows")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_nightly_workflow_runs_every_slice() -> None:
    nightly = yaml.safe_load((GITHUB / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
    assert nightly[True]["schedule"]  # YAML reads the key `on` as true
    assert nightly["jobs"]["all"] == {"uses": "./.github/workflows/check.yml", "with": {"what": "all"}}


def test_issue_forms_are_valid() -> None:
    forms = [path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(forms) == 3
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"]
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids))
        assert all(part["attributes"].get("label") for part in form["body"])
