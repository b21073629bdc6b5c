"""Playing teams: every agent has its own conversation, and no batch deadlocks."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.http.run import background_server
from agentgym_envs.multiagent.play import TeamEpisode, play_many_teams, play_many_teams_text, play_team
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Limits,
    OraclePolicy,
    RandomPolicy,
    ReplayPolicy,
    TokenTrajectory,
    encode_trajectory,
    play_many_text,
    play_text,
)
from agentgym_envs.rollout.policies import Answer
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.times import TimeSource, time_source
from tests.multiagent.engines import (
    CODEC,
    LIMITS,
    Chatter,
    Listener,
    coop,
    counting,
    name_in,
    plan_of,
    says,
    scripts,
    soon,
)
from tests.rollout.families import FAMILIES
from tests.trying import examples

WORDS = ("inventory", "pass", "get 1 oak log", "say hello", "give 1 oak log to crafter_1", "nonsense")


def solve(env: Any, task: str, codec: ChatCodec = CODEC) -> TeamEpisode:
    """Play with engines that write the oracle's texts."""
    engines = scripts(plan_of(env, task), env.agents, codec)
    return soon(play_team(env, engines, codec, EpisodeSpec(task), limits=LIMITS))


def whole(agent_tokens: TokenTrajectory, codec: ChatCodec) -> list[int]:
    """The finished conversation of an agent, rendered by its template."""
    trajectory = agent_tokens.trajectory
    messages = [*trajectory.messages(), {"role": "user", "content": trajectory.final_observation}]
    if not codec.system_role:
        messages[1]["content"] = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        messages = messages[1:]
    text = codec.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return list(codec.tokenizer(text, add_special_tokens=False)["input_ids"])


def check_per_agent(episode: TeamEpisode, codec: ChatCodec = CODEC) -> None:
    """Check the properties of the tokens of every episode."""
    for agent, agent_tokens in episode.per_agent.items():
        trajectory = agent_tokens.trajectory
        ids = agent_tokens.prompt_ids + agent_tokens.ids
        assert ids == whole(agent_tokens, codec)[: len(ids)]
        assert [part for part in _answers(agent_tokens, codec)] == list(trajectory.actions)
        again = encode_trajectory(trajectory, codec)
        assert (again.prompt_ids, again.ids, again.assistant_mask) == (
            agent_tokens.prompt_ids,
            agent_tokens.ids,
            agent_tokens.assistant_mask,
        )
        assert again.rewards == agent_tokens.rewards
        assert sum(agent_tokens.rewards) == pytest.approx(trajectory.score)
        assert trajectory.meta["agent"] == agent and trajectory.meta["team"] == list(episode.per_agent)
        if trajectory.final_observation:
            assert agent_tokens.bootstrap_ids == again.bootstrap_ids
    assert len({agent_tokens.trajectory.meta["episode"] for agent_tokens in episode.per_agent.values()}) == 1
    scores = [agent_tokens.trajectory.score for agent_tokens in episode.per_agent.values()]
    assert sum(scores) / len(scores) == pytest.approx(episode.trajectory.score)


def _answers(agent_tokens: TokenTrajectory, codec: ChatCodec) -> list[str]:
    """The texts under the mask."""
    runs: list[list[int]] = []
    for index, (token, own) in enumerate(zip(agent_tokens.ids, agent_tokens.assistant_mask, strict=True)):
        if own and (index == 0 or not agent_tokens.assistant_mask[index - 1]):
            runs.append([])
        if own:
            runs[-1].append(token)
    return [codec.decode(run) for run in runs]


