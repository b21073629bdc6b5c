"""What training runs logged, and what their episodes say where the log says nothing: the training page's figures."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from agentgym_envs.viewer.index import EpisodeEntry, EpisodeSummary
from agentgym_envs.viewer.sources import AGENTGYM_RL

MAIN = ("success", "score", "reward", "turns", "max_turns")
"""Series that every row may have; the others are named as they were logged."""
_OF_ENVS = (*MAIN, "invalid_actions", "truncated_answers")
# `rollout/stop/success` is the share of episodes that ended so, not the success of an environment.
_PLAYED = re.compile(rf"rollout/(?!stop/)(?:(?P<env>.+)/)?(?P<name>{'|'.join(_OF_ENVS)})")
_SUMMARY = re.compile(r"train_(runtime|samples_per_second|steps_per_second|loss)|total_flos|step|round")
_LARGEST = 1e300  # beyond it, and for what is no number, there is no place in a plot
_SET_ASIDE = re.compile(r".*\.replaced-[0-9]+")


class _Place(NamedTuple):
    step: int
    eval: bool
    env: str | None


_Rows = dict[_Place, dict[str, float]]


def training_of(folders: Sequence[Path], entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    """The runs, each with rows a step and the names of its series.

    A row has `step`, `env` (None: all of them), `eval` (whether it is of an evaluation), `episodes` (the step under
    which its episodes are listed, or None) and the series' values. An episode that began when N steps were done is part
    of the step that is logged as N + 1; AgentGym-RL's folders are named for the step itself. `source` is the name under
    which the run's episodes are listed, if it has any.
    """
    played = defaultdict[Path, list[EpisodeEntry]](list)
    for entry in entries:
        if entry.facts.step is not None and not _SET_ASIDE.fullmatch(entry.file.path.stem):
            played[entry.file.source.folder].append(entry)
    names = _names(folders)
    return {"runs": [_run(names[folder], folder, played[folder]) for folder in folders]}


def _run(name: str, folder: Path, entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    shift = 0 if any(entry.file.source.kind == AGENTGYM_RL for entry in entries) else 1
    logged = _logged(folder)
    counted = _counted([entry.facts for entry in entries], shift)
    rows = {place: counted.get(place, {}) | logged.get(place, {}) for place in sorted(logged | counted, key=_order)}
    listed = {(place.step, place.eval) for place in counted}
    series = dict.fromkeys([*MAIN, *sorted({key for row in rows.values() for key in row})])
    return {
        "name": name,
        "source": entries[0].file.source.name if entries else None,
        "rows": [_row(place, row, shift, listed) for place, row in rows.items()],
        "series": [key for key in series if any(key in row for row in rows.values())],
    }


def _row(place: _Place, values: Mapping[str, float], shift: int, listed: set[tuple[int, bool]]) -> dict[str, Any]:
    episodes = place.step - (0 if place.eval else shift)
    where = {"step": place.step, "env": place.env, "eval": place.eval}
    return {**where, "episodes": episodes if (place.step, place.eval) in listed else None, **values}


def _order(place: _Place) -> tuple[int, bool, str]:
    return place.step, place.eval, place.env or ""


def _logged(folder: Path) -> _Rows:
    """What a run's metrics say; lines that do not read, as the last one of a run that writes, are passed over."""
    rows = defaultdict[_Place, dict[str, float]](dict)
    for line in (line for path in _metric_files(folder) for line in _lines(path)):
        step = line.get("step", line.get("round"))
        if not _is_number(step):
            continue
        for key, value in line.items():
            if _is_number(value) and not _SUMMARY.fullmatch(key):
                is_eval, key = key.startswith(("eval_", "eval/")), re.sub("^eval[_/]", "", key)
                match = _PLAYED.fullmatch(key)
                env, name = (match["env"], match["name"]) if match else (None, key)
                rows[_Place(int(step), is_eval, env)][name] = value
    return rows


def _metric_files(folder: Path) -> list[Path]:
    """The file of metrics, and those of a run that was resumed, in order: verl begins one anew each time."""
    later = [path for path in folder.glob("metrics.jsonl.*") if path.suffix[1:].isdecimal()]
    return [folder / "metrics.jsonl", *sorted(later, key=lambda path: int(path.suffix[1:]))]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []  # a pipe would have us wait
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


def _counted(episodes: Sequence[EpisodeSummary], shift: int) -> _Rows:
    """The figures of each step's episodes, of all and of each environment if there are several."""
    names = _short({facts.env for facts in episodes})
    groups = defaultdict[_Place, list[EpisodeSummary]](list)
    for facts in episodes:
        is_eval = facts.training is False
        step = (facts.step or 0) + (0 if is_eval else shift)
        groups[_Place(step, is_eval, None)].append(facts)
        if len(names) > 1:
            groups[_Place(step, is_eval, names[facts.env])].append(facts)
    return {place: _figures(group) for place, group in groups.items()}


def _figures(episodes: Sequence[EpisodeSummary]) -> dict[str, float]:
    """Means over the episodes that say something of the policy, by the rule of `Trajectory.usable`."""
    limits = [facts.max_turns for facts in episodes if facts.max_turns is not None]
    found = {"max_turns": _mean(limits)} if limits else {}
    usable = [facts for facts in episodes if facts.stop != "env_error" and facts.turns]
    if not usable:
        return found
    return {
        "success": _mean([facts.success for facts in usable]),
        "score": _mean([facts.score for facts in usable]),
        "turns": _mean([facts.turns for facts in usable]),
        "invalid_actions": sum(facts.invalid for facts in usable) / sum(facts.turns for facts in usable),
        **found,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _short(ids: set[str]) -> dict[str, str]:
    """`AgentGym/TextCraft-v0` as `TextCraft`, as the log of a run names it, wherever that is one of a kind."""
    short = {env_id: re.sub(r"-v[0-9]+$", "", env_id.rpartition("/")[2]) or env_id for env_id in ids}
    names = list(short.values())
    return {env_id: name if names.count(name) == 1 else env_id for env_id, name in short.items()}


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The folders by what is different in them: the last parts of their paths."""
    whole = {folder: folder.absolute() for folder in folders}
    if len(whole) < 2:
        return {folder: path.name for folder, path in whole.items()}
    base = os.path.commonpath(list(whole.values()))
    return {f: path.name if str(path) == base else path.relative_to(base).as_posix() for f, path in whole.items()}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
