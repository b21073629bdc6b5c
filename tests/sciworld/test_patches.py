"""The changed classes of the simulator: only the calls in the table differ, and nothing that a policy sees."""

import io
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.sciworld import java, patches
from agentgym_envs.sciworld.env import SciWorldEnv
from agentgym_envs.sciworld.java import simulator_jar
from agentgym_envs.sciworld.patches import CLASSES, PatchedClass, patch_jar, redirect, write_patches
from agentgym_envs.sciworld.tasks import choose_kinds, table
from tests.plugins.rotation import part

JUNK = (
    *("", "0", "1", "cancel", "look at door", "go to door", "look at substance", "look around", "inventory", "wait1"),
    *("use thermometer on agent", "pour cup in cup", "connect terminal to terminal", "pick up cup", "help"),
)
MEMO = files("agentgym_envs.sciworld") / "java_classes" / "agentgym"


def simulator_classes() -> dict[str, bytes]:
    with zipfile.ZipFile(simulator_jar()) as archive:
        return {name: archive.read(f"{name}.class") for name in CLASSES}


def test_the_installed_simulator_is_patched() -> None:
    written = io.BytesIO()
    assert write_patches(simulator_jar(), written)
    with zipfile.ZipFile(written) as jar:
        assert {f"{name}.class" for name in CLASSES} < set(jar.namelist())
        assert all(jar.read(f"{name}.class") != data for name, data in simulator_classes().items())


def test_only_the_redirected_calls_differ() -> None:
    for name, data in simulator_classes().items():
        patched = redirect(data, CLASSES[name].redirects)
        constants, more = patches._read_constants(data), patches._read_constants(patched)
        assert redirect(data, ()) == data and more[: len(constants)] == constants
        code, changed = data[10 + sum(map(len, constants)) :], patched[10 + sum(map(len, more)) :]
        places = [index for index, (old, new) in enumerate(zip(code, changed, strict=True)) if old != new]
        calls = [index for index in places if (code[index], changed[index]) == (0xB6, 0xB8)]
        assert len(calls) == len(CLASSES[name].redirects)
        assert set(places) <= {call + offset for call in calls for offset in range(3)}


def test_another_simulator_is_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "scienceworld.jar"
    with zipfile.ZipFile(other, "w") as jar:
        for name, data in simulator_classes().items():
            jar.writestr(f"{name}.class", data + b"\0")
    written = io.BytesIO()
    assert not write_patches(other, written) and not written.getvalue()
    with patch_jar(other) as found:
        assert found == []


def test_the_jar_is_removed() -> None:
    with patch_jar(simulator_jar()) as found:
        assert Path(found[0]).stat().st_size > 1000
    assert not Path(found[0]).exists()


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler")
def test_the_class_files_are_those_of_their_source(tmp_path: Path) -> None:
    said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True)
    if not (said.stdout + said.stderr).startswith("javac 17."):
        pytest.skip("another compiler may write other bytes")
    command = ["javac", "--release", "17", "-g:none", "-cp", str(simulator_jar()), "-d", str(tmp_path)]
    subprocess.run([*command, str(MEMO / "StepMemo.java")], check=True)
    for name in ("StepMemo.class", "StepMemo$Known.class", "StepMemo$Contents.class"):
        assert (tmp_path / "agentgym" / name).read_bytes() == (MEMO / name).read_bytes()


# Against the simulator's own classes


@contextmanager
def unchanged(_: Path) -> Iterator[list[str]]:
    yield []


@pytest.fixture
def make_pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[SciWorldEnv, SciWorldEnv]]]:
    """Return a function that makes an environment with our classes, and one with the simulator's own.

    Environments with the same options share a JVM, also that of an earlier test, so each set of classes needs a heap
    size of its own.
    """
    made: list[SciWorldEnv] = []

    def make(ours_mb: int = 320, **options: Any) -> tuple[SciWorldEnv, SciWorldEnv]:
        for heap_mb, found in ((ours_mb, patch_jar), (319, unchanged)):
            monkeypatch.setattr(java, "patch_jar", found)
            made.append(SciWorldEnv(split=None, jvms=1, call_seconds=600.0, heap_mb=heap_mb, **options))
            made[-1].reset(seed=0)
        return made[-2], made[-1]

    yield make
    for env in made:
        env.close()


def differences(ours: SciWorldEnv, theirs: SciWorldEnv, kind: str, steps: int) -> list[str]:
    """Play random commands in both, and return those that gave something else."""
    rng = random.Random(kind)
    task = {"task": f"sciworld/{kind}/{rng.randrange(len(table().kinds[kind].goals))}"}
    found = [] if ours.reset(seed=0, options=task) == theirs.reset(seed=0, options=task) else ["reset"]
    for _ in range(steps):
        command = rng.choice(JUNK) if rng.random() < 0.3 else theirs.random_command(rng)
        if ours._stop is None and not command.startswith("focus") and ours.step(command) != theirs.step(command):
            found.append(command)
    for query in ("object_tree", "possible_objects", "available_actions"):
        if getattr(ours.world, query)() != getattr(theirs.world, query)():
            found.append(query)
    return found


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("simplifications", ["", "easy"])
def test_our_classes_change_no_bytes(make_pair: Callable[..., Any], simplifications: str) -> None:
    ours, theirs = make_pair(simplifications=simplifications)
    for kind in part(choose_kinds("all"), f"patches {simplifications}"):
        assert differences(ours, theirs, kind, 15) == [], kind


@pytest.mark.slow
@pytest.mark.rotating
def test_names_remembered_for_too_long_are_noticed(
    make_pair: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: without the redirect that forgets the names of the last command."""
    name = "scienceworld/input/InputParser"
    kept = tuple(call for call in CLASSES[name].redirects if call.static_method != "begin")
    monkeypatch.setattr(patches, "CLASSES", {**CLASSES, name: PatchedClass(CLASSES[name].sha256, kept)})
    ours, theirs = make_pair(ours_mb=321, simplifications="easy")
    for env in (ours, theirs):
        env.reset(seed=0, options={"task": "sciworld/boil/0"})
        for command in ("teleport to kitchen", "pick up thermometer"):
            assert env.step(command)[-1]["invalid_action"] is None
    unknown = [env.step("look at thermometer in inventory")[-1]["invalid_action"] for env in (ours, theirs)]
    assert unknown[0] is not None and unknown[1] is None
