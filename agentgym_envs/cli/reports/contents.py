"""The contents of a report, shared by all formats."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import agentgym_envs
from agentgym_envs.cli.evaluating.usage import usage_note
from agentgym_envs.cli.reports.attempts import attempts_notes
from agentgym_envs.cli.reports.by_difficulty import BANDS, by_difficulty
from agentgym_envs.evaluate import (
    AgentGymRLTable,
    Evaluation,
    LabelledEpisode,
    MistakeEvaluation,
    evaluate,
    evaluate_mistakes,
    make_agentgym_rl_table,
)
from agentgym_envs.labels import LabelTable
from agentgym_envs.trajectory import Trajectory

_PACKAGES = ("gymnasium", "numpy")
_MAX_CHARS = 300
"""Longer settings, such as a chat template, are truncated."""


@dataclass(frozen=True, slots=True)
class EvalReport:
    """Episodes and their metrics.

    `agentgym_rl_table` is the 27-task table, if it was requested or the episodes cover several of its scenarios.
    `result` is the content of `eval.json`, empty without one. `mistakes` is None if no episode has labels.
    """

    episodes: Sequence[Trajectory]
    evaluation: Evaluation
    agentgym_rl_table: AgentGymRLTable | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    mistakes: MistakeEvaluation | None = None

    def of_run(self, result: Mapping[str, Any]) -> Self:
        """A copy with the content of `eval.json`."""
        return replace(self, result=result)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The recorded settings of the run."""
        return dict(self.result.get("settings") or {})

    @property
    def policy(self) -> str:
        """The policies of the episodes, in the words of `--policy` and `--agent`."""
        return " and ".join(sorted({_player(episode.meta) for episode in self.episodes})) or "a policy"

    @property
    def title(self) -> str:
        """The policies and the environments."""
        return f"{self.policy} on {', '.join(self.envs)}"

    @property
    def envs(self) -> tuple[str, ...]:
        """Ids of the environments."""
        return tuple(str(row.env_id) for row in self.evaluation.environments)

    @property
    def failures(self) -> list[Trajectory]:
        """The episodes with an infrastructure error."""
        return [episode for episode in self.episodes if episode.error]

    def setting_rows(self) -> list[tuple[str, str]]:
        """Names and values of the settings and versions as text. Unset settings are left out."""
        used = {f"version of {name}": value for name, value in (self.result.get("versions") or {}).items()}
        return [(name, _words(value)) for name, value in {**self.settings, **used}.items() if value not in (None, {})]

    def notes(self) -> list[str]:
        """Notes on the numbers: excluded, repeated and missing episodes, and skipped tasks."""
        found = []
        if excluded := self.evaluation.overall.excluded:
            are, them = ("is", "it") if excluded == 1 else ("are", "them")
            found.append(
                f"{_count(excluded, 'episode')} without information on the policy (the environment failed, or no turn "
                f"was taken) {are} excluded from every rate; --resume plays {them} again."
            )
        found += [*self._k_note(), *attempts_notes(self.episodes)]
        if retried := self.result.get("retried"):
            found.append(f"{_count(retried, 'episode')} repeated, because the environment had failed.")
        if skipped := self.result.get("skipped_tasks"):
            were, they = ("was", "it belongs") if len(skipped) == 1 else ("were", "they belong")
            names = _count(len(skipped), "id")
            found.append(f"{names} in the task file {were} skipped, because {they} to none of the environments.")
        if usage := self.result.get("usage"):
            found.append(usage_note(usage))
        if self.result.get("complete") is False:
            found.append("The run is not complete; these are the episodes so far.")
        return found

    def _k_note(self) -> Iterator[str]:
        row = self.evaluation.overall
        if 0 < row.common_k < row.max_k:
            shown = f"pass@k and pass^k are shown for k = {row.common_k}" if row.common_k > 1 else "no pass@k is shown"
            yield (
                f"Tasks have {row.common_k} to {row.max_k} usable episodes; {shown}, so that every task counts. "
                "`agentgym report --json` has all k, each with the number of tasks that are left out."
            )


def _player(meta: Mapping[str, Any]) -> str:
    policy, agent = str(meta.get("policy", "a policy")), meta.get("agent")
    return f"{policy}, {agent['name']}" if isinstance(agent, dict) and "name" in agent else policy


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _words(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + " …"


def make_report(
    episodes: Sequence[Trajectory],
    group_order: Sequence[str] = (),
    result: Mapping[str, Any] | None = None,
    *,
    agentgym_rl: bool = False,
    by: str = "group",
    labels: LabelTable | None = None,
) -> EvalReport:
    """Evaluate episodes and make their report. With `agentgym_rl`, it has the 27-task table in any case.

    `by` is "group" or "difficulty": the groups of its rows. `labels` are those of the episodes, if there are any.
    """
    grouped, order = (by_difficulty(episodes), BANDS) if by == "difficulty" else (episodes, group_order)
    evaluation = evaluate(grouped, group_order=order)
    table = make_agentgym_rl_table(episodes) if agentgym_rl or len(evaluation.environments) > 1 else None
    shown = table if table is not None and (agentgym_rl or table.played > 1) else None
    mistakes = None
    if labels:
        labelled = [LabelledEpisode(row, labels.find(episode)) for row, episode in zip(grouped, episodes, strict=True)]
        mistakes = evaluate_mistakes(labelled, group_order=order)
    return EvalReport(episodes, evaluation, shown, result or {}, mistakes)


def versions() -> dict[str, str]:
    """The versions of this package, Python and the packages that affect a result."""
    found = {"agentgym-envs": agentgym_envs.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # on the path without being installed
            continue
    return found
