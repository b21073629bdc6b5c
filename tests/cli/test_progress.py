"""The success that the progress bar shows."""

from __future__ import annotations

from agentgym_envs.cli.evaluating.plan import EvalPlan
from agentgym_envs.cli.evaluating.running import FinishedEpisodes
from agentgym_envs.cli.policies import EpisodeRequest
from agentgym_envs.cli.run_store import EpisodeKey
from agentgym_envs.rollout import EpisodeSpec, Limits
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn

ENV = "A/B-v0"


def ended(group: str, task: str, success: bool, stop: str = "success") -> tuple[EpisodeKey, Trajectory]:
    turns = () if stop == "env_error" else (Turn("o", "a", 0.0),)
    found = Trajectory(ENV, Task(task, "test", group, "g"), 0, "", turns, "", float(success), success, stop)
    return (ENV, task, 0), found


def test_only_episodes_before_the_first_running_one_count() -> None:
    specs = [EpisodeSpec(task, 0) for task in ("e1", "e2", "h1", "h2", "h3")]
    plan = EvalPlan([EpisodeRequest(ENV, lambda: None, specs, Limits())])  # type: ignore[arg-type, return-value]
    done: dict[EpisodeKey, Trajectory] = {}
    shown = FinishedEpisodes(plan, done)
    assert shown.text() == ""
    done |= [ended("easy", "e2", True), ended("hard", "h3", True)]  # the short ones end first
    assert shown.text() == ""
    done |= [ended("easy", "e1", False)]
    assert shown.text() == "easy 50% of 2"
    done |= [ended("hard", "h1", False, "env_error")]
    done |= [ended("hard", "h2", False)]
    assert shown.text() == "easy 50% of 2, hard 50% of 2"  # an episode that failed says nothing about the policy
