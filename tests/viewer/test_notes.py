"""Notes and tags: kept next to the record, safe against other writers, and written only by the viewer's own page."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.viewer import notes
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.filters import parse_page
from agentgym_envs.viewer.index import EpisodeEntry, Index
from agentgym_envs.viewer.notes import Note, NoteConflict, NoteNotWritten, notes_path, read_notes, write_note
from agentgym_envs.viewer.server import make_app
from tests.viewer.records import record, save

Post = Callable[..., httpx.Response]
OWN = "http://127.0.0.1:8000"
NOTE = {"text": "odd", "tags": ["a"], "version": 0}


def entries_of(folder: Path) -> list[EpisodeEntry]:
    return Index([folder]).refresh().entries


def listed(viewer: Viewer, **parameters: str) -> list[int]:
    return [row["id"] for row in viewer.page(parse_page(list(parameters.items())))["rows"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "t.jsonl", *(record(f"t/{n}", "look", seed=n) for n in range(4)))
    return tmp_path


@pytest.fixture
def post(folder: Path) -> Post:
    """A client that sends notes with the headers of the viewer's page, except for the given ones."""
    apps: dict[str, Any] = {}

    def post(body: Any = NOTE, *, number: str = "1", bound: str = "127.0.0.1", **headers: str | None) -> httpx.Response:
        app = apps.setdefault(bound, make_app(Viewer([folder]), host=bound))

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=OWN) as client:
                token = (await client.get("/api/session")).json()["token"]
                given = {"Origin": OWN, "X-AgentGym-Token": token, **headers}
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                known = {name: value for name, value in given.items() if value is not None}
                return await client.post(f"/api/episodes/{number}/note", content=content, headers=known)

        return asyncio.run(ask())

    return post


def test_note_survives_a_restart_and_filters_the_list(folder: Path, post: Post) -> None:
    assert post().json() == {"text": "odd", "tags": ["a"], "version": 1}
    assert post({"text": "", "tags": [" b  c ", "b c", ""], "version": 0}, number="3").json()["tags"] == ["b c"]
    viewer = Viewer([folder])
    assert viewer.episode(1)["note"] == {"text": "odd", "tags": ("a",), "version": 1}
    assert (viewer.summary()["tags"], viewer.summary()["count"]) == (["a", "b c"], 4)
    assert (
        listed(viewer, tag="a") == [1] and listed(viewer, noted="1") == [1, 3] and listed(viewer, noted="0") == [0, 2]
    )
    rows = viewer.page(parse_page([]))["rows"]
    assert [(row["tags"], row["noted"]) for row in rows[1:4:2]] == [(["a"], True), (["b c"], False)]


def test_note_of_another_viewer_appears(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "REFRESH_SECONDS", 0.0)
    viewer = Viewer([folder])
    before = viewer.summary()["version"]
    write_note(entries_of(folder)[2], "seen", [], 0)
    assert viewer.summary()["version"] > before
    assert listed(viewer, noted="1") == [2]
    write_note(entries_of(folder)[2], "", [], 1)
    assert listed(viewer, noted="1") == []


@pytest.mark.parametrize(
    ("headers", "bound"),
    [
        ({"X-AgentGym-Token": None}, "127.0.0.1"),
        ({"X-AgentGym-Token": "x"}, "127.0.0.1"),
        ({"Origin": "http://evil.example"}, "127.0.0.1"),
        ({"Origin": "null"}, "127.0.0.1"),
        ({"Origin": "http://127.0.0.1:8001"}, "127.0.0.1"),
        ({"X-AgentGym-Token": "None"}, "0.0.0.0"),
    ],
)
def test_writes_of_others_are_refused(post: Post, folder: Path, headers: dict[str, Any], bound: str) -> None:
    assert post(bound=bound, **headers).status_code == 403
    assert not notes_path(folder / "t.jsonl").exists()


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"\xff", b"[" * 50_000, {}, {**NOTE, "tags": [1]}, {**NOTE, "text": 1}, {**NOTE, "version": "0"},
     {**NOTE, "text": "x" * 10_001}, {**NOTE, "tags": ["x" * 41]}, {**NOTE, "tags": list(map(str, range(21)))},
     b" " * 200_000],
)  # fmt: skip
def test_malformed_notes_are_refused(post: Post, folder: Path, body: Any) -> None:
    assert post(body).status_code == 400
    assert not read_notes(folder / "t.jsonl")


