"""Panels: all kinds, failures, and those of TextCraft and Search."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.core import ENV_FAILED
from agentgym_envs.errors import missing_extra
from agentgym_envs.rollout import replay
from agentgym_envs.search.formats import FORMATS
from agentgym_envs.search.retrieval.base import Hit, Passage
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer import panels
from agentgym_envs.viewer.panels import panels_of, textcraft
from agentgym_envs.viewer.panels.search import read_passages
from tests.viewer.panel_episodes import episode, nothing, pages_episode, play, states_of

STATIC = Path(panels.__file__).parents[1] / "static"
PATTERNS = ["craft 1 a ", "Goal: craft a.\ncraft 1 a\n", "There is a ", "is called the ", "\t   ", "A door to the "]
PATTERNS += ["<search>", "<information> ", 'Doc 1(Title: "', "Doc 1 (Title: a) b\n", "\nURL: x", "OBSERVATION:\n\n"]
PATTERNS += ["Tab 0: a | ", "You move the a to the ", "[1] a "]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for part in node["parts"]:
        yield from nodes(part)


def test_every_panel_kind_has_its_script() -> None:
    for kind in set(panels._MODULES.values()):
        assert f"Viewer.panels.{kind} = " in (STATIC / f"panels_{kind}.js").read_text(encoding="utf-8")


def test_environment_without_panel_has_no_note() -> None:
    assert panels_of(episode("AgentGym/Other-v0", ["hello", "bye"], ["hi"])) == {
        "kind": None,
        "note": None,
        "states": [],
    }


@pytest.mark.parametrize("name", ["TextCraft", "BabyAI", "SciWorld", "Search", "WebArena"])
@pytest.mark.parametrize("text", ["", "\0\ud800<script>", "Goal: craft x", "OBSERVATION:\n\nURL: ", "Question:"])
def test_panels_accept_any_record(name: str, text: str) -> None:
    """Records of other environments and infos of other types raise no error."""
    bad = {"inventory": {"a": "b", "c": 1}, "hits": 3, "score": "x", "screenshot": "data:text/html,x", "query": 5}
    panel = panels_of(episode(f"AgentGym-RL/{name}", [text, text, text], [text, "go"], [bad, bad]))
    assert panel["kind"] in (None, name.lower())
    assert len(json.dumps(panel)) < 20_000
    assert panel["kind"] is None or len(panel["states"]) == 3


@pytest.mark.slow_after(15)
@pytest.mark.parametrize("name", ["TextCraft", "BabyAI", "SciWorld", "Search", "WebArena"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_long_texts_are_read_in_linear_time(name: str, pattern: str) -> None:
    """With quadratic time, half a million characters read three times would take minutes."""
    text = pattern * (500_000 // len(pattern)) + "x"
    panel = panels_of(
        episode(
            f"AgentGym-RL/{name}", [text, "In your inventory, you see:\n" + text, "OBSERVATION:\n" + text], [text, text]
        )
    )
    assert panel["kind"] in (None, name.lower())


def test_panel_exception_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(observation: str) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(textcraft, "read_recipes", broken)
    panel = panels_of(episode("AgentGym/TextCraft-v0", ["x", "y"], ["a"]))
    assert panel["kind"] is None
    assert "RuntimeError: no luck" in panel["note"]


def test_too_large_panel_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "MAX_CHARS", 100)
    panel = panels_of(episode("AgentGym/TextCraft-v0", ["Goal: craft stick.", "y"], ["a"]))
    assert (panel["kind"], panel["states"]) == (None, [])
    assert "too large" in panel["note"]


def test_replay_ignores_unsafe_arguments() -> None:
    """A received file cannot choose a program, path or address."""
    trajectory, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToRedBallGrey", actions="primitive")
    sent = replace(trajectory, env_kwargs={**trajectory.env_kwargs, "java_path": "/bin/false", "render_mode": "none"})
    assert panels_of(sent)["note"] is None
    assert panels_of(replace(trajectory, env_id="os:system"))["kind"] is None
    with pytest.raises(replay.CannotReplay, match="cannot be made here"):
        replay.replay(replace(trajectory, env_id="antigravity:BabyAI-v0"), lambda env, action: None, seconds=1)


def changed(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, final_observation=trajectory.final_observation + "!")


def unknown_task(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, task=replace(trajectory.task, id="babyai/Nowhere/1"))


def no_seed(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, seed=-1)


def unknown_option(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, env_kwargs={"actions": "magic"})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (changed, "another version"),
        (unknown_task, "Nowhere"),
        (unknown_option, "actions must be one of"),
        (no_seed, "cannot be replayed here"),
    ],
)
def test_panel_uses_the_record_if_replay_fails(spoil: Any, why: str) -> None:
    trajectory, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToRedBallGrey")
    panel = panels_of(spoil(trajectory))
    assert panel["kind"] == "babyai"
    assert why in panel["note"]
    assert panel["note"].endswith("The panel shows the information in the record instead.")
    assert panel["states"][0]["shared"]["egocentric"]


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    trajectory, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToRedBallGrey")

    def missing(*_: Any) -> Any:
        raise missing_extra("BabyAI", "minigrid", "babyai")

    monkeypatch.setattr(replay, "make_replay_env", missing)
    assert "pip install 'agentgym-envs[babyai]'" in panels_of(trajectory)["note"]


def test_slow_replay_is_stopped() -> None:
    trajectory, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToRedBallGrey")
    with pytest.raises(replay.CannotReplay, match="too long"):
        replay.replay(trajectory, lambda env, action: None, seconds=-1)


def test_environment_error_in_record_is_not_replayed() -> None:
    trajectory, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToRedBallGrey", turns=1, wild=1.0)
    failed = replace(trajectory, stop_reason="env_error", final_observation=ENV_FAILED)
    states, _ = states_of(failed, "babyai")
    assert states[1]["agent"] == states[0]["agent"]


# TextCraft


@pytest.mark.parametrize("worlds", ["real", "fictional", "invented"])
@pytest.mark.parametrize("seed", range(6))
def test_recipe_tree_follows_the_inventory(worlds: str, seed: int) -> None:
    """In every state, no item is used twice, and the status of the goal is correct."""
    trajectory, seen = play(
        "AgentGym/TextCraft-v0", lambda env: env.status(), seed=seed, wild=0.3, worlds=worlds, grammar="react"
    )
    states, shared = states_of(trajectory, "textcraft")
    assert shared["goal"] == trajectory.task.goal.removeprefix("craft ") or worlds != "real"
    for state, status, turn in zip(states[1:], seen[1:], trajectory.turns, strict=True):
        carried = dict(state["inventory"])
        assert carried == turn.info["inventory"]
        tree = shared["trees"][state["tree"]]
        assert (tree["missing"] == 0) == status["success"]
        given = Counter[str]()
        for node in nodes(tree):
            assert node["have"] + node["missing"] == node["need"] >= 0
            assert (node["status"] == "done") == (node["need"] == 0)
            assert (node["status"] == "have") == (node["need"] == node["have"] > 0)
            given[node["kind"] or node["name"]] += node["have"]
        assert given.total() <= sum(carried.values())


@pytest.mark.parametrize("seed", range(8))
def test_ready_items_can_be_crafted_and_missing_items_taken(seed: int) -> None:
    def ready(env: Any) -> tuple[dict[str, bool], Counter[str]]:
        """If the environment has a usable recipe for each item, and the inventory."""
        names, book, held = env._names, env.recipe_book, env._inventory
        can = dict[str, bool]()
        for recipe in book.recipes:
            enough = all(sum(held.get(m, 0) for m in book.members.get(p, [p])) >= n for p, n in recipe.parts)
            can[names.name_of(recipe.item)] = can.get(names.name_of(recipe.item), False) or enough
        return can, Counter(names.name_of(recipe.item) for recipe in book.recipes)

    trajectory, seen = play("AgentGym/TextCraft-v0", ready, seed=seed, groups=["depth-3", "depth-4"])
    states, shared = states_of(trajectory, "textcraft")
    found = Counter[str]()
    for state, (can, recipes) in zip(states, seen, strict=True):
        for node in nodes(shared["trees"][state["tree"]]):
            found[node["status"]] += 1
            if node["status"] == "ready":
                assert can[node["name"]]
            elif node["status"] == "missing":
                assert bool(node["parts"]) == bool(recipes[node["name"]])  # items without a recipe can be taken
                assert recipes[node["name"]] != 1 or not can[node["name"]]
    assert found["ready"]
    assert found["missing"]


def test_inventory_is_derived_from_replies() -> None:
    """AgentGym's own logs contain no inventories and format names differently."""
    trajectory, _ = play("AgentGym/TextCraft-v0", nothing, task="textcraft/316", grammar="react")
    log = replace(
        trajectory, env_id="AgentGym-RL/TextCraft", turns=tuple(replace(turn, info={}) for turn in trajectory.turns)
    )
    known, _ = states_of(trajectory, "textcraft")
    read, _ = states_of(log, "textcraft")
    assert [dict(state["inventory"]) for state in read] == [dict(state["inventory"]) for state in known]