@pytest.mark.parametrize("count", [1, 2, *(pytest.param(count, marks=pytest.mark.slow) for count in (3, 4))])
def test_engines_that_follow_the_oracle_solve_the_task(count: int) -> None:
    env = coop(num_agents=count, individual=0.3, split=None)
    task = env.tasks.sample(1, seed=count)[0].id
    episode = solve(env, task)
    joint = episode.trajectory
    assert joint.success and joint.stop_reason == "success"
    assert list(episode.per_agent) == list(env.agents) == list(json.loads(joint.instructions))
    check_per_agent(episode)
    for agent, agent_tokens in episode.per_agent.items():
        assert agent_tokens.trajectory.instructions == env.instructions_for(agent)
        assert agent_tokens.trajectory.score == pytest.approx(joint.turns[-1].info["agents"][agent]["score"])
        assert len(agent_tokens.trajectory.turns) == len(joint.turns)
        assert agent_tokens.bootstrap_ids == [] and agent_tokens.logprobs is not None
    assert joint.turns[0].info["answers"].keys() == episode.per_agent.keys()
    assert joint.turns[0].info["tokens"] == sum(own["tokens"] for own in joint.turns[0].info["answers"].values())


@pytest.mark.parametrize("name", FAMILIES)
def test_each_agents_tokens_equal_the_rendered_template(name: str) -> None:
    codec = ChatCodec(FAMILIES[name].tokenizer())
    env = coop()
    episode = solve(env, "textcraft-coop/2/22", codec)
    assert episode.trajectory.success
    for agent_tokens in episode.per_agent.values():
        ids = agent_tokens.prompt_ids + agent_tokens.ids
        again = encode_trajectory(agent_tokens.trajectory, codec)
        assert (again.ids, again.assistant_mask, again.rewards) == (
            agent_tokens.ids,
            agent_tokens.assistant_mask,
            agent_tokens.rewards,
        )
        if not FAMILIES[name].thought:
            assert ids == whole(agent_tokens, codec)[: len(ids)]


@examples(8)
@given(st.integers(1, 4), st.integers(0, 10**6), st.integers(60, 1500), st.integers(1, 30), st.integers(1, 40))
def test_tokens_match_the_record_for_any_texts_and_limits(
    n: int, seed: int, tokens: int, turns: int, turn_tokens: int
) -> None:
    """With truncated answers, budgets that run out at different times, and turn limits."""
    env = coop(num_agents=n, individual=0.5)
    limits = Limits(max_turns=turns, max_tokens=tokens, max_turn_tokens=turn_tokens)
    episode = soon(play_team(env, Chatter(WORDS, seed), CODEC, EpisodeSpec(seed=seed), limits=limits))
    check_per_agent(episode)
    for agent_tokens in episode.per_agent.values():
        assert len(agent_tokens.ids) <= tokens
        assert bool(agent_tokens.bootstrap_ids) == episode.trajectory.truncated
    played = episode.trajectory
    again = Limits(max_turns=len(played.turns))
    replayed = soon(play_text(env, ReplayPolicy(played.actions), EpisodeSpec(seed=seed), limits=again))
    assert [(t.observation, t.action, t.reward) for t in replayed.turns] == [
        (t.observation, t.action, t.reward) for t in played.turns
    ]
    assert (replayed.score, replayed.final_observation) == (played.score, played.final_observation)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_private_information_is_in_no_other_agents_tokens(n: int) -> None:
    """Cards, inventories and texts that are not messages are private; messages reach all."""
    env = coop(num_agents=n)
    _, info = env.reset(seed=4)
    cards = {agent: set(own["card"]["recipes"]) for agent, own in info["agents"].items()}
    takes = {agent: own["card"]["takes"][0] for agent, own in info["agents"].items() if own["card"]["takes"]}

    def answer(prompt: str) -> str:
        name, turn = name_in(prompt), prompt.count("assistant\n")
        texts = [f"get 7 {takes.get(name, 'secret')}", "inventory", f"secret of {name}", f"say hello from {name}"]
        return [*texts, "pass", "inventory"][turn - 1] if turn <= 6 else "pass"

    spec = EpisodeSpec(seed=4)
    episode = soon(play_team(env, Listener(answer), CODEC, spec, limits=Limits(max_turns=7, max_tokens=10**5)))
    assert not episode.trajectory.success
    for agent, agent_tokens in episode.per_agent.items():
        text = CODEC.tokenizer.decode(agent_tokens.prompt_ids + agent_tokens.ids)
        assert text.count("Inventory:") == 2 and text.count(f"secret of {agent}") >= 1
        for other in set(episode.per_agent) - {agent}:
            assert not [line for line in cards[other] - cards[agent] if line in text]
            assert f"secret of {other}" not in text
            assert f'{other} says: "hello from {other}"' in text
            if other in takes:
                assert f"Got 7 {takes[other]}" not in text


