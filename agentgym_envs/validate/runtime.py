"""Checks of single episodes: what `reset` and `step` return, and how it depends on seeds."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from agentgym_envs.core import StopReason, TextEnv, text_env
from agentgym_envs.grammar import make_grammar, tools_of
from agentgym_envs.image_observations import text_of
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.validate.episodes import (
    EpisodeStart,
    RecordedEpisode,
    first_difference,
    plain,
    plan_of,
    play,
    replaying,
)
from agentgym_envs.validate.findings import Finding, NotApplicable
from agentgym_envs.validate.subject import ValidationSubject
from agentgym_envs.validate.watch import watching
from agentgym_envs.wrappers import make_trajectory

REQUIRED_INFO = frozenset({"task_id", "seed", "turn", "score", "success", "stop_reason", "state_key"})
_ROUNDING = 1e-9


def startup(subject: ValidationSubject) -> Finding:
    """The environment can be made, reset, stepped and closed, also twice."""
    problems = []
    with watching() as subject.start_watch, subject.fresh() as env:
        if isinstance(env.unwrapped, TextEnv):
            env.unwrapped.prepare()
        observation, info = env.reset(seed=0)
        if info.get("stop_reason") == StopReason.ENV_ERROR:
            problems.append(f"the first reset failed: {info.get('error')}")
        else:
            env.step("" if isinstance(env.unwrapped, TextEnv) else env.action_space.sample())
        env.close()
    return Finding(problems, {"observation_chars": len(text_of(observation))})


def reward_well_formed(subject: ValidationSubject) -> Finding:
    """Every reward is a finite number, and those of an episode of a `TextEnv` add up to 0 to 1."""
    problems = []
    for episode in subject.known_episodes:
        wrong = [step.reward for step in episode.steps if not _is_finite(step.reward)]
        if wrong:
            problems.append(f"{episode.start}: the reward {wrong[0]!r} is not a finite number")
        elif subject.is_text_env and not all(-_ROUNDING <= total <= 1 + _ROUNDING for total in _totals(episode)):
            problems.append(f"{episode.start}: the rewards add up to {episode.score:g}, outside 0 to 1")
    return Finding(problems, {"rewards": sum(len(episode.steps) for episode in subject.known_episodes)})


def _is_finite(reward: Any) -> bool:
    number = isinstance(reward, int | float | np.number) and not isinstance(reward, bool)
    return number and math.isfinite(reward)


def _totals(episode: RecordedEpisode) -> Iterator[float]:
    total = 0.0
    for step in episode.steps:
        total += float(step.reward)
        yield total


def observation_schema(subject: ValidationSubject) -> Finding:
    """Every observation is in the observation space, and every action that was played in the action space."""
    problems, count = [], 0
    with subject.fresh() as env:
        for episode in subject.known_episodes:
            seen = [episode.observation, *(step.observation for step in episode.steps)]
            count += len(seen)
            if outside := [one for one in seen if not env.observation_space.contains(one)]:
                problems.append(f"{episode.start}: the observation {outside[0]!r:.80} is not in the space")
            if actions := [one for one in episode.actions if not env.action_space.contains(one)]:
                problems.append(f"{episode.start}: the action {actions[0]!r:.80} is not in the action space")
    return Finding(problems, {"observations": count})


def state_contract(subject: ValidationSubject) -> Finding:
    """The info names task and seed, counts the turns, and reports the end; `status()` agrees with it."""
    problems = [text for episode in subject.known_episodes for text in _wrong_infos(episode)]
    with subject.fresh() as env:
        base = text_env(env)
        for script in subject.scripts[:2]:
            last = subject.replay(script, env).last_info
            status = base.status()
            if wrong := sorted(name for name in status if status[name] != last.get(name)):
                problems.append(f"{script[0]}: status() and info differ in {', '.join(wrong)}")
    return Finding(problems, {"episodes": len(subject.known_episodes)})


def _wrong_infos(episode: RecordedEpisode) -> Iterator[str]:
    for turn, info in enumerate([episode.info, *(step.info for step in episode.steps)]):
        where = f"{episode.start}, turn {turn}"
        over = turn > 0 and bool(episode.steps[turn - 1].terminated or episode.steps[turn - 1].truncated)
        terminated = turn > 0 and bool(episode.steps[turn - 1].terminated)
        if missing := sorted(REQUIRED_INFO - info.keys()):
            yield f"{where}: info lacks {', '.join(missing)}"
            return
        if info["turn"] != turn or info["seed"] != episode.start.seed:
            yield f"{where}: info has turn {info['turn']!r} and seed {info['seed']!r}"
        if episode.start.task_id not in (None, info["task_id"]):
            yield f"{where}: info has the task {info['task_id']!r}"
        if (info["stop_reason"] is not None) != over or info["success"] not in (False, terminated):
            reported = f"stop_reason {info['stop_reason']!r} and success {info['success']!r}"
            yield f"{where}: {reported} after terminated={terminated}"
        if not _is_json({name: value for name, value in info.items() if name != "screenshot"}):
            yield f"{where}: info is not JSON"


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def trajectory_record(subject: ValidationSubject) -> Finding:
    """A record of an episode, written as a line of JSON, reads back equal."""
    problems = []
    with subject.fresh() as env:
        for script in subject.scripts:
            record = _record(env, subject.replay(script, env))
            line = record.to_json({})
            if Trajectory.from_json(line).to_json({}) != line:
                problems.append(f"{script[0]}: the record changes when it is written and read")
    return Finding(problems, {"episodes": len(subject.scripts)})


def _record(env: Any, episode: RecordedEpisode) -> Trajectory:
    before = [episode.observation, *(step.observation for step in episode.steps)]
    turns = tuple(
        Turn(text_of(seen), step.action, float(step.reward), step.info)
        for seen, step in zip(before, episode.steps, strict=False)
    )
    return make_trajectory(env, turns, text_of(episode.last_observation), dict(episode.last_info))


def reward_attribution(subject: ValidationSubject) -> Finding:
    """The reward of each step is the increase of the score."""
    problems = []
    for episode in subject.known_episodes:
        scores = [step.info.get("score", math.nan) for step in episode.steps]
        if any(abs(a - b) > _ROUNDING or a != a for a, b in zip(scores, _totals(episode), strict=True)):
            problems.append(f"{episode.start}: the scores are {scores[:6]}, the sums {list(_totals(episode))[:6]}")
    return Finding(problems, {"episodes": len(subject.known_episodes)})


def tool_declaration_accuracy(subject: ValidationSubject) -> Finding:
    """Every declared format of actions carries the oracle's commands, and the environment accepts them."""
    problems, count = [], 0
    with subject.fresh() as env:
        base = text_env(env)
        grammars = {name: make_grammar(name, base.grammars) for name in base.grammars}
    for episode in subject.oracle_episodes:
        for command, step in zip(episode.plan or (), episode.steps, strict=False):
            count += 1
            if (invalid := step.info.get("invalid_action")) is not None:
                problems.append(f"{episode.start}: the oracle's command {command!r:.60} is refused: {invalid:.80}")
            for name, grammar in grammars.items():
                if grammar.parse(grammar.format(command)).command != command:
                    problems.append(f"{episode.start}: the format {name!r} changes the command {command!r:.60}")
    tools = sorted({tool["function"]["name"] for grammar in grammars.values() for tool in tools_of(grammar)})
    return Finding(problems, {"commands": count, "formats": list(grammars), "tools": tools})


