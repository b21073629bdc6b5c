"""A release has one version everywhere, a complete wheel, true tables and a valid workflow."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import agentgym_envs
from agentgym_envs.registration import env_ids

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GITHUB = ROOT / ".github"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert PROJECT["version"] == agentgym_envs.__version__ == str(citation["version"])


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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names in a wheel of this tree, built by what pyproject.toml names."""
    out = tmp_path_factory.mktemp("wheel")
    # From a copy of what git knows or would add: what lies about in a tree that is worked in is no part of it.
    tree = out / "tree"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check", "-w", str(out), "."]
    if importlib.util.find_spec("hatchling") is not None:
        pip.append("--no-build-isolation")  # else pip asks its index for hatchling
    done = subprocess.run(pip, cwd=tree, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(wheel: list[str]) -> None:
    info = f"agentgym_envs-{PROJECT['version']}.dist-info"
    assert {name.partition("/")[0] for name in wheel} == {
        "agentgym_envs",
        "agentgym_trl",
        "agentgym_verifiers",
        "agentgym_verl",
        info,
    }
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"} <= set(wheel)


@pytest.mark.slow
def test_the_wheel_holds_every_file_that_the_packages_have(wheel: list[str]) -> None:
    """Pages, data and configurations, too: they are read at run time."""
    listed = ["git", "ls-files", "-z", "--cached", "agentgym_envs", "adapters"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    kept = {re.sub(r"^adapters/\w+/", "", name) for name in names if name and (ROOT / name).is_file()}
    assert {"agentgym_envs/py.typed", "agentgym_envs/textcraft/data/tasks.jsonl"} <= kept
    assert not kept - set(wheel)
    assert not [name for name in wheel if name.endswith((".pyc", ".orig", ".rej"))]


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
    assert [step["run"] for step in steps if "run" in step] == ["scripts/check ${{ inputs.what }}"]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name) for name in uses)
    assert workflow["permissions"] == {"contents": "read"}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest in workflow["jobs"]["check"]["strategy"]["matrix"]["python"]


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