def test_an_agent_without_tokens_passes_and_the_others_play_on() -> None:
    """crafter_0 uses up its budget with padded texts; crafter_1 plays until its own is used up."""
    env = coop()
    answers = {"crafter_0": "pass" + " " * 300, "crafter_1": "pass"}
    engine = Listener(lambda prompt: answers[name_in(prompt)])
    episode = soon(play_team(env, engine, CODEC, EpisodeSpec(seed=0), limits=Limits(100, 2_000)))
    rows = [json.loads(action) for action in episode.trajectory.actions]
    silent = [number for number, row in enumerate(rows) if row["crafter_0"] is None]
    assert episode.trajectory.stop_reason == "token_limit"
    assert silent == list(range(silent[0], len(rows))) and 0 < silent[0] < len(rows) - 1
    assert all(row["crafter_1"] is not None for row in rows)
    one, other = episode.per_agent.values()
    assert len(one.trajectory.turns) == silent[0] and len(other.trajectory.turns) == len(rows)
    assert one.trajectory.final_observation == json.loads(episode.trajectory.turns[silent[0]].observation)["crafter_0"]
    assert one.bootstrap_ids[
        -len(CODEC.encode_observation(one.trajectory.final_observation)) :
    ] == CODEC.encode_observation(one.trajectory.final_observation)
    check_per_agent(episode)


def test_later_rewards_of_a_silent_agent_are_on_its_last_answer() -> None:
    """crafter_0 gives its items and uses up its budget with white space; crafter_1 wins for both."""
    task = "textcraft-coop/2/22"
    give = "give 6 cobblestone to crafter_1" + " " * 2_500
    engines = {
        "crafter_0": says("pass", "get 6 cobblestone", give),
        "crafter_1": says("pass", "pass", "inventory", "craft 6 cobblestone wall using 6 cobblestone"),
    }
    limits = Limits(40, max_tokens=2_600, max_turn_tokens=2_600)
    episode = soon(play_team(coop(), engines, CODEC, EpisodeSpec(task), limits=limits))
    assert episode.trajectory.success and json.loads(episode.trajectory.actions[-1])["crafter_0"] is None
    agent_tokens = episode.per_agent["crafter_0"]
    assert [turn.reward for turn in agent_tokens.trajectory.turns] == [0.0, 0.0, 1.0]
    assert (agent_tokens.rewards[-1], agent_tokens.trajectory.score) == (1.0, 1.0)
    assert agent_tokens.trajectory.turns[-1].info["score"] == 1.0 and agent_tokens.trajectory.success
    assert agent_tokens.trajectory.final_observation == "Gave 6 cobblestone to crafter_1"
    check_per_agent(episode)


@pytest.mark.parametrize(("planner", "actor", "stop"), [(5_000, 10, "success"), (10, 5_000, "token_limit")])
def test_a_planner_without_tokens_passes_and_an_actor_ends_the_episode(planner: int, actor: int, stop: str) -> None:
    env = counting()
    engines = {"planner": says(*["go" + " " * planner] * 9), "actor": says(*["up" + " " * actor] * 9)}
    limits = Limits(50, max_tokens=5_100, max_turn_tokens=5_100)
    episode = soon(play_team(env, engines, CODEC, EpisodeSpec("count/9"), limits=limits))
    assert episode.trajectory.stop_reason == stop
    last = json.loads(episode.trajectory.actions[-2 if stop == "success" else -1])
    assert last == ({"planner": None} if stop == "success" else {"actor": None})
    check_per_agent(episode)
    per_agent = episode.per_agent
    assert per_agent["actor"].trajectory.score == per_agent["planner"].trajectory.score == episode.trajectory.score
    assert per_agent["planner"].rewards[-1] == pytest.approx(8 / 9 if stop == "success" else 0.0)
    assert episode.trajectory.turns[1].info["tokens"] > 0