def seed_control(subject: ValidationSubject) -> Finding:
    """A seed determines the episode, and resets without a seed after it; other seeds give other episodes."""
    seeds = range(subject.sizes.seeds)
    with subject.fresh() as one, subject.fresh() as other:
        begins = [plain(one.reset(seed=seed)) for seed in seeds]
        again = [plain(other.reset(seed=seed)) for seed in seeds]
        after = [plain(one.reset()) for _ in seeds[:3]] == [plain(other.reset()) for _ in seeds[:3]]
        base = one.unwrapped
        kinds = _number_of_tasks(base) if isinstance(base, TextEnv) else 1
    problems = [
        f"seed {s} begins in two ways: {first_difference(a, b)}"
        for s, a, b in zip(seeds, begins, again, strict=True)
        if a != b
    ]
    if not after and not problems:
        problems.append("resets without a seed differ after equal seeds")
    problems += [
        f"seed {s}: info has the seed {b[1]['seed']}"
        for s, b in zip(seeds, begins, strict=True)
        if b[1].get("seed", s) != s
    ]
    distinct = len({json.dumps([b[0], b[1].get("task_id")]) for b in begins})
    if distinct == 1 and kinds ** (1 - len(seeds)) < 0.01:
        problems.append(
            f"{len(seeds)} seeds give the same episode, although there are {kinds} tasks: is the seed used?"
        )
    return Finding(problems, {"seeds": len(seeds), "distinct": distinct})


def _number_of_tasks(env: TextEnv) -> int:
    drawn = {env.tasks.draw(key, split=env.split, groups=env.groups).id for key in range(100)}
    return len(drawn)


def episode_determinism(subject: ValidationSubject) -> Finding:
    """The same seed, task and actions give the same results when they are played again."""
    problems = []
    with subject.fresh() as env:
        for script in subject.within(subject.scripts):
            one, again = (subject.replay(script, env).transcript for _ in range(2))
            if one != again:
                problems.append(f"{script[0]}: {first_difference(one, again)}")
    return Finding(problems, {"episodes": len(subject.scripts)})


