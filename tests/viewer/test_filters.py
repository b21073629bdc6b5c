"""Lists: filters, order and search, compared with a naive implementation."""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import Trajectory
from agentgym_envs.errors import UsageError
from agentgym_envs.viewer.filters import Lists, Query, matcher, parse_page
from agentgym_envs.viewer.index import EpisodeEntry, Index, IndexSnapshot

from .records import EPISODES, logged, record, save, save_log

SORTS = ["id", "env", "group", "score", "turns", "stop", "step", "reward", "task"]
ACTS = ("go", "stop", "Élan", 'Say "hi"\\', "tab\tend", "K", "<b>")


def many() -> list[Trajectory]:
    """Episodes that differ in all fields that a query can name."""
    ways = itertools.product(("A-v0", "B-v0"), ("easy", "hard"), (0.0, 0.5, 1.0), (None, 3, 20))
    return [
        record(
            f"t/{number % 5}",
            *(ACTS[(number + turn) % len(ACTS)] for turn in range(number % 4)),
            env_id=env,
            group=group,
            score=score,
            success=score == 1,
            stop_reason=("failure", "turn_limit")[number % 2],
            meta={} if step is None else {"step": step, "policy": f"p{number % 2}"},
        )
        for number, (env, group, score, step) in enumerate(ways)
    ]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> IndexSnapshot:
    folder = tmp_path_factory.mktemp("lists")
    episodes = many()
    save(folder / "a.jsonl", *episodes[:20])
    save(folder / "b.jsonl", *episodes[20:])
    return Index([folder]).refresh()


TESTS: dict[str, Callable[[EpisodeEntry, str], bool]] = {
    "env": lambda entry, value: entry.summary.env == value,
    "group": lambda entry, value: entry.summary.group == value,
    "success": lambda entry, value: entry.summary.success == (value == "1"),
    "stop": lambda entry, value: entry.summary.stop == value,
    "policy": lambda entry, value: entry.summary.policy == value,
    "step": lambda entry, value: entry.summary.step == int(value),
    "source": lambda entry, value: entry.file.source.name == value,
    "task": lambda entry, value: entry.summary.task == value,
    "min_turns": lambda entry, value: entry.summary.turns >= float(value),
    "max_turns": lambda entry, value: entry.summary.turns <= float(value),
    "min_score": lambda entry, value: entry.summary.score >= float(value),
    "max_score": lambda entry, value: entry.summary.score <= float(value),
    "q": lambda entry, value: value.lower() in all_text(many()[entry.id]).lower(),
}
VALUES = {
    "env": ["A-v0", "B-v0", "C"],
    "group": ["easy", "hard"],
    "success": ["0", "1"],
    "stop": ["failure", "turn_limit"],
    "policy": ["p0", "p1", "oracle"],
    "step": ["3", "20", "21"],
    "source": ["a.jsonl", "b.jsonl"],
    "task": ["t/1", "t/4", "t"],
    "min_turns": ["0", "2", "9"],
    "max_turns": ["0", "2", "9"],
    "min_score": ["0", "0.5", "1"],
    "max_score": ["0", "0.25"],
    "q": ["go", "GO", "élan", 'say "HI"\\', "\t", "brief", "<B>", "observation", "nothing like it", "solve t/2"],
}


def all_text(episode: Trajectory) -> str:
    texts = [episode.instructions, *(text for turn in episode.turns for text in (turn.observation, turn.action))]
    return "\0".join([*texts, episode.final_observation, episode.task.id, episode.task.goal])


FILTERS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})


@given(FILTERS, st.sampled_from(SORTS), st.booleans())
def test_list_equals_naive_filtering_and_sorting(
    snapshot: IndexSnapshot, filters: dict[str, str], sort: str, descending: bool
) -> None:
    page = parse_page([*filters.items(), ("sort", sort), ("desc", "01"[descending])])
    found = Lists().select(snapshot, page.query).entries
    wanted = [entry for entry in snapshot.entries if all(TESTS[name](entry, value) for name, value in filters.items())]
    assert sorted(entry.id for entry in found) == [entry.id for entry in wanted]
    values = [getattr(entry.summary, sort) if sort != "id" else entry.id for entry in found]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=descending)
    assert values[len(known) :] == [None] * (len(values) - len(known))
    for one, two in itertools.pairwise(found):  # the sort is stable
        assert sort == "id" or getattr(one.summary, sort) != getattr(two.summary, sort) or one.id < two.id


def test_several_values_of_a_filter_are_alternatives(snapshot: IndexSnapshot) -> None:
    page = parse_page([("step", "3"), ("step", "20"), ("env", "A-v0"), ("group", "")])
    found = Lists().select(snapshot, page.query).entries
    assert {(entry.summary.step, entry.summary.env) for entry in found} == {(3, "A-v0"), (20, "A-v0")}