def test_a_planner_truncated_before_its_next_turn_has_no_final_observation() -> None:
    engines = {"planner": says("go", "go"), "actor": says("up")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec("count/9"), limits=Limits(3)))
    planner, actor = episode.per_agent.values()
    assert (planner.trajectory.final_observation, planner.bootstrap_ids) == ("", [])
    assert actor.trajectory.final_observation.endswith('planner says: "go"') and actor.bootstrap_ids
    assert [turn.observation for turn in planner.trajectory.turns][1] == 'actor says: "up"\n\n1'
    assert [turn.reward for turn in planner.trajectory.turns] == [pytest.approx(1 / 9), 0.0]
    check_per_agent(episode)


@pytest.mark.parametrize("task", ["count/0", "count/9"])
def test_a_failing_environment_makes_all_trajectories_unusable(task: str) -> None:
    engines = {"planner": says("go", "go"), "actor": says("up", "crash")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec(task), limits=LIMITS))
    assert episode.trajectory.stop_reason == "env_error"
    for agent_tokens in episode.per_agent.values():
        assert not agent_tokens.trajectory.usable and agent_tokens.trajectory.error == episode.trajectory.error
        assert agent_tokens.prompt_ids and len(agent_tokens.trajectory.turns) == (0 if task == "count/0" else 2)
        assert sum(agent_tokens.rewards) == pytest.approx(episode.trajectory.score)


class Fussy(Chatter):
    """Fails at its third batch."""

    def generate_batch(self, prompts: Any, samplings: Any) -> Any:
        if len(self.sizes) == 2:
            self.sizes.append(0)
            raise EngineError("out of memory")
        return super().generate_batch(prompts, samplings)


def engines_of(kind: str, agents: tuple[str, ...], seed: int) -> Any:
    """One engine for all, one each, or two engines that share the agents."""
    if kind == "shared":
        return Chatter(WORDS, seed, most=60)
    own = [Chatter(WORDS, seed + index, most=1 + 40 * index) for index in range(len(agents))]
    return {agent: own[index if kind == "own" else index % 2] for index, agent in enumerate(agents)}


TEAM_SETUPS = [
    pytest.param(*setup, marks=[] if setup in ((2, "shared", 3), (3, "two", 2), (2, "own", 7)) else pytest.mark.slow)
    for setup in itertools.product((1, 2, 3, 4), ("shared", "own", "two"), (1, 2, 3, 7))
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("n", "kind", "concurrency"), TEAM_SETUPS)
def test_batches_never_deadlock(n: int, kind: str, concurrency: int) -> None:
    """With budgets that run out and teams that end at different times."""
    engines = engines_of(kind, coop(num_agents=n).agents, n)
    specs = [EpisodeSpec(seed=seed, max_turns=1 + seed % 4) for seed in range(9)]
    limits = Limits(max_turns=5, max_tokens=700, max_turn_tokens=400)
    how: dict[str, Any] = {"limits": limits, "concurrency": concurrency}
    for _ in range(2):  # twice, as the first run must leave no announced workers
        done = soon(play_many_teams(specs, lambda: coop(num_agents=n), engines, CODEC, **how))
        assert [episode.trajectory.seed for episode in done] == list(range(9))
        assert {"turn_limit", "token_limit"} >= {episode.trajectory.stop_reason for episode in done}
    if kind == "shared":
        assert engines.sizes[0] == n * min(concurrency, 9)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("concurrency", [1, 2, 5])