def replayability(subject: ValidationSubject) -> Finding:
    """Info and actions of an episode suffice to play it again in another environment."""
    problems = []
    with subject.fresh() as env, subject.fresh() as other:
        for start, actions in subject.within(subject.scripts):
            first = play(env, EpisodeStart(start.seed), replaying(actions))
            known = EpisodeStart(first.info.get("seed", start.seed), first.info.get("task_id"))
            again = play(other, known, replaying(first.actions))
            if first.transcript != again.transcript:
                problems.append(f"{start}: {first_difference(first.transcript, again.transcript)}")
    return Finding(problems, {"episodes": len(subject.scripts)})


def episode_isolation(subject: ValidationSubject) -> Finding:
    """An episode is the same alone, after another one, and while another environment plays."""
    if len(subject.scripts) == 1:
        scripts = [*subject.scripts, (EpisodeStart(99), ["", "what now?"])]
    else:
        scripts = list(subject.scripts)
    problems, pairs = [], list(zip(scripts[1:], scripts, strict=False))
    for (start, actions), (before, its_actions) in subject.within(pairs):
        alone = subject.replay((start, actions)).transcript
        with subject.fresh() as env, subject.fresh() as other:
            play(env, before, replaying(its_actions[: max(1, len(its_actions) // 2)]))
            after = play(env, start, replaying(actions)).transcript
            together = _interleaved(env, (start, actions), other, (before, its_actions)).transcript
        problems += [
            f"{start} differs {when}: {first_difference(alone, seen)}"
            for when, seen in (("after another episode", after), ("while another environment plays", together))
            if seen != alone
        ]
    return Finding(problems, {"pairs": len(pairs)})


def _interleaved(env: Any, script: Any, other: Any, its_script: Any) -> RecordedEpisode:
    """Play a script while a second environment plays another one, turn by turn."""
    (start, actions), (its_start, its_actions) = script, its_script
    other.reset(seed=its_start.seed, options=its_start.options)
    rest, over = iter(its_actions), False

    def act(env: Any, episode: RecordedEpisode) -> str | None:
        nonlocal over
        if not over and (action := next(rest, None)) is not None:
            _, _, terminated, truncated, _ = other.step(action)
            over = terminated or truncated
        return actions[len(episode.steps)] if len(episode.steps) < len(actions) else None

    return play(env, start, act)


def snapshot_roundtrip(subject: ValidationSubject) -> Finding:
    """A snapshot, also a pickled one, brings another environment to the same state, and it continues equally."""
    problems = []
    with subject.fresh() as env, subject.fresh() as other:
        base, restored = text_env(env), text_env(other)
        for start, actions in subject.within(subject.scripts):
            half = len(actions) // 2
            played = play(env, start, replaying(actions[:half]))
            if played.over:
                continue
            snapshot, rest = base.snapshot(), actions[half:]
            goes_on = _continue(env, rest)
            for kind, saved in (("snapshot", snapshot), ("pickled snapshot", pickle.loads(pickle.dumps(snapshot)))):
                if text_of(restored.restore(saved)) != text_of(played.last_observation):
                    problems.append(f"{start}: a {kind} restores another observation")
                elif (seen := _continue(other, rest)) != goes_on:
                    problems.append(
                        f"{start}: a restored {kind} continues differently, {first_difference(goes_on, seen)}"
                    )
    return Finding(problems, {"episodes": len(subject.scripts), "copies_state": base.copies_state})


def _continue(env: Any, actions: list[str]) -> list[Any]:
    seen = []
    for action in actions:
        seen.append(plain(env.step(action)))
        if seen[-1][2] or seen[-1][3]:
            break
    return seen


def oracle_pure(subject: ValidationSubject) -> Finding:
    """Planning changes nothing: a second plan is equal, and the episode continues equally after it."""
    problems = []
    with subject.fresh() as env:
        base = text_env(env)
        for episode in subject.within(subject.oracle_episodes[: subject.sizes.few]):
            start = episode.start
            env.reset(seed=start.seed, options=start.options)
            if plan_of(base) != plan_of(base):
                problems.append(f"{start}: a second plan differs")
            elif _continue(env, episode.actions) != episode.transcript[1:]:
                problems.append(f"{start}: the episode differs after two plans")
    return Finding(problems, {"episodes": min(len(subject.oracle_episodes), subject.sizes.few)})


def state_key(subject: ValidationSubject) -> Finding:
    """The state key of the goal differs from that of the start."""
    solved = [episode for episode in subject.oracle_episodes if episode.success]
    if not solved:
        raise NotApplicable("the oracle solved no task")
    same = [e for e in solved if e.last_info["state_key"] == e.info["state_key"]]
    problems = [f"{e.start}: `_state` is equal at the start and at the goal" for e in same]
    return Finding(problems, {"episodes": len(solved)})
