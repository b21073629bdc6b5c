"""`agentgym eval --tasks FILE`: task ids, and AgentGym-RL's items."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.cli.evaluating.task_files import read_task_file, translate
from agentgym_envs.core import text_env
from agentgym_envs.trajectory import read_trajectories

from .conftest import Run

TEXTCRAFT, BABYAI, SCIWORLD = "AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0", "AgentGym/SciWorld-v0"


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def played(directory: str = "out") -> list[str]:
    return [t.task.id for t in read_trajectories(Path(directory) / "trajectories.jsonl")]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "text",
    [
        "count/3\n\n  count/10 \r\ncount/3\n",
        '["count/3", "count/10", "count/3"]',
        '[\n {"item_id": "count/3"},\n {"id": "count/10"}\n]',
        '{"id": "count/3"}\n{"id": "count/10"}\n',
        '"count/3"\n"count/10"\n',
        "\ufeffcount/3\ncount/10",
    ],
)
def test_every_format_of_a_task_file_is_read(run: Run, toy: str, text: str) -> None:
    outcome = run("eval", toy, "--policy", "oracle", "--tasks", write("tasks", text), "--out", "out", "-k", 2)
    assert outcome.code == 0, outcome.err
    assert sorted(played()) == ["count/10", "count/10", "count/3", "count/3"]  # from two splits


def test_items_of_agentgym_rl_are_the_tasks_of_its_server(run: Run) -> None:
    items = write("items.json", json.dumps([{"item_id": f"textcraft_{number}"} for number in (374, 3, 20)]))
    assert run("eval", "textcraft", "--policy", "oracle", "--tasks", items, "--out", "out").code == 0
    assert sorted(played()) == ["textcraft/20", "textcraft/3", "textcraft/374"]


@pytest.mark.slow
def test_a_task_file_may_have_several_scenarios(run: Run) -> None:
    items = write("items.json", '[{"item_id": "textcraft_7"}, {"item_id": "babyai_41"}, {"id": "textcraft/7"}]')
    words = ("eval", "--env", "textcraft", "--env", "babyai", "--policy", "oracle", "--max-turns", 1, "--out", "out")
    assert run(*words, "--tasks", items).code == 0
    assert sorted(played()) == ["babyai/GoToRedBall/1", "textcraft/7"]  # the second of 40 levels, in the second round


def test_items_are_translated_to_ids() -> None:
    assert translate("textcraft_545", TEXTCRAFT, {}) == "textcraft/1"  # modulo 544, as in its server
    assert translate("textcraft_5", BABYAI, {}) is None
    assert translate("sciworld_1096", SCIWORLD, {}) != translate(
        "sciworld_1096", SCIWORLD, {"tasks": "agentgym-published"}
    )
    assert translate("sciworld_99999", SCIWORLD, {}) is None
    assert translate("searchqa_5", "AgentGym/Search-v0", {}) == "searchqa/5"
    assert translate("searchqa_5", "AgentGym/SearchRetry-v0", {}) == "searchqa/5"
    assert translate("webarena_811", "AgentGym/WebArenaOfficial-v0", {}) == "webarena/811"
    assert translate("webarena_812", "AgentGym/WebArenaOfficial-v0", {}) is None
    for odd in ("textcraft_", "textcraft_-1", "textcraft_1e3", "alfworld_3", "textcraft_٣", ""):
        assert translate(odd, TEXTCRAFT, {}) is None


@pytest.mark.slow
@pytest.mark.parametrize(("env_id", "scenario"), [(TEXTCRAFT, "textcraft"), (BABYAI, "babyai"), (SCIWORLD, "sciworld")])
def test_every_item_translates_to_a_task(env_id: str, scenario: str) -> None:
    env = gym.make(env_id)
    tasks = text_env(env).tasks
    for number in (0, 1, 89, 199, 543):
        task_id = translate(f"{scenario}_{number}", env_id, {})
        assert task_id is not None
        assert tasks.get(task_id).id == task_id
    env.close()


def test_unknown_tasks_are_named_or_skipped(run: Run, refuses: Run) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks")
    items = write("items.json", '[{"item_id": "textcraft_1"}, {"item_id": "babyai_1"}, "a", "b", "c"]')
    err = refuses(*words, items).err
    assert "4 of the 5 tasks" in err
    assert "'babyai_1', 'a', 'b', …" in err
    assert "--skip-unknown" in err
    assert "questions=flashrag" in refuses(*words, write("qa.json", '["searchqa_1"]'), "--skip-unknown").err
    outcome = run(*words, items, "--skip-unknown", "--out", "out")
    assert outcome.code == 0
    assert "4 ids in the task file were skipped" in outcome.out
    assert json.loads(Path("out/eval.json").read_text())["skipped_tasks"] == ["babyai_1", "a", "b", "c"]


def test_options_without_effect_print_a_note(run: Run, toy: str) -> None:
    items = write("items", "count/3\n")
    words = ("eval", toy, "--policy", "oracle", "--max-turns", 30, "--tasks", items)
    assert run(*words).err == ""
    assert run(*words, "--split", "test").err.startswith("note: --split test has no effect")
    assert run(*words[:-2], "--split", "train").err == ""
    err = run("eval", toy, "textcraft", *words[2:]).err
    assert err == f"note: {TEXTCRAFT} is not played: the task file names none of its tasks\n"


@pytest.mark.slow
def test_invalid_task_files_are_refused(refuses: Run) -> None:
    def err(*words: object) -> str:
        return refuses("eval", "textcraft", "--policy", "oracle", *words).err

    assert "1 of the 1 task in one belongs to none of" in err("--tasks", write("one", "a"))
    assert "neither" in err("--tasks", "nowhere.txt")
    assert "cannot be read" in err("--tasks", ".")
    assert "contains no task" in err("--tasks", write("empty", "\n \n"))
    assert "contains no task" in err("--tasks", write("list", "[]"))
    assert "not valid JSON" in err("--tasks", write("torn", '[{"id": "a"'))
    assert "entry 2" in err("--tasks", write("number", '["textcraft/1", 2]'))
    assert "entry 1" in err("--tasks", write("key", '[{"task": "textcraft/1"}]'))
    Path("binary").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in err("--tasks", "binary")
    assert "at least 1" in err("--tasks", "0")
    assert "--groups" in err("--tasks", write("good", "textcraft/1"), "--groups", "depth-1")
    assert "no environment was given" in refuses("eval", "--policy", "oracle").err


def test_a_run_resumes_only_with_the_same_tasks(run: Run, refuses: Run) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--out", "out", "--tasks")
    assert run(*words, write("a", "textcraft/1\ntextcraft/2")).code == 0
    assert run(*words, write("b", '["textcraft/1", "textcraft/2"]'), "--resume").code == 0
    assert "tasks is" in refuses(*words, write("c", "textcraft/1\ntextcraft/3"), "--resume").err


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "item_id", "x"]), inner),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.text(max_size=40) | JSON.map(json.dumps))
def test_any_text_is_parsed_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    from agentgym_envs.errors import UsageError

    path = tmp_path_factory.mktemp("tasks") / "file"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        names = read_task_file(str(path)).names
    except UsageError:
        return
    assert names
    assert len(set(names)) == len(names)
    assert all(isinstance(name, str) for name in names)