@pytest.mark.parametrize("own", [True, False])
def test_batches_of_planners_and_actors_never_deadlock(own: bool, concurrency: int) -> None:
    """Some teams wait for a planner while others wait for an actor."""
    planner = Chatter(["go", "on", "up"], 0)
    engines: Any = {"planner": planner, "actor": Chatter(["up", "down", "give up"], 1, most=1)} if own else planner
    specs = [EpisodeSpec(("count/2", "count/3", "count/9")[seed % 3], seed, max_turns=3 + seed) for seed in range(7)]
    done = soon(play_many_teams(specs, counting, engines, CODEC, limits=LIMITS, concurrency=concurrency))
    assert len(done) == 7
    for episode in done:
        check_per_agent(episode)
    assert max(planner.sizes) == concurrency


def test_batches_are_full_while_all_teams_play() -> None:
    engine = Chatter(["pass"])
    specs = [EpisodeSpec(seed=seed) for seed in range(6)]
    soon(play_many_teams(specs, lambda: coop(num_agents=3), engine, CODEC, limits=Limits(4), concurrency=6))
    assert engine.sizes == [18] * 4
    own = {f"crafter_{index}": Chatter(["pass"]) for index in range(3)}
    soon(play_many_teams(specs, lambda: coop(num_agents=3), own, CODEC, limits=Limits(4), concurrency=6))
    assert [engine.sizes for engine in own.values()] == [[6] * 4] * 3


