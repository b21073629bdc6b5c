"""The rules by which an episode, or the episodes of a group, are findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentgym_envs.audit.attempts import MARGIN, AttackFamily
from agentgym_envs.audit.scenes import MeasuredScene
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.validate.episodes import RecordedEpisode, RecordedStep
from agentgym_envs.validate.findings import ORACLE_TOLERANCE

LUCK = 0.001
"""Wins that chance explains with at least this probability are no finding."""
FLOOR_LUCK = 0.01
"""The same, if the chance is estimated from the honest floor (by Laplace's rule of succession)."""
JUDGED_BY_GROUP = frozenset({AttackFamily.NO_WORK, AttackFamily.GUESSING, AttackFamily.FORGING})
"""Families whose attempts earn by luck only, unless they have a limit of their own."""


def unearned(measured: MeasuredScene, episode: RecordedEpisode, may_fail: bool = False) -> str:
    """The reason why no sound environment gives this episode; "" without one."""
    info = episode.last_info
    if info.get("stop_reason") == "env_error" and not may_fail:
        return f"it ends as env_error, which no metric counts: {info.get('error')}"
    if info.get("stop_reason") == "env_error" and episode.steps and (episode.success or episode.steps[-1].reward > 0):
        return "a step that failed was rewarded"
    if info.get("turn", len(episode.steps)) != len(episode.steps):
        return f"the environment counts {info['turn']} turns after {len(episode.steps)} steps"
    if any(step.reward > 0 and _refused(step) for step in episode.steps):
        return "a refused action was rewarded"
    if episode.score > 1 + MARGIN:
        return f"the rewards add up to {episode.score:g}, and the maximum is 1"
    best = measured.oracle
    if best.success and episode.score > best.score + ORACLE_TOLERANCE:
        return f"it scores {episode.score:g}, and the oracle {best.score:g}"
    return ""


def _refused(step: RecordedStep) -> bool:
    """True for a refused action. A joint action of a team is refused in part only."""
    return step.info.get("invalid_action") is not None and "agents" not in step.info


def too_short(env: Any, measured: MeasuredScene, episode: RecordedEpisode) -> str:
    """The reason why a success came too early; "" if it did not, or if nothing is proven."""
    if not episode.success or len(episode.steps) >= len(measured.oracle.steps):
        return ""
    start = episode.start
    env.reset(seed=start.seed, options=start.options)
    try:
        solution = text_env(env).solution()
    except NoOracle:
        return ""
    if not solution.exact or solution.commands is None or len(solution.commands) <= len(episode.steps):
        return ""
    return f"it succeeds in {len(episode.steps)} turns, and no solution takes fewer than {len(solution.commands)}"


def beyond_limit(episode: RecordedEpisode, most: float, may_succeed: bool) -> str:
    """The reason why an episode is better than its limit; "" if it is not."""
    if episode.score > most + MARGIN:
        return f"it scores {episode.score:g}, and at most {max(most, 0.0):g} is earned"
    if episode.success and not may_succeed:
        return "it succeeds, and it is not a solution"
    return ""


def below_limit(episode: RecordedEpisode, least: float | None) -> str:
    """The reason why an episode is worse than its limit; "" if it is not."""
    lost = least is not None and episode.score < least - MARGIN
    return f"it scores {episode.score:g}, and {least:g} was earned" if lost else ""


def earned_late(episode: RecordedEpisode) -> str:
    """The reason why doing nothing earned more than the initial state is worth; "" if it did not."""
    late = sum(float(step.reward) for step in episode.steps[1:])
    return f"doing nothing earned {late:g} after the first turn" if late > MARGIN else ""


def chance_of(wins: int, rates: Sequence[float]) -> float:
    """The probability of at least this number of wins, if each task is won with its rate."""
    chances = [1.0]
    for rate in rates:
        lost = [chance * (1 - rate) for chance in chances] + [0.0]
        won = [0.0] + [chance * rate for chance in chances]
        chances = [a + b for a, b in zip(lost, won, strict=True)]
    return sum(chances[wins:])
