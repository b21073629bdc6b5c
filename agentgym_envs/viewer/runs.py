"""The figures of runs, for the table of runs and the page of a run. A run is one source of the list.

The result of a training run is its last evaluation, or its last step if it has none; the result of every other run are
all of its episodes. Figures of a result are those of `agentgym report`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.viewer.figures import EpisodeFigures, Figures, facts_from
from agentgym_envs.viewer.index import EpisodeEntry, IndexSnapshot
from agentgym_envs.viewer.sources import RUN, Source
from agentgym_envs.viewer.training import is_replaced, read_settings

MAX_ERRORS = 20
"""The most different errors that a run shows."""
_OWN_KEYS = ("schema", "complete", "versions", "metrics", "agentgym_rl_table", "mistakes", "group_order")
_Figures = Mapping[int, EpisodeFigures]


class RunResult(NamedTuple):
    """The episodes that count as the result of a run. `step` is theirs in training, `evaluation` if it was one."""

    entries: list[EpisodeEntry]
    step: int | None = None
    evaluation: bool = False


class Runs:
    """The runs of snapshots. A run is computed again when its episodes change. All methods are thread-safe."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def table(self, snapshot: IndexSnapshot) -> dict[str, Any]:
        """All runs in the order of their sources, without groups, errors and config."""
        runs = [self._run(source, entries) for source, entries in entries_by_source(snapshot.entries).items()]
        details = ("groups", "errors", "config", "stops")
        return {"runs": [{name: value for name, value in run.items() if name not in details} for run in runs]}

    def run(self, snapshot: IndexSnapshot, name: str) -> dict[str, Any] | None:
        """One run with all details; None if there is none of that name."""
        for source, entries in entries_by_source(snapshot.entries).items():
            if source.name == name:
                return self._run(source, entries)
        return None

    def _run(self, source: Source, entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
        known_files = _run_files(source)
        state = (len(entries), entries[0].id, entries[-1].id, known_files)
        with self._lock:
            known = self._known.get(source.name)
        if known is not None and known[0] == state:
            return known[1]
        made = run_of(source, entries, self._figures)
        with self._lock:
            self._known[source.name] = state, made
        return made


def entries_by_source(entries: Iterable[EpisodeEntry]) -> dict[Source, list[EpisodeEntry]]:
    """The episodes of each source, in order."""
    found: dict[Source, list[EpisodeEntry]] = {}
    for entry in entries:
        found.setdefault(entry.file.source, []).append(entry)
    return found


def run_of(source: Source, entries: Sequence[EpisodeEntry], cache: Figures) -> dict[str, Any]:
    """The figures of a run as JSON.

    `overall`, `environments` and `groups` are rows with `env` and `group` (or None), `tasks`, `episodes`, `excluded`
    (where the environment failed, or there was no turn), and estimates `success`, `score`, `turns`, `tokens` and
    `invalid`: a mean and the bounds of its 95 % interval, None where unknown. `seconds` per episode has generation
    and environment. `wall` are the seconds in which an episode was being played, `cost` the recorded dollars.
    `errors` have `text`, `count` and the number of an episode. `config` and `versions` are those of the run's files.
    """
    found = read_run_file(source)
    result = result_of(entries, is_eval="settings" in found)
    figures = cache.of(entries)
    rows = _rows(result.entries, figures)
    summaries = [entry.summary for entry in result.entries]
    return {
        "name": source.name,
        "kind": source.kind,
        "count": len(entries),
        "step": result.step,
        "evaluation": result.evaluation,
        "algorithm": found.get("algorithm") if isinstance(found.get("algorithm"), str) else None,
        "complete": found.get("complete") if isinstance(found.get("complete"), bool) else None,
        "policies": sorted({" · ".join(filter(None, (one.policy, one.agent))) for one in summaries} - {""}),
        **rows,
        "stops": dict(Counter(one.stop for one in summaries).most_common()),
        "errors": _errors(result.entries, figures),
        "wall": _wall(figures.values()),
        "started": min((one.begin for one in figures.values() if one.begin is not None), default=None),
        "cost": _cost(figures.values(), found),
        "versions": found["versions"] if isinstance(found.get("versions"), dict) else {},
        "config": {name: value for name, value in found.items() if name not in _OWN_KEYS},
    }


def result_of(entries: Sequence[EpisodeEntry], *, is_eval: bool) -> RunResult:
    """The episodes of a run that count as its result; of an episode that was played again, the last record."""
    steps = [entry for entry in entries if entry.summary.step is not None and not is_replaced(entry.file.path)]
    if not steps:
        return RunResult(_last_records(entries, is_eval))
    evaluated = [entry for entry in steps if entry.summary.training is False]
    chosen = evaluated or steps
    last = max(entry.summary.step or 0 for entry in chosen)
    return RunResult([entry for entry in chosen if entry.summary.step == last], last, bool(evaluated))


def read_run_file(source: Source) -> dict[str, Any]:
    """The content of `eval.json` or `run.json`; empty if the source has none that is readable."""
    if source.kind != RUN:
        return {}
    return read_settings(source.folder / "eval.json") or read_settings(source.folder / "run.json")


def _run_files(source: Source) -> tuple[Any, ...]:
    """The state of the run's files, which changes with them."""
    return tuple(_state(source.folder / name) for name in ("eval.json", "run.json")) if source.kind == RUN else ()


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _last_records(entries: Sequence[EpisodeEntry], is_eval: bool) -> list[EpisodeEntry]:
    """The episodes as `agentgym report` counts them; see `read_episodes` there."""
    last = {_key(entry): entry.id for entry in entries}
    if is_eval:
        return [entry for entry in entries if last[_key(entry)] == entry.id]
    return [entry for entry in entries if entry.summary.stop != "env_error" or last[_key(entry)] == entry.id]


def _key(entry: EpisodeEntry) -> tuple[str, str, int]:
    return entry.summary.env, entry.summary.task, entry.summary.seed


def _rows(entries: Sequence[EpisodeEntry], figures: _Figures) -> dict[str, Any]:
    """The rows of all episodes, of each environment, and of each group."""
    by_env = _split(entries, lambda entry: entry.summary.env)
    groups = [
        _row(found, figures, env, group)
        for env, own in sorted(by_env.items())
        for group, found in sorted(_split(own, lambda entry: entry.summary.group).items())
    ]
    environments = [_row(own, figures, env, None) for env, own in sorted(by_env.items())]
    overall = environments[0] if len(environments) == 1 else _row(entries, figures, None, None)
    return {"overall": overall, "environments": environments, "groups": groups}


def _split(entries: Iterable[EpisodeEntry], key: Callable[[EpisodeEntry], str]) -> dict[str, list[EpisodeEntry]]:
    parts: dict[str, list[EpisodeEntry]] = {}
    for entry in entries:
        parts.setdefault(key(entry), []).append(entry)
    return parts


def _row(entries: Sequence[EpisodeEntry], figures: _Figures, env: str | None, group: str | None) -> dict[str, Any]:
    from agentgym_envs.evaluate.metrics import measure

    found = measure([facts_from(entry, figures[entry.id]) for entry in entries], env, group, at_most_k=1)
    own = [figures[entry.id] for entry in entries]
    return {
        "env": env,
        "group": group,
        "tasks": found.tasks,
        "episodes": found.episodes,
        "excluded": found.excluded,
        "success": _listed(found.success),
        "score": _listed(found.score),
        "turns": _listed(found.turns_estimate) or _mean_only(found.turns),
        "tokens": _listed(found.tokens_estimate) or _mean_only(found.tokens),
        "invalid": _listed(found.invalid_actions_estimate),
        "seconds": [_mean(one.generation for one in own), _mean(one.environment for one in own)],
    }


def _listed(estimate: Any) -> list[float | None] | None:
    return None if estimate is None else [estimate.mean, estimate.low, estimate.high]


def _mean_only(mean: float | None) -> list[float | None] | None:
    """A mean of too few tasks for an interval."""
    return None if mean is None else [mean, None, None]


def _errors(entries: Sequence[EpisodeEntry], figures: _Figures) -> list[dict[str, Any]]:
    """The different errors of the episodes, the most frequent ones first."""
    found: dict[str, list[int]] = {}
    for entry in entries:
        if (text := figures[entry.id].error) is not None:
            found.setdefault(text, []).append(entry.id)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))[:MAX_ERRORS]
    return [{"text": text, "count": len(ids), "id": ids[0]} for text, ids in ordered]


def _wall(figures: Iterable[EpisodeFigures]) -> float | None:
    """The seconds in which at least one episode was being played, so that pauses of a resumed run do not count."""
    spans = sorted((one.begin, one.end) for one in figures if one.begin is not None and one.end is not None)
    if not spans:
        return None
    total, until = 0.0, spans[0][0]
    for begin, end in spans:
        total += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return total


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _cost(figures: Iterable[EpisodeFigures], found: Mapping[str, Any]) -> float | None:
    """The dollars that the episodes record, or else those that `eval` computed from its tokens and `--price`."""
    recorded = _sum(one.cost for one in figures)
    usage = found.get("usage")
    dollars = usage.get("dollars") if isinstance(usage, Mapping) else None
    return dollars if recorded is None and type(dollars) in (int, float) else recorded


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
