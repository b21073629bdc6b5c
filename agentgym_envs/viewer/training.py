"""The series of the training page: logged metrics of training runs, completed by figures from their episodes."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from agentgym_envs.viewer.index import EpisodeEntry, EpisodeSummary

MAIN = ("success", "score", "reward", "turns", "max_turns")
"""Series that every row may have; the others keep their logged names."""
_OF_ENVS = (*MAIN, "invalid_actions", "truncated_answers")
# `rollout/stop/success` is the fraction of episodes with that stop reason, not the success of an environment.
_PLAYED = re.compile(rf"rollout/(?!stop/)(?:(?P<env>.+)/)?(?P<name>{'|'.join(_OF_ENVS)})")
_EVALUATED = re.compile(rf"(?:(?P<env>[^/]+)/)?(?P<name>{'|'.join((*MAIN, 'success_low', 'success_high'))})")
_SUMMARY = re.compile(r"train_(runtime|samples_per_second|steps_per_second|loss)|total_flos|step|round")
_MAX_VALUE = 1e300  # larger values, NaN and infinity cannot be plotted
_REPLACED = re.compile(r".*\.replaced-[0-9]+")
_MAX_SETTINGS_BYTES = 4_000_000


class _RowKey(NamedTuple):
    step: int
    eval: bool
    env: str | None


_Rows = dict[_RowKey, dict[str, float]]


def training_of(folders: Sequence[Path], entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    """Return the runs, each with rows per step and the names of its series.

    A row has `step`, `env` (None for all environments), `eval` (True for an evaluation), `episodes` (True if episodes
    of the step are in the list) and the values of the series. `algorithm` is that of the run, None if unknown. `source`
    is the source of the run's episodes, if it has any.
    """
    played = defaultdict[Path, list[EpisodeEntry]](list)
    for entry in entries:
        if entry.summary.step is not None and not is_replaced(entry.file.path):
            played[entry.file.source.folder].append(entry)
    names = _names(folders)
    return {"runs": [_run(names[folder], folder, played[folder]) for folder in folders]}


def read_settings(path: Path) -> dict[str, Any]:
    """The JSON object in a small file of a run; empty if there is none that is readable."""
    try:
        small = path.is_file() and path.stat().st_size <= _MAX_SETTINGS_BYTES
        found = json.loads(path.read_bytes()) if small else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_replaced(path: Path) -> bool:
    """True for a file whose episodes a resumed run has played again; see `StepFiles`."""
    return _REPLACED.fullmatch(path.stem) is not None


def _run(name: str, folder: Path, entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    logged = _logged(folder)
    counted = _counted([entry.summary for entry in entries])
    rows = {key: counted.get(key, {}) | logged.get(key, {}) for key in sorted(logged | counted, key=_order)}
    listed = {(key.step, key.eval) for key in counted}
    series = dict.fromkeys([*MAIN, *sorted({key for row in rows.values() for key in row})])
    return {
        "name": name,
        "source": entries[0].file.source.name if entries else None,
        "algorithm": _algorithm(folder),
        "rows": [_row(key, row, listed) for key, row in rows.items()],
        "series": [key for key in series if any(key in row for row in rows.values())],
    }


def _row(key: _RowKey, values: Mapping[str, float], listed: set[tuple[int, bool]]) -> dict[str, Any]:
    where = {"step": key.step, "env": key.env, "eval": key.eval}
    return {**where, "episodes": (key.step, key.eval) in listed, **values}


def _algorithm(folder: Path) -> str | None:
    """The algorithm of a run, from its `run.json`."""
    found = read_settings(folder / "run.json").get("algorithm")
    return found if isinstance(found, str) else None


def _order(key: _RowKey) -> tuple[int, bool, str]:
    return key.step, key.eval, key.env or ""


def _logged(folder: Path) -> _Rows:
    """Read the metrics of a run. Invalid lines are skipped, such as the last line of a running run."""
    rows = defaultdict[_RowKey, dict[str, float]](dict)
    for line in (line for path in _metric_files(folder) for line in _lines(path)):
        step = line.get("step", line.get("round"))
        if not _is_number(step):
            continue
        for key, value in line.items():
            if _is_number(value) and not _SUMMARY.fullmatch(key):
                is_eval, key = key.startswith(("eval_", "eval/")), re.sub("^eval[_/]", "", key)
                match = _PLAYED.fullmatch(key) or (_EVALUATED.fullmatch(key) if is_eval else None)
                env, name = (match["env"], match["name"]) if match else (None, key)
                rows[_RowKey(int(step), is_eval, env)][name] = value
    return rows


def _metric_files(folder: Path) -> list[Path]:
    """The files of metrics in order; verl starts a new one each time a run is resumed."""
    later = [path for path in folder.glob("metrics.jsonl.*") if path.suffix[1:].isdecimal()]
    return [folder / "metrics.jsonl", *sorted(later, key=lambda path: int(path.suffix[1:]))]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []  # reading a pipe would block
    except OSError:
        return
    for text in lines:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict):
            nested = line.get("data")  # verl's own log
            yield {**nested, "step": line.get("step")} if isinstance(nested, dict) else line


def _counted(episodes: Sequence[EpisodeSummary]) -> _Rows:
    """Compute the figures of the episodes of each step: of all, and per environment if there are several."""
    names = _short({summary.env for summary in episodes})
    groups = defaultdict[_RowKey, list[EpisodeSummary]](list)
    for summary in episodes:
        is_eval = summary.training is False
        step = summary.step or 0
        groups[_RowKey(step, is_eval, None)].append(summary)
        if len(names) > 1:
            groups[_RowKey(step, is_eval, names[summary.env])].append(summary)
    return {key: _figures(group) for key, group in groups.items()}


def _figures(episodes: Sequence[EpisodeSummary]) -> dict[str, float]:
    """Means over the usable episodes, as defined by `Trajectory.usable`."""
    limits = [summary.max_turns for summary in episodes if summary.max_turns is not None]
    found = {"max_turns": _mean(limits)} if limits else {}
    usable = [summary for summary in episodes if summary.stop != "env_error" and summary.turns]
    if not usable:
        return found
    return {
        "success": _mean([summary.success for summary in usable]),
        "score": _mean([summary.score for summary in usable]),
        "turns": _mean([summary.turns for summary in usable]),
        "invalid_actions": sum(summary.invalid for summary in usable) / sum(summary.turns for summary in usable),
        **found,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _short(ids: set[str]) -> dict[str, str]:
    """Short names as in the log of a run, such as `TextCraft` for `AgentGym/TextCraft-v0`, if they are unique."""
    short = {env_id: re.sub(r"-v[0-9]+$", "", env_id.rpartition("/")[2]) or env_id for env_id in ids}
    names = list(short.values())
    return {env_id: name if names.count(name) == 1 else env_id for env_id, name in short.items()}


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Short unique names of the folders: their paths without the common part."""
    whole = {folder: folder.absolute() for folder in folders}
    if len(whole) < 2:
        return {folder: path.name for folder, path in whole.items()}
    base = os.path.commonpath(list(whole.values()))
    return {f: path.name if str(path) == base else path.relative_to(base).as_posix() for f, path in whole.items()}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_VALUE