def test_changed_note_is_not_overwritten(post: Post) -> None:
    assert post().status_code == 200
    assert post({**NOTE, "text": "mine"}).status_code == 409
    assert post({**NOTE, "text": "mine", "version": 1}).json()["version"] == 2
    assert post(number="99").status_code == 404 and post(number="x").status_code == 404


def test_unwritable_folder_is_reported(post: Post, folder: Path) -> None:
    notes_path(folder / "t.jsonl").mkdir()  # a read-only folder would not stop root
    reply = post()
    assert reply.status_code == 403 and "notes.jsonl" in reply.json()["error"]
    assert Viewer([folder]).episode(1)["note"]["version"] == 0


def test_full_disk_keeps_the_file_readable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entries_of(folder)[0]
    write_note(entry, "kept", [], 0)
    monkeypatch.setattr(notes, "MAX_FILE_BYTES", notes_path(folder / "t.jsonl").stat().st_size + 10)
    with pytest.raises(NoteNotWritten, match="full"):
        write_note(entry, "lost", [], 1)
    monkeypatch.undo()
    assert [note.text for note in read_notes(folder / "t.jsonl").values()] == ["kept"]


def test_simultaneous_writers_lose_nothing(folder: Path) -> None:
    """Each thread adds to one shared note and to its own; a conflict is repeated with the new version."""
    found = [entries_of(folder) for _ in range(4)]

    def write(number: int) -> None:
        for turn in range(5):
            write_note(found[number][number], f"{number}.{turn}", [], turn)

    def add_to_first(name: str) -> None:
        for _ in range(5):
            while True:
                now = next(note for key, note in read_notes(folder / "t.jsonl").items() if key[1] == 0)
                try:
                    write_note(found[0][0], f"{now.text}{name}", [], now.version)
                    break
                except NoteConflict:
                    continue

    threads = [threading.Thread(target=write, args=(n,)) for n in (1, 2, 3)]
    write_note(found[0][0], "", [], 0)
    threads += [threading.Thread(target=add_to_first, args=(name,)) for name in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, *others = sorted(read_notes(folder / "t.jsonl").items(), key=lambda item: item[0][1])
    assert sorted(first[1].text) == ["x"] * 5 + ["y"] * 5 and first[1].version == 11
    assert [note.text for _, note in others] == ["1.4", "2.4", "3.4"]


@given(st.binary(max_size=60), st.booleans())
def test_broken_lines_are_skipped(tmp_path_factory: pytest.TempPathFactory, junk: bytes, torn: bool) -> None:
    folder = tmp_path_factory.mktemp("notes")
    save(folder / "t.jsonl", record("t"))
    entry = entries_of(folder)[0]
    write_note(entry, "first", [], 0)
    with notes_path(folder / "t.jsonl").open("ab") as file:
        file.write(junk if torn else junk + b"\n")
    assert write_note(entry, "second", ["x"], 1) == Note("second", ("x",), 2)
    assert list(read_notes(folder / "t.jsonl").values()) == [Note("second", ("x",), 2)]


def test_note_follows_its_episode_to_another_place(folder: Path) -> None:
    write_note(entries_of(folder)[2], "mine", [], 0)
    path = folder / "t.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    assert listed(Viewer([folder]), noted="1") == [1]


def test_link_finds_the_episode_under_its_new_number(folder: Path, tmp_path: Path) -> None:
    mark = Viewer([folder]).episode(2)["mark"]
    save(tmp_path / "a.jsonl", record("before", "x"))
    viewer = Viewer([folder])
    assert viewer.find(2, mark) == 3 and viewer.episode(3)["row"]["task"] == "t/2"


def test_files_of_notes_are_no_episodes(folder: Path) -> None:
    write_note(entries_of(folder)[0], "x" * 100, [], 0)
    index = Index([folder])
    assert len(index.refresh().entries) == 4 and not index.snapshot.problems
    with pytest.raises(UsageError):
        write_note(entries_of(folder)[0], "x" * 10_001, [], 1)
