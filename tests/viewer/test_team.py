"""The team view, derived from the record of an episode."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.rollout.token_file import TokenWriter
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, strict_json
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.detail import detail_of
from agentgym_envs.viewer.filters import parse_page
from agentgym_envs.viewer.panels import panels_of
from agentgym_envs.viewer.panels.actor import actor_of
from agentgym_envs.viewer.team import MAX_AGENTS, team_of
from tests.multiagent.engines import CODEC
from tests.viewer.panel_episodes import episode, nothing, play, states_of
from tests.viewer.records import VALUES, record, save
from tests.viewer.teams import COOP, WALL, hostile, played, team_record, with_tokens

PAIR = {"a": "go", "b": "wait"}
SEEN = {"a": "a room", "b": "a hall"}


def team(trajectory: Trajectory) -> dict[str, Any]:
    found = team_of(trajectory)
    assert found is not None
    return found


def column(trajectory: Trajectory, index: int) -> list[dict[str, Any]]:
    """The cells of an agent."""
    return [turn["cells"][index] for turn in team(trajectory)["turns"]]


@pytest.mark.parametrize("options", [{"num_agents": 3, "seed": 1}, {"agent_grammar": "react", "individual": 0.5}])
def test_columns_equal_the_agents_views(options: dict[str, Any]) -> None:
    trajectory = played(**options)
    shown = team(trajectory)
    views = per_agent_trajectories(trajectory)
    assert shown["agents"] == list(views)
    assert shown["scores"] == pytest.approx([view.score for view in views.values()])
    for index, view in enumerate(views.values()):
        assert shown["instructions"][index] == view.instructions
        assert shown["final"][index] == view.final_observation
        for cell, turn in zip(column(trajectory, index), view.turns, strict=True):
            assert (cell["observation"], cell["action"], cell["reward"]) == (turn.observation, turn.action, turn.reward)
            assert cell["score"] == turn.info["score"] and cell["acts"] and cell["invalid"] is None
            assert turn.action.endswith(cell["command"]) and "Action:" not in cell["command"]


def test_transfers_have_sender_and_recipients() -> None:
    trajectory = with_tokens(
        {"crafter_0": "say Hi all.", "crafter_1": "say Hi all.", "crafter_2": "fly"},
        num_agents=3,
        task="textcraft-coop/3/22",
    ).trajectory
    transfers = [turn["transfers"] for turn in team(trajectory)["turns"]]
    assert transfers[0] == [
        {"from": 1, "to": [0, 2], "text": "Hi all."},
        {"from": 0, "to": [1, 2], "text": "Hi all."},
    ]
    gifts = [one for some in transfers for one in some if "item" in one]
    given = [turn.info["agents"] for turn in trajectory.turns]
    arrived = [(g["item"], g["amount"]) for infos in given for info in infos.values() for g in info["gifts"]]
    assert [(gift["item"], gift["amount"]) for gift in gifts] == arrived and arrived
    assert column(trajectory, 2)[0]["invalid"] == "Could not execute fly"
    assert column(trajectory, 0)[0]["invalid"] is None


def test_planner_and_actor_alternate() -> None:
    trajectory = played("AgentGym/PlannerActor-v0", "textcraft/22", env_kwargs={"grammar": "react"})
    shown = team(trajectory)
    acts = [[cell["acts"] for cell in turn["cells"]] for turn in shown["turns"]]
    assert acts == [[True, False], [False, True]] * 2
    planner, actor = (column(trajectory, index) for index in (0, 1))
    assert planner[0]["command"] == "Do this next: get 6 cobblestone" and planner[1]["observation"] is None
    assert (actor[1]["command"], actor[0]["action"]) == ("get 6 cobblestone", None)
    assert [[(one["from"], one["to"]) for one in turn["transfers"]] for turn in shown["turns"]] == [
        [(0, [1])],
        [(1, [0])],
        [(0, [1])],
        [(1, [0])],
    ]
    assert [cell["reward"] for cell in planner] == [0, 0, 0, 1], "both are paid when the actor acts"


def test_malformed_joint_action_is_shown_as_text() -> None:
    answer = "This is no joint action."
    wrong = ["hm", '{"a": "go"}', '{"a": "go", "b": 3}', '{"a": "go", "a": "no", "b": "no"}', '["a", "b"]', "[" * 9_999]
    turns = [(SEEN, wrong[0], {}), *((answer, action, {"invalid_action": answer}) for action in wrong[1:])]
    shown = team(team_record(*turns, (answer, {"a": "go", "b": None}, {}), last=SEEN))["turns"]
    assert [turn["action"] for turn in shown] == [*wrong, None]
    assert [turn["observation"] for turn in shown] == [None, *[answer] * len(wrong)]
    assert [cell["observation"] for cell in shown[0]["cells"]] == ["a room", "a hall"]
    assert not any(cell["acts"] or cell["action"] for turn in shown[:-1] for cell in turn["cells"])
    assert [(cell["acts"], cell["action"]) for cell in shown[-1]["cells"]] == [(True, "go"), (True, None)]


def test_text_around_a_joint_action_is_kept() -> None:
    action = f"Thought: all go.\nAction: {json.dumps(PAIR)}"
    (turn,) = team(team_record((SEEN, action, {}), last="x", env_kwargs={"grammar": "react"}))["turns"]
    assert turn["thought"] == "all go." and [cell["command"] for cell in turn["cells"]] == ["go", "wait"]


def test_truncated_or_unparsable_answer_is_marked_on_its_agent() -> None:
    info = {"answers": {"a": {"finish": "length"}, "b": {"finish": "stop"}}}
    trajectory = team_record((SEEN, PAIR, info), last=SEEN, env_kwargs={"agent_grammar": "react"})
    (turn,) = team(trajectory)["turns"]
    assert [(cell["truncated"], cell["command"]) for cell in turn["cells"]] == [(True, None), (False, None)]


def test_rewards_are_summed_without_scores() -> None:
    paid = {"agents": {"a": {"reward": 0.25}, "b": {"reward": 0}}}
    assert team(team_record((SEEN, PAIR, paid), (SEEN, PAIR, paid), last="x"))["scores"] == [0.5, 0]


def test_transfers_without_a_sender_are_ignored() -> None:
    arrived = [{"from": "b", "text": "old"}, {"from": "c", "text": "who?"}, {"from": ["a"]}, {"text": "x"}, 7, None]
    info = {"agents": {"a": {"messages": arrived, "gifts": arrived}, "b": {"messages": {"from": "a", "text": "x"}}}}
    assert team(team_record((SEEN, {"a": "go", "b": None}, info), last="x"))["turns"][0]["transfers"] == []


@pytest.mark.parametrize(
    "trajectory",
    [
        record("t/1", '{"a": "b"}'),
        team_record((SEEN, PAIR, {}), last="x", agents=["a", "b", *map(str, range(MAX_AGENTS - 1))]),
        team_record((SEEN, PAIR, {}), last="x", agents=["x", "y"]),
        team_record(("The machine failed.", PAIR, {}), last="x"),
        team_record((SEEN, PAIR, {}), last="x", instructions='{"a": "x", "b": 5}'),
        team_record((SEEN, PAIR, {}), last="x", instructions='{"a": "x", "b": "y", "a": "z"}'),
        team_record(('{"a": "x", "b": "y", "a": "z"}', PAIR, {}), last="x"),
    ],
    ids=["one agent", "too many", "others", "no joint observation", "no texts", "a name twice", "seen twice"],
)
def test_malformed_team_is_shown_as_one_agent(trajectory: Trajectory) -> None:
    detail = detail_of(trajectory)
    assert detail["team"] is None and detail["turns"][0]["action"] == trajectory.turns[0].action


def test_training_and_viewer_agree_on_teams() -> None:
    shown = [team_record((SEEN, PAIR, {}), last="x"), played(), played(num_agents=1, task="textcraft/22")]
    plain = [
        team_record((SEEN, PAIR, {}), last="x", agents=["a"]),
        record("t/1", "look"),
        team_record(("No.", PAIR, {}), last=SEEN),
    ]
    assert [is_team_record(one) for one in [*shown, *plain]] == [team_of(one) is not None for one in [*shown, *plain]]
    assert all(map(is_team_record, shown)) and not any(map(is_team_record, plain))


def test_other_team_environments_are_shown() -> None:
    shown = team(team_record((SEEN, PAIR, {}), last="All of it is over."))
    assert shown["final"] is None and [cell["command"] for cell in shown["turns"][0]["cells"]] == ["go", "wait"]


@given(
    agents=VALUES, own=VALUES, more=st.dictionaries(st.sampled_from(["messages", "gifts", "score", "reward"]), VALUES)
)
def test_team_accepts_any_info(agents: Any, own: Any, more: Any) -> None:
    for info in ({"agents": agents, "answers": agents}, {"agents": {"a": own}}, {"agents": {"a": more, "b": more}}):
        trajectory = team_record((SEEN, PAIR, info), last=SEEN, env_id=COOP)
        strict_json(detail_of(trajectory))
        assert panels_of(trajectory)["kind"] in (None, "textcraftcoop")


def test_panel_has_inventories_cards_and_one_tree() -> None:
    trajectory = with_tokens().trajectory
    states, shared = states_of(trajectory, "textcraftcoop")
    assert shared["goal"] == "cobblestone wall" and shared["agents"] == ["crafter_0", "crafter_1"]
    assert shared["agents"][shared["crafter"]] == "crafter_1"
    assert [state["inventories"] for state in states[-4:]] == [
        [[], []],
        [[["cobblestone", 6]], []],
        [[], [["cobblestone", 6]]],
        [[], [["cobblestone wall", 6]]],
    ]
    trees = [shared["trees"][state["tree"]] for state in states[-4:]]
    assert [tree["status"] for tree in trees] == ["missing", "missing", "ready", "have"], (
        "only its crafter can craft it"
    )
    known, other = shared["cards"]
    assert "craft 6 cobblestone wall using 6 cobblestone" in known["recipes"] + other["recipes"]
    assert "cobblestone" in known["takes"] and "cobblestone" not in other["takes"]
    first = json.loads(trajectory.turns[0].observation)
    for agent, card in zip(first, shared["cards"], strict=True):
        assert all(line in first[agent] for line in card["recipes"])
        assert f"You can take: {', '.join(card['takes'])}." in first[agent]


def test_parts_split_between_agents_are_not_ready() -> None:
    see = {"a": "craft 1 plank using 2 log\n\nGoal: b must craft table.", "b": "craft 1 table using 1 plank\n"}
    split_up = {"agents": {"a": {"inventory": {"log": 1}}, "b": {"inventory": {"log": 1}}}}
    together = {"agents": {"a": {"inventory": {"log": 2}}, "b": {"inventory": {}}}}
    trajectory = team_record((see, PAIR, split_up), (see, PAIR, together), last=see, env_id=COOP)
    states, shared = states_of(trajectory, "textcraftcoop")
    planks = [shared["trees"][state["tree"]]["parts"][0]["status"] for state in states]
    assert planks == ["missing", "missing", "ready"]


@pytest.mark.parametrize(
    "pattern", ["Goal: ", "Goal: a must craft ", "You can take: ", "craft 1 a using ", "\nGoal: a"]
)
def test_long_first_observations_take_linear_time(pattern: str) -> None:
    """With quadratic time, this would take minutes."""
    trajectory = team_record(({"a": pattern * (500_000 // len(pattern)), "b": ""}, PAIR, {}), last=SEEN, env_id=COOP)
    assert panels_of(trajectory)["kind"] == "textcraftcoop"


def test_team_of_one_has_textcrafts_tree() -> None:
    trajectory = played(task="textcraft/22", num_agents=1)
    states, shared = states_of(trajectory, "textcraftcoop")
    alone, its = states_of(play("AgentGym/TextCraft-v0", nothing, task="textcraft/22")[0], "textcraft")
    assert [[state["inventories"][0], shared["trees"][state["tree"]]] for state in states] == [
        [state["inventory"], its["trees"][state["tree"]]] for state in alone
    ]
    assert shared["crafter"] is None and shared["cards"][0]["takes"] is None


def test_actor_panel_equals_that_of_its_environment() -> None:
    trajectory = played("AgentGym/PlannerActor-v0", "textcraft/22")
    actor = actor_of(trajectory)
    alone, _ = play("AgentGym/TextCraft-v0", nothing, task="textcraft/22")
    assert actor is not None and list(actor.turn_counts) == [0, 0, 1, 1, 2]
    assert (actor.trajectory.env_id, actor.trajectory.actions) == (alone.env_id, alone.actions)
    assert [turn.observation for turn in actor.trajectory.turns] == [turn.observation for turn in alone.turns]
    assert actor.trajectory.final_observation == alone.final_observation
    states, _ = states_of(trajectory, "textcraft")
    world, _ = states_of(alone, "textcraft")
    assert [state["inventory"] for state in states] == [world[index]["inventory"] for index in actor.turn_counts]
    assert [index for index, state in enumerate(states) if "shared" in state] == [0]


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_actor_environment_is_replayed_from_any_end(turns: int) -> None:
    trajectory = played("AgentGym/PlannerActor-v0", env_id="AgentGym/BabyAI-v0", seed=3)
    last = trajectory.turns[turns].observation
    truncated = replace(trajectory, turns=trajectory.turns[:turns], final_observation=last, stop_reason="turn_limit")
    panel = panels_of(truncated)
    assert (panel["kind"], panel["note"]) == ("babyai", None) and len(panel["states"]) == turns + 1


def test_actor_without_environment_has_no_panel() -> None:
    odd = team_record((SEEN, PAIR, {}), last="x", agents=["planner", "actor"], env_id="AgentGym/PlannerActor-v0")
    assert panels_of(odd) == panels_of(episode("AgentGym/Other-v0", ["x", "y"], ["z"]))


def test_team_episodes_are_filtered_and_searched(tmp_path: Path) -> None:
    two, three = played(task=WALL), played(num_agents=3)
    save(tmp_path / "t.jsonl", two, three, hostile())
    viewer = Viewer([tmp_path])

    def found(**query: str) -> list[int]:
        return [row["id"] for row in viewer.page(parse_page(list(query.items())))["rows"]]

    assert viewer.summary()["groups"]["AgentGym/TextCraftCoop-v0"] == sorted({"g", two.task.group, three.task.group})
    assert two.task.group == "agents-2/depth-1" and found(group="agents-2/depth-1") == [0]
    assert found(q='Crafter_0 says: "craft 6 cobblestone wall') == [0], "as it reads, not as JSON writes it"
    assert found(q="onerror=\"document.title='bad'\"> \u202e") == [2], "also what is not ASCII"
    assert found(q='crafter_9 says: "craft') == []


def test_tokens_have_one_segment_per_agent(tmp_path: Path) -> None:
    made = with_tokens()
    with TrajectoryWriter(tmp_path / "t.jsonl") as writer, TokenWriter(tmp_path / "t.jsonl") as tokens:
        tokens.write(writer.write(made.trajectory), list(made.per_agent.values()), CODEC)
    viewer = Viewer([tmp_path])
    viewer.summary()
    segments = viewer.tokens(0)["segments"]
    assert viewer.episode(0)["team"]["agents"] == list(made.per_agent)
    assert [segment["mask"] for segment in segments] == [stream.assistant_mask for stream in made.per_agent.values()]
