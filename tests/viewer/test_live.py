"""Files that are written while the viewer reads them."""

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pytest import TempPathFactory

from agentgym_envs.viewer.follow import Tail
from agentgym_envs.viewer.index import Index
from tests.waiting import until

from .records import logged, record, save, save_log


def tasks(index: Index) -> list[tuple[int, str]]:
    return [(entry.id, entry.summary.task) for entry in index.refresh().entries]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_every_line_is_read_once_for_any_writes(tmp_path_factory: TempPathFactory, pieces: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    path.touch()
    tail, seen = Tail(path), list[tuple[int, bytes]]()
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        if tail.look() == "grown":
            seen += tail.lines()
    whole = b"".join(pieces)
    lines = [line for line in whole.splitlines(keepends=True)] if b"\r" not in whole else None
    ends = [index + 1 for index, byte in enumerate(whole) if byte == 10]
    assert b"".join(line for _, line in seen) == whole[: ends[-1] if ends else 0]
    assert [start for start, _ in seen] == [0, *ends][:-1]
    assert tail.torn == (not whole.endswith(b"\n") and bool(whole))
    assert lines is None or len(seen) <= len(lines)


def test_incomplete_line_is_read_when_complete(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index, whole = Index([tmp_path]), (record("b").to_json() + "\n").encode()
    for offset in (1, 30, len(whole) - 1):
        with path.open("r+b") as file:
            file.seek(0, 2)
            file.write(whole[:offset])
        assert tasks(index) == [(0, "a")]
        assert "incomplete" in index.snapshot.problems[0]
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - offset)
    with path.open("ab") as file:
        file.write(whole)
    assert tasks(index) == [(0, "a"), (1, "b")]
    assert not index.snapshot.problems


def test_version_changes_only_with_the_episodes(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index = Index([tmp_path])
    versions = [index.refresh().version for _ in range(3)]
    save(path, record("b"))
    versions += [index.refresh().version for _ in range(2)]
    assert versions == [1, 1, 1, 2, 2]


def test_new_files_and_folders_are_found(tmp_path: Path) -> None:
    index = Index([tmp_path])
    assert tasks(index) == []
    empty = tmp_path / "later.jsonl"
    empty.touch()
    save(tmp_path / "new" / "t.jsonl", record("a"))
    until(lambda: tasks(index) == [(0, "a")])  # folders are not searched at every request
    save(empty, record("b"))
    until(lambda: tasks(index) == [(0, "a"), (1, "b")])


def test_replaced_file_gets_new_episode_numbers(tmp_path: Path) -> None:
    path, other = save(tmp_path / "t.jsonl", record("a"), record("b")), save(tmp_path / "u.jsonl", record("c"))
    index = Index([path, other])
    assert tasks(index) == [(0, "a"), (1, "b"), (2, "c")]
    path.unlink()
    save(path, record("d"), record("e"), record("f"))
    assert tasks(index) == [(2, "c"), (3, "d"), (4, "e"), (5, "f")]
    assert index.get(0) is None
    path.write_bytes(path.read_bytes()[: len(record("d").to_json()) + 1])
    assert tasks(index) == [(2, "c"), (6, "d")]


def test_longer_copy_keeps_episode_numbers(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index = Index([path])
    assert tasks(index) == [(0, "a")]
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    save(copy, record("b"))
    copy.replace(path)
    assert tasks(index) == [(0, "a"), (1, "b")]


def test_episodes_of_deleted_file_are_removed(tmp_path: Path) -> None:
    path, other = save(tmp_path / "t.jsonl", record("a")), save(tmp_path / "u.jsonl", record("b"))
    index = Index([tmp_path])
    assert tasks(index) == [(0, "a"), (1, "b")]
    path.unlink()
    assert tasks(index) == [(1, "b")]
    other.rename(tmp_path / "v.jsonl")
    until(lambda: tasks(index) == [(2, "b")])


def test_agentgym_rl_log_is_listed_once_complete(tmp_path: Path) -> None:
    path = save_log(tmp_path / "step1" / "0.json", logged(1, 1.0, "See.", "go"))
    text = path.read_text()
    path.write_text(text[:-5])
    index = Index([tmp_path])
    assert tasks(index) == []
    assert "complete" in index.snapshot.problems[0]
    path.write_text(text)
    assert tasks(index) == [(0, "item/1")]
    assert not index.snapshot.problems
    path.write_text("[]")
    assert tasks(index) == []


def test_concurrent_readers_see_a_growing_prefix(tmp_path: Path) -> None:
    """Each reader sees a prefix of the written lines, which never shrinks."""
    path, count, readers = tmp_path / "t.jsonl", 200, 3
    index, ended, faults = Index([tmp_path]), threading.Event(), list[str]()
    path.touch()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for number in range(count):
                line = (record(str(number), "x" * 3_000).to_json() + "\n").encode()
                file.write(line[:1_500])
                file.write(line[1_500:])
        ended.set()

    def read() -> None:
        most = 0
        while not ended.is_set() or most < count:
            seen = tasks(index)
            if seen != [(number, str(number)) for number in range(len(seen))] or len(seen) < most:
                faults.append(f"{len(seen)} after {most}")
                return
            most = len(seen)

    threads = [threading.Thread(target=target) for target in (write, *[read] * readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    assert len(tasks(index)) == count


def test_replaced_file_with_the_same_end_is_detected(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"), record("z", "x" * 5_000))
    index = Index([path])
    assert tasks(index) == [(0, "a"), (1, "z")]
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"', 1) + b"\n")
    assert tasks(index) == [(2, "b"), (3, "z")]
    path.write_bytes((record("b").to_json() + "\n").encode() + b" " * 9_000)
    assert tasks(index) == [(4, "b")]


def test_episode_is_read_from_its_current_offset(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index = Index([path])
    assert tasks(index) == [(0, "a")]
    save(path, record("b"))
    entry = index.get(0)
    assert entry is not None and entry.summary.task == "a", "the file only grew"
    assert len(index.snapshot.entries) == 1, "so nothing was read again"
    path.unlink()
    save(path, record("c"), record("d"), record("e"))
    assert index.get(0) is None
    assert [entry.summary.task for entry in index.snapshot.entries] == ["c", "d", "e"]
