"""Files that are written while they are looked at."""

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
def test_every_line_is_read_once_however_it_is_written(tmp_path_factory: TempPathFactory, pieces: list[bytes]) -> None:
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
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 10]
    assert b"".join(line for _, line in seen) == whole[: ends[-1] if ends else 0]
    assert [start for start, _ in seen] == [0, *ends][:-1]
    assert tail.torn == (not whole.endswith(b"\n") and bool(whole))
    assert lines is None or len(seen) <= len(lines)


def test_a_torn_line_waits_until_it_is_complete(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index, whole = Index([tmp_path]), (record("b").to_json() + "\n").encode()
    for place in (1, 30, len(whole) - 1):
        with path.open("r+b") as file:
            file.seek(0, 2)
            file.write(whole[:place])
        assert tasks(index) == [(0, "a")]
        assert "incomplete" in index.snapshot.problems[0]
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - place)
    with path.open("ab") as file:
        file.write(whole)
    assert tasks(index) == [(0, "a"), (1, "b")]
    assert not index.snapshot.problems


def test_the_version_changes_with_the_episodes_and_only_then(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index = Index([tmp_path])
    versions = [index.refresh().version for _ in range(3)]
    save(path, record("b"))
    versions += [index.refresh().version for _ in range(2)]
    assert versions == [1, 1, 1, 2, 2]


def test_new_files_and_folders_show_up(tmp_path: Path) -> None:
    index = Index([tmp_path])
    assert tasks(index) == []
    empty = tmp_path / "later.jsonl"
    empty.touch()
    save(tmp_path / "new" / "t.jsonl", record("a"))
    until(lambda: tasks(index) == [(0, "a")])  # folders are not looked through at every request
    save(empty, record("b"))
    until(lambda: tasks(index) == [(0, "a"), (1, "b")])


def test_a_file_that_was_replaced_is_read_again_under_new_numbers(tmp_path: Path) -> None:
    path, other = save(tmp_path / "t.jsonl", record("a"), record("b")), save(tmp_path / "u.jsonl", record("c"))
    index = Index([path, other])
    assert tasks(index) == [(0, "a"), (1, "b"), (2, "c")]
    path.unlink()
    save(path, record("d"), record("e"), record("f"))
    assert tasks(index) == [(2, "c"), (3, "d"), (4, "e"), (5, "f")]
    assert index.get(0) is None
    path.write_bytes(path.read_bytes()[: len(record("d").to_json()) + 1])
    assert tasks(index) == [(2, "c"), (6, "d")]


def test_a_copy_that_goes_on_keeps_the_numbers(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    index = Index([path])
    assert tasks(index) == [(0, "a")]
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    save(copy, record("b"))
    copy.replace(path)
    assert tasks(index) == [(0, "a"), (1, "b")]


def test_a_file_that_is_gone_takes_its_episodes_along(tmp_path: Path) -> None:
    path, other = save(tmp_path / "t.jsonl", record("a")), save(tmp_path / "u.jsonl", record("b"))
    index = Index([tmp_path])
    assert tasks(index) == [(0, "a"), (1, "b")]
    path.unlink()
    assert tasks(index) == [(1, "b")]
    other.rename(tmp_path / "v.jsonl")
    until(lambda: tasks(index) == [(2, "b")])


def test_a_log_of_agentgym_rl_shows_when_it_is_complete(tmp_path: Path) -> None:
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


def test_many_read_while_one_writes(tmp_path: Path) -> None:
    """Each sees a beginning of what is written, in order, and never less than before."""
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


def test_another_file_that_ends_alike_is_another_file(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"), record("z", "x" * 5_000))
    index = Index([path])
    assert tasks(index) == [(0, "a"), (1, "z")]
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"', 1) + b"\n")
    assert tasks(index) == [(2, "b"), (3, "z")]
    path.write_bytes((record("b").to_json() + "\n").encode() + b" " * 9_000)
    assert tasks(index) == [(4, "b")]


def test_an_episode_is_given_where_it_lies_now(tmp_path: Path) -> None:
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
