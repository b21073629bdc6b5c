"""`agentgym view`, in this process and in one of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agentgym_envs.cli import main, serve, view
from tests.cli.conftest import command, environment
from tests.waiting import SECONDS, until

from .records import record, save
from .test_export import Page


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setattr(serve, "run", lambda *_: pytest.fail("it serves, until it is stopped"))


def run(*words: object) -> int:
    return main(["view", *map(str, words)])


def some(path: Path) -> Path:
    return save(
        path,
        record("a", success=True, score=1.0),
        record("b", env_id="AgentGym/TextCraft-v0"),
        record("c", group="hard"),
        record("d", group="hard", success=True, score=1.0),
    )


@pytest.mark.parametrize(
    ("words", "tasks"),
    [
        ((), "abcd"),
        (("--limit", 3), "abc"),
        (("--success",), "ad"),
        (("--failure", "--groups", "hard"), "c"),
        (("--env", "textcraft"), "b"),
        (("--env", "A-v0", "--env", "textcraft"), "abcd"),
        (("--episode", 3, "--episode", 1), "bd"),
    ],
)
def test_export_contains_the_selection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[object, ...], tasks: str
) -> None:
    some(tmp_path / "t.jsonl")
    assert run(tmp_path, "--export", "out/page.html", *words) == 0
    assert f"{len(tasks)} episodes, " in capsys.readouterr().out
    data = Page((tmp_path / "out" / "page.html").read_text()).data
    assert "".join(row["task"] for row in data["rows"]) == tasks


def test_gif_shows_the_first_selected_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some(tmp_path / "t.jsonl")
    assert run("t.jsonl", "--gif", "out/a.gif", "--failure", "--groups", "hard") == 0
    assert capsys.readouterr().out.startswith("episode 2, ")
    assert (tmp_path / "out" / "a.gif").read_bytes().startswith(b"GIF89a")


def test_large_export_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some(tmp_path / "t.jsonl")
    monkeypatch.setattr(view, "_LARGE_MB", 0)
    assert run("t.jsonl", "--export", "page.html") == 0
    assert "--limit" in capsys.readouterr().err


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gone",), "no file or folder gone"),
        (("empty.jsonl",), "no episode in"),
        (("other.jsonl",), "first line"),
        (("t.jsonl", "--limit", "3"), "--export FILE.html"),
        (("t.jsonl", "--export", "folder"), "is a folder"),
        (("t.jsonl", "--gif", "folder"), "is a folder"),
        (("t.jsonl", "--export", "x.html", "--groups", "none"), "no episode is left"),
        (("t.jsonl", "--export", "x.html", "--episode", "77"), "no episode 77"),
        (("t.jsonl", "--host", "no such host"), "is not an address of this machine"),
    ],
)
def test_errors_print_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    some(tmp_path / "t.jsonl")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "other.jsonl").write_text('{"question": 1}\n')
    assert run(*words) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert not (tmp_path / "x.html").exists()


def test_a_port_in_use_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some(tmp_path / "t.jsonl")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run("--port", taken.getsockname()[1], "--no-browser") == 2
    assert "--port 0" in capsys.readouterr().err


def test_missing_packages_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some(tmp_path / "t.jsonl")
    monkeypatch.delitem(sys.modules, "agentgym_envs.viewer.server", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    assert run("t.jsonl") == 1
    assert "pip install 'agentgym-envs[view]'" in capsys.readouterr().err


def test_empty_folder_lists_the_searched_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(view, "_serve", lambda *_: None)
    assert run() == 0
    error = capsys.readouterr().err
    assert "There is no episode in" in error
    assert "step{N}/{rank}.json" in error


def test_browser_is_opened_if_there_is_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    assert not view._has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert view._has_browser()


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_view_serves_until_interrupted(tmp_path: Path, how: signal.Signals) -> None:
    path = some(tmp_path / "t.jsonl")
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        process = subprocess.Popen(
            command("view", path, "--no-browser"), env=environment(), stdout=file, stderr=subprocess.PIPE, text=True
        )
    try:
        until(lambda: "\n" in out.read_text() or process.poll() is not None)
        found = re.match(r"Viewing at (http://127\.0\.0\.1:\d+) until Ctrl-C · 4 episodes in 1 file\n", out.read_text())
        assert found, process.communicate()
        assert httpx.get(f"{found[1]}/api/summary").json()["count"] == 4
        save(path, record("new"))
        until(lambda: httpx.get(f"{found[1]}/api/summary").json()["count"] == 5)
        assert "AgentGym" in httpx.get(found[1]).text
        assert httpx.get(f"{found[1]}/api/summary", headers={"host": "evil.example"}).status_code == 421
    finally:
        os.kill(process.pid, how)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == {signal.SIGTERM: 0, signal.SIGINT: 130}[how]
    assert "Traceback" not in errors