def test_nan_sorts_last(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", *(record(str(score), score=score) for score in (0.5, float("nan"), 0.1)))
    snapshot = Index([path]).refresh()
    for descending, order in ((False, ["0.1", "0.5", "nan"]), (True, ["0.5", "0.1", "nan"])):
        found = Lists().select(snapshot, Query(sort="score", descending=descending)).entries
        assert [entry.summary.task for entry in found] == order


@given(EPISODES, st.data())
def test_search_is_case_insensitive(episode: Trajectory, data: st.DataObject) -> None:
    turns = [text for turn in episode.turns for text in (turn.observation, turn.action)]
    text = data.draw(st.sampled_from([episode.instructions, episode.final_observation, episode.task.goal, *turns]))
    begin = data.draw(st.integers(0, len(text)))
    part = text[begin : data.draw(st.integers(begin, len(text)))]
    part = part.swapcase() if part.isascii() else part
    assert matcher(part)(episode.to_json().encode("utf-8", "surrogatepass"))


def test_search_ignores_field_names() -> None:
    line = record("t", "act", meta={"policy": "secret"}).to_json().encode()
    assert matcher("ACT")(line)
    assert not any(matcher(text)(line) for text in ("observation", "secret", "stop_reason", "ACT\\n", "\u0130"))


def test_search_reads_agentgym_rl_logs(tmp_path: Path) -> None:
    save_log(tmp_path / "step1" / "0.json", logged(1, 1.0, "Voilà", "go"), logged(2, 1.0, "See", "stay"))
    snapshot, lists = Index([tmp_path]).refresh(), Lists()
    for text, numbers in (("VOILÀ", [0]), ("STAY", [1]), ("crafting", [0, 1])):
        assert [entry.id for entry in lists.select(snapshot, Query(text=text)).entries] == numbers


def test_search_reads_earlier_attempts(tmp_path: Path) -> None:
    turn = {"observation": "A red door.", "action": "knock", "reward": 0.0, "info": {"x": "hidden"}}
    attempts: list[Any] = [{"turns": [turn, 3], "lesson": "Knock twice."}, 5, {"turns": 7}]
    path = save(tmp_path / "t.jsonl", record("a", meta={"attempts": attempts}), record("b", meta={"attempts": "red"}))
    snapshot, lists = Index([path]).refresh(), Lists()
    for text, numbers in (("RED DOOR", [0]), ("knock", [0]), ("twice", [0]), ("hidden", []), ("brief", [0, 1])):
        assert [entry.id for entry in lists.select(snapshot, Query(text=text)).entries] == numbers


def test_other_lists_do_not_wait_for_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, lists = Index([save(tmp_path / "t.jsonl", record("a"))]).refresh(), Lists()
    begun, go_on, found = threading.Event(), threading.Event(), list[Any]()

    def lines_of(left: list[EpisodeEntry]) -> Iterator[Any]:
        begun.set()
        go_on.wait(60)
        return iter(())

    monkeypatch.setattr("agentgym_envs.viewer.filters.lines_of", lines_of)
    search = threading.Thread(target=lambda: lists.select(snapshot, Query(text="x")))
    other = threading.Thread(target=lambda: found.append(lists.select(snapshot, Query())))
    search.start()
    begun.wait(60)
    other.start()
    other.join(30)
    before = list(found)
    go_on.set()
    search.join(60)
    other.join(60)
    assert len(before) == 1


def test_repeated_request_resumes_a_long_search(tmp_path: Path) -> None:
    snapshot = Index([save(tmp_path / "t.jsonl", *(record(str(number)) for number in range(1_000)))]).refresh()
    lists, query = Lists(search_seconds=-1.0), Query(text="brief")
    found = [lists.select(snapshot, query) for _ in range(16)]
    assert [len(one.entries) for one in found] == [*range(64, 1_000, 64), 1_000]
    assert [one.note for one in found[::15]] == ["64 of 1,000 episodes were searched so far", None]


def test_search_scans_only_new_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "t.jsonl", record("a"), record("b"))
    index, lists = Index([path]), Lists()
    assert len(lists.select(index.refresh(), Query(text="brief")).entries) == 2
    save(path, record("c"))
    snapshot = index.refresh()
    looked = list[int]()

    def lines_of(left: list[EpisodeEntry]) -> Iterator[Any]:
        looked.extend(entry.id for entry in left)
        return iter(())

    monkeypatch.setattr("agentgym_envs.viewer.filters.lines_of", lines_of)
    lists.select(snapshot, Query(text="brief", sort="task"))
    assert looked == [2]


@pytest.mark.parametrize(
    "items",
    [
        [("limit", "1001")],
        [("limit", "x")],
        [("limit", "-1")],
        [("limit", "٣")],
        [("offset", "1.5")],
        [("offset", "9" * 99)],
        [("sort", "secret")],
        [("desc", "yes")],
        [("success", "true")],
        [("min_turns", "few")],
        [("max_score", "nan")],
        [("sort", "id"), ("sort", "env")],
        [("color", "red")],
    ],
)
def test_invalid_query_raises_query_error(items: list[tuple[str, str]]) -> None:
    with pytest.raises(UsageError, match=items[0][0]):
        parse_page(items)


def test_default_query() -> None:
    page: Any = parse_page([("q", ""), ("limit", "")])
    assert page == (Query(), 0, 100)
