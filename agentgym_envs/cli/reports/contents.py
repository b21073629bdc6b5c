"""What a report tells, whatever form it takes."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import agentgym_envs
from agentgym_envs.cli.reports.retries import retries_notes
from agentgym_envs.evaluate import Evaluation, SuiteTable, evaluate, suite_table
from agentgym_envs.trajectory import Trajectory

_PACKAGES = ("gymnasium", "numpy")
_LONG = 300
"""Of a longer setting (a chat template) the beginning is shown."""


@dataclass(frozen=True, slots=True)
class Report:
    """Episodes and what they show.

    `suite` is the 27-task table, if the episodes are of several of its scenarios or it was asked for. `result` is what
    `eval.json` says of the run (empty if there was none).
    """

    episodes: Sequence[Trajectory]
    evaluation: Evaluation
    suite: SuiteTable | None = None
    result: Mapping[str, Any] = field(default_factory=dict)

    def of_run(self, result: Mapping[str, Any]) -> Self:
        """The same with what is known of the run."""
        return replace(self, result=result)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the run, as they are recorded."""
        return dict(self.result.get("settings") or {})

    @property
    def policy(self) -> str:
        """What played, in the words of `--policy` and `--agent`."""
        return " and ".join(sorted({_player(episode.meta) for episode in self.episodes})) or "a policy"

    @property
    def envs(self) -> tuple[str, ...]:
        """The environments."""
        return tuple(str(row.env_id) for row in self.evaluation.environments)

    @property
    def failures(self) -> list[Trajectory]:
        """The episodes that the machine failed."""
        return [episode for episode in self.episodes if episode.error]

    def setting_rows(self) -> list[tuple[str, str]]:
        """Settings and versions with their values, in words; what was not set is left out."""
        used = {f"version of {name}": value for name, value in (self.result.get("versions") or {}).items()}
        return [(name, _words(value)) for name, value in {**self.settings, **used}.items() if value not in (None, {})]

    def notes(self) -> list[str]:
        """What a reader must know beside the numbers: what was left out, and what was played again."""
        found = []
        if left_out := self.evaluation.overall.excluded:
            say, are, them = ("says", "is", "it") if left_out == 1 else ("say", "are", "them")
            found.append(
                f"{_count(left_out, 'episode')} {say} nothing of the policy (the environment failed, or no turn was "
                f"taken) and {are} left out of every rate; --resume plays {them} again."
            )
        found += [*self._samples_note(), *retries_notes(self.episodes)]
        if again := self.result.get("replayed"):
            found.append(f"{_count(again, 'time')} an episode was played again, as the environment had failed in it.")
        if skipped := self.result.get("skipped_tasks"):
            were, them = ("was", "it") if len(skipped) == 1 else ("were", "them")
            names = _count(len(skipped), "id")
            found.append(f"{names} in the file of tasks {were} skipped, as no environment knows {them}.")
        if self.result.get("complete") is False:
            found.append("The run is not complete; these are the episodes so far.")
        return found

    def _samples_note(self) -> Iterator[str]:
        row = self.evaluation.overall
        if 0 < row.common_k < row.samples:
            shown = f"pass@k and pass^k are shown for k = {row.common_k}" if row.common_k > 1 else "no pass@k is shown"
            yield (
                f"Tasks have {row.common_k} to {row.samples} usable episodes; {shown}, as every task enters it. "
                "`agentgym report --json` has all k, each with the number of tasks that are left out."
            )


def _player(meta: Mapping[str, Any]) -> str:
    policy, agent = str(meta.get("policy", "a policy")), meta.get("agent")
    return f"{policy}, {agent['name']}" if isinstance(agent, dict) and "name" in agent else policy


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _words(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONG else text[:_LONG] + " …"


def make_report(
    episodes: Sequence[Trajectory],
    group_order: Sequence[str] = (),
    result: Mapping[str, Any] | None = None,
    *,
    suite: bool = False,
) -> Report:
    """The report of some episodes, which `evaluate` measures; with the 27-task table if `suite` asks for it."""
    evaluation = evaluate(episodes, group_order=group_order)
    table = suite_table(episodes) if suite or len(evaluation.environments) > 1 else None
    shown = table if table is not None and (suite or table.played > 1) else None
    return Report(episodes, evaluation, shown, result or {})


def versions() -> dict[str, str]:
    """The versions of what decides a result, of this suite and below it."""
    found = {"agentgym-envs": agentgym_envs.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # put on the path without being installed
            continue
    return found