def test_the_result_does_not_depend_on_the_order_of_replies() -> None:
    specs = [EpisodeSpec(seed=seed // 2) for seed in range(8)]

    def played(env_id: str) -> list[Any]:
        engine = Chatter(["up", "down"], 3, most=1)
        done = soon(
            play_many_teams(
                specs, lambda: counting(env_kwargs={}, env_id=env_id), engine, CODEC, limits=Limits(6), concurrency=3
            )
        )
        return [[(s.ids, s.rewards) for s in episode.per_agent.values()] for episode in done]

    assert played("tests.toy_envs:Toy/Count-v0") == played("tests.toy_envs:Toy/Slow-v0")


def test_a_failing_engine_is_raised_and_can_be_used_again() -> None:
    engine = Fussy(WORDS)
    specs = [EpisodeSpec(seed=seed) for seed in range(4)]
    with pytest.raises(EngineError, match="out of memory"):
        soon(play_many_teams(specs, coop, engine, CODEC, limits=Limits(5), concurrency=3))
    with pytest.raises(RuntimeError, match="StopIteration"):
        soon(play_team(coop(), {"crafter_0": engine, "crafter_1": says()}, CODEC, specs[0], limits=Limits(5)))
    engine.sizes.clear()
    engine.sizes += [0] * 9
    done = soon(play_many_teams(specs, coop, engine, CODEC, limits=Limits(5), concurrency=3))
    assert len(done) == 4 and engine.sizes[9] == 6


def test_a_cancelled_episode_is_no_longer_counted_as_a_worker() -> None:
    class Patient(Chatter):
        """Never answers the first requests."""

        async def generate(self, prompt_ids: Any, sampling: Any) -> Any:
            await asyncio.sleep(3600 if not self.sizes else 0)
            return await super().generate(prompt_ids, sampling)

    engine = Patient(WORDS)

    async def main() -> list[TeamEpisode]:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(play_team(coop(), engine, CODEC, EpisodeSpec(seed=0), limits=Limits(3)), 0.05)
        engine.sizes.append(0)
        specs = [EpisodeSpec(seed=seed) for seed in range(3)]
        return await play_many_teams(specs, coop, engine, CODEC, limits=Limits(3), concurrency=3)

    assert len(soon(main())) == 3 and engine.sizes[1:] == [6, 6, 6]


def test_environments_and_engines_that_do_not_fit_are_refused() -> None:
    spec = EpisodeSpec(seed=0)

    def why(env: Any, engines: Any) -> str:
        with pytest.raises(UsageError) as error:
            soon(play_team(env, engines, CODEC, spec, limits=LIMITS))
        return str(error.value)

    assert "'crafter_1' has no engine" in why(coop(), {"crafter_0": says("pass")})
    assert "is not a team" in why(TextCraftEnv(), says("pass"))
    assert "leave `grammar` out" in why(coop(grammar="tag"), says("pass"))
    with pytest.raises(UsageError, match="has no policy"):
        soon(play_many_teams_text([spec], coop, {"crafter_0": RandomPolicy}, limits=LIMITS))


class OracleMember:
    """A policy for one agent: plays its part of the oracle's next round and records its messages."""

    shown: list[Any] = []  # noqa: RUF012 (cleared by the test)

    async def act(self, env: Any, messages: Any) -> Answer:
        self.shown.append(messages[:])
        name = name_in(messages[0]["content"])
        return Answer(json.loads(next(env.oracle()))[name], {"finish": "stop", "tokens": 2})


def test_text_policies_have_a_conversation_for_each_agent() -> None:
    OracleMember.shown.clear()
    specs = [EpisodeSpec("textcraft-coop/2/22", seed) for seed in range(3)]
    seen: list[Any] = []
    found = soon(
        play_many_teams_text(
            specs, coop, {"crafter_0": OracleMember, "crafter_1": OracleMember}, limits=LIMITS, on_done=seen.append
        )
    )
    assert found == sorted(seen, key=lambda trajectory: trajectory.seed) and all(each.success for each in found)
    assert found[0].turns[0].info["tokens"] == 4
    last = [messages for messages in OracleMember.shown if len(messages) == 2 * len(found[0].turns)]
    env = coop()
    for messages in last:
        name = name_in(messages[0]["content"])
        assert messages[0]["content"] == env.instructions_for(name)
        assert messages[1]["content"].startswith(f"You are {name}.")
        assert [m["role"] for m in messages] == ["system", *["user", "assistant"] * (len(messages) // 2)][
            : len(messages)
        ]
        observations = [json.loads(turn.observation)[name] for turn in found[0].turns[1:]]
        assert [m["content"] for m in messages[3::2]] == observations


@pytest.mark.parametrize("policy", [OraclePolicy, RandomPolicy])
def test_policies_that_play_the_whole_team_play_the_joint_form(policy: Any) -> None:
    specs = [EpisodeSpec(seed=seed) for seed in range(4)]
    found = soon(play_many_text(specs, lambda: coop(num_agents=3), policy, limits=LIMITS))
    assert [each.success for each in found] == [policy is OraclePolicy] * 4
    assert not any(turn.info["invalid_action"] for each in found for turn in each.turns)


def test_a_policy_may_return_plain_text() -> None:
    class Silent:
        async def act(self, env: Any, messages: Any) -> str:
            return "pass"

    [found] = soon(play_many_teams_text([EpisodeSpec(seed=0)], coop, Silent, limits=Limits(2)))
    assert [json.loads(action) for action in found.actions] == [{"crafter_0": "pass", "crafter_1": "pass"}] * 2
    assert "tokens" not in found.turns[0].info and found.stop_reason == "turn_limit"


@pytest.fixture
def stopped_clocks() -> Iterator[None]:
    """Clocks that do not run: the record of an agent names the joint record by its bytes."""
    token = time_source.set(TimeSource(lambda: 0.0, lambda: 0.0))
    yield
    time_source.reset(token)


@pytest.mark.slow
@pytest.mark.usefixtures("stopped_clocks")
def test_remote_teams_are_played_like_local_ones() -> None:
    specs = [EpisodeSpec(seed=seed) for seed in range(4)]

    def played(**options: Any) -> list[Any]:
        def make() -> Any:
            return gym.make("AgentGym/TextCraftCoop-v0", num_agents=3, **options)

        engine = Chatter(WORDS, 5)
        done = soon(play_many_teams(specs, make, engine, CODEC, limits=Limits(6, 900), concurrency=3))
        return [(episode.trajectory, episode.per_agent) for episode in done]

    with background_server(["AgentGym/TextCraftCoop-v0"]) as url:
        assert played(base_url=url) == played()