def test_minecraft_namespace_is_read() -> None:
    observations = ["Crafting commands:\ncraft 4 oak planks using 1 oak logs\n\nGoal: craft oak planks."]
    observations += ["Got 2 minecraft:oak_logs", "Crafted 4 minecraft:oak_planks"]
    actions = ["Thought: a\nAction: get 2 oak logs", "Thought: b\nAction: craft 4 oak planks using 1 oak logs"]
    states, _ = states_of(episode("AgentGym-RL/TextCraft", observations, actions), "textcraft")
    assert [dict(state["inventory"]) for state in states] == [{}, {"oak logs": 2}, {"oak logs": 1, "oak planks": 4}]


def test_cyclic_and_deep_recipes_terminate() -> None:
    circle = "craft 1 a using 1 b\ncraft 1 b using 1 a, 1 c\n"
    wide = "".join(
        f"craft 1 n{k} using 1 n{k + 1}, 1 m{k + 1}\ncraft 1 m{k} using 1 n{k + 1}, 1 m{k + 1}\n" for k in range(60)
    )
    for text, goal in ((circle, "a"), (wide, "n0")):
        observations = [f"Crafting commands:\n{text}\nGoal: craft {goal}.", "?"]
        states, shared = states_of(episode("AgentGym-RL/TextCraft", observations, ["x"]), "textcraft")
        assert 1 < len(list(nodes(shared["trees"][states[0]["tree"]]))) <= textcraft._MAX_NODES


