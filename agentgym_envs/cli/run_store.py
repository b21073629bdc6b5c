"""The directory of an evaluation: the episodes so far, the settings and the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from agentgym_envs.cli.common import cannot_write
from agentgym_envs.errors import UsageError
from agentgym_envs.file_locks import lock
from agentgym_envs.image_files import remove_images
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, read_trajectories, strict_json, with_image_names
from agentgym_envs.whole_files import write_whole

if TYPE_CHECKING:
    from agentgym_envs.rollout import ChatCodec, TokenTrajectory
    from agentgym_envs.rollout.token_file import TokenWriter

SCHEMA_VERSION = 2
"""Version of `eval.json`. Version 1 has the same content under the names in `_RENAMED`; see `read_result`."""
_RENAMED = {"suite": "agentgym_rl_table", "replayed": "retried"}
_RENAMED_SETTINGS = {"samples": "episodes_per_task"}
_RENAMED_AGENT = {"tries": "attempts"}
_RENAMED_METRICS = {"samples": "max_k"}
TRAJECTORIES, RESULT = "trajectories.jsonl", "eval.json"
REPORTS = ("report.html", "report.md", "metrics.csv")
"""The files of a report, which are derived from the trajectories in the same directory."""
EpisodeKey = tuple[str, str, int]
"""Environment, task and seed of an episode."""


class EpisodeCounts(NamedTuple):
    """Counts of episodes: usable ones, solved ones, and those in which the environment failed."""

    usable: int
    solved: int
    failed: int


class EpisodeRecords:
    """Episodes by environment, task and seed. The last record of an episode counts."""

    def __init__(self, episodes: Iterable[Trajectory] = ()) -> None:
        self.by_key: dict[EpisodeKey, Trajectory] = {}
        self.retried = 0
        self.counts = EpisodeCounts(0, 0, 0)
        for episode in episodes:
            self.add(episode)

    def add(self, episode: Trajectory) -> None:
        """Add an episode. `retried` counts replaced records in which the environment had failed."""
        key = _key(episode)
        before = self.by_key.get(key)
        self.retried += before is not None and before.stop_reason == "env_error"
        self.by_key[key] = episode
        added = zip(self.counts, _change(before, episode), strict=True)
        self.counts = EpisodeCounts(*(old + new for old, new in added))


def read_episodes(paths: Iterable[Path], *, of_eval: bool) -> list[Trajectory]:
    """Read the episodes of trajectory files.

    A file of eval (`of_eval`) has one episode per task and seed; its last record counts. Other files, such as those of
    a training run, may have several: only failed records of an episode that was played again later are dropped.
    """
    found = [episode for path in paths for episode in read_trajectories(path)]
    if of_eval:
        return list(EpisodeRecords(found).by_key.values())
    last = {_key(episode): number for number, episode in enumerate(found)}
    return [
        episode
        for number, episode in enumerate(found)
        if episode.stop_reason != "env_error" or last[_key(episode)] == number
    ]


def read_result(path: Path) -> Any:
    """Read an `eval.json` and convert version 1 to the current names. Raises OSError, ValueError or RecursionError.

    The content is not validated.
    """
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or found.get("schema") != 1:
        return found
    result = _renamed(found, _RENAMED) | {"schema": SCHEMA_VERSION}
    for name in ("metrics", "agentgym_rl_table"):
        result[name] = _renamed_metrics(result.get(name))
    if isinstance(settings := result.get("settings"), dict):
        result["settings"] = settings = _renamed(settings, _RENAMED_SETTINGS)
        if isinstance(agent := settings.get("agent"), dict):
            settings["agent"] = _renamed(agent, _RENAMED_AGENT)
    return result


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}


def _renamed_metrics(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _renamed_metrics(item) for name, item in _renamed(value, _RENAMED_METRICS).items()}
    return [_renamed_metrics(item) for item in value] if isinstance(value, list) else value


class RunStore:
    """The episodes of a run, in memory and, with a directory, on disk as they end.

    Episodes are appended to `DIR/trajectories.jsonl`; `DIR/eval.json` with settings and metrics is replaced as a whole.
    With `tokens`, `DIR/trajectories.tokens.jsonl` contains the tokens of each episode.
    """

    def __init__(
        self,
        directory: Path | None,
        settings: Mapping[str, Any],
        details: Mapping[str, Any],
        *,
        resume: bool,
        overwrite: bool,
        tokens: bool = False,
    ) -> None:
        """Open the directory. `details` are written to `eval.json` and, unlike the settings, may differ on resume.

        Raises:
            UsageError: the directory contains a run with other settings, or a run and neither `resume` nor `overwrite`
                is set.
        """
        self.directory, self._settings, self._details = directory, dict(settings), dict(details)
        self._records = EpisodeRecords()
        self.result: dict[str, Any] = {}
        self._writer: TrajectoryWriter | None = None
        self._tokens: TokenWriter | None = None
        self._lock: BinaryIO | None = None
        if directory is not None:
            try:
                self._open(directory, resume, overwrite, tokens)
            except BaseException:
                self.close()
                raise

    @property
    def episodes(self) -> Mapping[EpisodeKey, Trajectory]:
        """The recorded episodes; of each the last record."""
        return self._records.by_key

    @property
    def record(self) -> Path:
        """The file of the episodes; there is one only with a directory."""
        assert self.directory is not None
        return self.directory / TRAJECTORIES

    @property
    def counts(self) -> EpisodeCounts:
        """Counts of the recorded episodes."""
        return self._records.counts

    def is_done(self, env_id: str, task_id: str, seed: int) -> bool:
        """True if a usable record of this episode exists."""
        found = self.episodes.get((env_id, task_id, seed))
        return found is not None and found.usable

    def has_failed(self, env_id: str, task_id: str, seed: int) -> bool:
        """True if the environment failed in the record of this episode."""
        found = self.episodes.get((env_id, task_id, seed))
        return found is not None and found.stop_reason == "env_error"

    def add(
        self, trajectory: Trajectory, segments: Sequence[TokenTrajectory] = (), codec: ChatCodec | None = None
    ) -> None:
        """Record an episode, and its tokens if the store was opened with `tokens`.

        Raises OSError if the disk is full; the files stay readable.
        """
        if self._writer is not None:
            mark = self._writer.write(trajectory)
            trajectory = with_image_names(trajectory)
            if self._tokens is not None and segments and codec is not None:
                self._tokens.write(mark, segments, codec)
        self._records.add(trajectory)

    def write_metrics(
        self,
        metrics: Mapping[str, Any] | None,
        table: Mapping[str, Any] | None = None,
        mistakes: Mapping[str, Any] | None = None,
        usage: Mapping[str, Any] | None = None,
        *,
        complete: bool,
    ) -> None:
        """Write `eval.json` atomically; its content is in `result`.

        `table` is AgentGym-RL's table of 27 tasks. `mistakes` are the metrics of labels, left out without any.
        `usage` is that of a model behind an API.
        """
        self.result = {
            "schema": SCHEMA_VERSION,
            "complete": complete,
            "settings": self._settings,
            **self._details,
            "retried": self._records.retried,
            "metrics": metrics,
            "agentgym_rl_table": table,
            **({} if mistakes is None else {"mistakes": mistakes}),
            **({} if usage is None else {"usage": usage}),
        }
        if self.directory is not None:
            write_whole(self.directory / RESULT, strict_json(self.result, indent=2) + "\n")

    def close(self) -> None:
        """Close the files."""
        for writer in (self._writer, self._tokens, self._lock):
            if writer is not None:
                writer.close()

    def saved(self, total: int) -> str:
        """A sentence with the number of saved episodes and how to resume."""
        usable = self.counts.usable
        if self.directory is None:
            return f"{usable} of {total} episodes were played and not saved, because there is no --out DIR"
        return f"{usable} of {total} episodes are saved in {self.directory}; continue with --resume"

    def _open(self, directory: Path, resume: bool, overwrite: bool, tokens: bool) -> None:
        from agentgym_envs.labels import labels_path
        from agentgym_envs.rollout.token_file import TokenWriter, tokens_path

        if directory.exists() and not directory.is_dir():
            raise UsageError(f"--out takes a directory, but {directory} is a file")
        record, result = directory / TRAJECTORIES, directory / RESULT
        found = not overwrite and _holds_run(record, result)
        if found and not resume:
            raise UsageError(
                f"{directory} already contains an evaluation; --resume continues it, --overwrite replaces it"
            )
        self._lock = _locked(record)
        if overwrite:
            self._lock.truncate(0)  # not removed: another process could then lock a new file of the same name
            for path in (result, tokens_path(record), labels_path(record), *(directory / name for name in REPORTS)):
                path.unlink(missing_ok=True)
            remove_images(directory)
        if found:
            _check_same(directory, result, self._settings)
            self._records = EpisodeRecords(read_trajectories(record))
        self._writer = TrajectoryWriter(record)
        self._tokens = TokenWriter(record) if tokens else None
        if not found:
            self.write_metrics(None, complete=False)


def _holds_run(record: Path, result: Path) -> bool:
    """True if there is a run to resume or to lose. A run that ended before its first episode does not count."""
    if record.exists() and record.stat().st_size:
        return True
    try:
        found = read_result(result)
        return bool(found["complete"] or found["metrics"])
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return True  # unknown content


def _locked(path: Path) -> BinaryIO:
    """Open the file, creating it if necessary, and lock it until it is closed. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "ab")  # noqa: SIM115 (closed by close)
    except OSError as error:
        raise cannot_write("--out", path.parent, error) from None
    if not lock(file, wait=False):
        file.close()
        raise UsageError(f"another eval is writing to {path.parent}; wait for it, stop it, or choose another --out")
    return file


def _key(episode: Trajectory) -> EpisodeKey:
    return episode.env_id, episode.task.id, episode.seed


def _change(before: Trajectory | None, now: Trajectory) -> EpisodeCounts:
    old, new = (EpisodeCounts(0, 0, 0) if episode is None else _count(episode) for episode in (before, now))
    return EpisodeCounts(new.usable - old.usable, new.solved - old.solved, new.failed - old.failed)


def _count(episode: Trajectory) -> EpisodeCounts:
    usable, failed = episode.usable, episode.stop_reason == "env_error"
    return EpisodeCounts(int(usable), int(usable and episode.success), int(failed))


def _check_same(directory: Path, result: Path, settings: Mapping[str, Any]) -> None:
    try:
        found = read_result(result)["settings"]
        items = set(found) | set(settings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{result} cannot be read ({type(error).__name__}), so the settings of the run in {directory} are unknown; "
            "choose another --out, or --overwrite it"
        ) from None
    wanted = json.loads(json.dumps(dict(settings)))
    differing = [name for name in sorted(items) if found.get(name) != wanted.get(name)]
    if differing:
        shown = ", ".join(f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here" for name in differing)
        raise UsageError(
            f"{directory} contains a run with other settings: {shown}; give the same, or choose another --out"
        )