# Search


@pytest.mark.parametrize(("id", "seed"), [("Search", 0), ("Search", 1), ("SearchRetry", 2)])
def test_searches_have_gold_passages(id: str, seed: int) -> None:
    trajectory, _ = play(f"AgentGym/{id}-v0", nothing, seed=seed, turns=8, wild=0.4, split="test")
    states, shared = states_of(trajectory, "search")
    assert [one["id"] for one in shared["gold"]] == trajectory.task.data["passages"]
    assert shared["answers"] == trajectory.task.data["answers"]
    for state, turn in zip(states[1:], trajectory.turns, strict=True):
        info = turn.info
        assert [shared["passages"][n]["id"] for n in state["passages"]] == info["hits"]
        assert (state["query"], state["answer"]) == (info["query"], info["answer"])
        assert state["found"] == round(info["recall"] * len(shared["gold"]))
        assert state["right"] is (info["success"] if info["answer"] is not None else None)
    for gold in shared["gold"]:
        if gold["turn"]:
            index = next(n for n in states[gold["turn"]]["passages"] if shared["passages"][n]["id"] == gold["id"])
            assert shared["passages"][index]["gold"]
            assert shared["passages"][index]["title"] == gold["title"]


words = st.text("abc [](): 12", min_size=1, max_size=20).map(str.strip).filter(lambda text: text and text[0] != "[")


@given(st.lists(st.tuples(words, words), min_size=1, max_size=4))
def test_passages_are_parsed_from_every_format(passages: list[tuple[str, str]]) -> None:
    hits = [Hit(Passage(f"p{n}", f'"{title}"\n{text}'), 1.0) for n, (title, text) in enumerate(passages)]
    ids = [hit.passage.id for hit in hits]
    for name, form in FORMATS.items():
        found = read_passages(form.render(hits, 8_000).text, ids)
        assert [id for id, _, _ in found] == ids, name
        assert [(title, text) for _, title, text in found] == passages, name


def test_heading_inside_a_passage_is_plain_text() -> None:
    text = '<information>Doc 1(Title: "A") see Doc 2\nDoc 7(Title: "B") no\nDoc 2(Title: "C") yes</information>'
    assert [title for _, title, _ in read_passages(text)] == ["A", "C"]
    assert read_passages("<information>Nothing was found.</information>", ["x"]) == []


def test_search_log_is_read_by_its_tags() -> None:
    observations = ["Question: who?", '<information>Doc 1(Title: "A") b</information>', "That answer is wrong."]
    actions = ["<think>x</think><search> a </search>", "<answer>b</answer>"]
    panel = panels_of(episode("AgentGym-RL/Search", observations, actions))
    first, second, third = panel["states"]
    assert panel["note"] == "Which passages hold the answer is not known for this task."
    assert (first["query"], second["query"], second["passages"]) == (None, "a", [0])
    assert (third["answer"], third["right"]) == ("b", False)


def test_pages_follow_the_actions_of_search_with_pages() -> None:
    """The texts come from the environment's own functions, so the panel reads what it writes."""
    made = pages_episode()
    made = replace(made, task=replace(made.task, data={"passages": ["p1", "p8"], "answers": ["Belém"]}))
    states, shared = states_of(made, "searchpages")
    assert [state["kind"] for state in states] == [None, "search", "open", "find", None, "scroll", "answer"]
    assert [(one["id"], one["title"], one["gold"]) for one in states[1]["results"]] == [
        ("p1", "Amazon", True),
        ("p2", "B", False),
    ]
    assert "mouth" in states[1]["results"][0]["snippet"] and states[1]["page"] is None
    assert [one["opened"] for one in states[2]["results"]] == [True, False]
    page = states[2]["page"]
    assert (page["part"], page["ids"]) == (1, [{"id": "p1", "gold": True}]) and page["text"].startswith("It flows on.")
    assert states[3]["places"] == [{"part": page["parts"], "text": states[3]["places"][0]["text"]}]
    assert states[4] == {**states[3], "kind": None, "text": "", "places": []}, "an invalid action changes nothing"
    assert "Belém" in states[5]["page"]["text"] and states[6]["right"] is True
    assert shared["gold"] == [{"id": "p1", "title": "Amazon", "turn": 2}, {"id": "p8", "title": None, "turn": None}]
