"""The directory of an evaluation: what was played so far, under which settings, and what came out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from agentgym_envs.cli.common import cannot_write
from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, read_trajectories, strict_json

if TYPE_CHECKING:
    from agentgym_envs.rollout import ChatCodec, TokenTrajectory
    from agentgym_envs.rollout.token_file import TokenWriter

_SCHEMA = 1
TRAJECTORIES, RESULT = "trajectories.jsonl", "eval.json"
REPORTS = ("report.html", "report.md", "metrics.csv")
"""The files of a report, which tell of the trajectories beside them."""
EpisodeKey = tuple[str, str, int]


class Tally(NamedTuple):
    """How many episodes say something of the policy, how many of them are solved, and how many were spoiled."""

    done: int
    solved: int
    spoiled: int


class Records:
    """Episodes by what they are of: of one that was played twice the later record counts."""

    def __init__(self, episodes: Iterable[Trajectory] = ()) -> None:
        self.by_key: dict[EpisodeKey, Trajectory] = {}
        self.replayed = 0
        self.tally = Tally(0, 0, 0)
        for episode in episodes:
            self.add(episode)

    def add(self, episode: Trajectory) -> None:
        """Take an episode in; `replayed` counts those that were spoiled at first."""
        key = _key(episode)
        before = self.by_key.get(key)
        self.replayed += before is not None and before.stop_reason == "env_error"
        self.by_key[key] = episode
        self.tally = Tally(*(old + new for old, new in zip(self.tally, _change(before, episode), strict=True)))


def read_episodes(paths: Iterable[Path], *, of_eval: bool) -> list[Trajectory]:
    """The episodes of files of trajectories.

    What eval wrote (`of_eval`) has one episode for each task and seed. Other files may have many, such as the groups
    of a training run: of those, only what the environment spoiled is left out, where it was played again.
    """
    found = [episode for path in paths for episode in read_trajectories(path)]
    if of_eval:
        return list(Records(found).by_key.values())
    last = {_key(episode): number for number, episode in enumerate(found)}
    return [
        episode
        for number, episode in enumerate(found)
        if episode.stop_reason != "env_error" or last[_key(episode)] == number
    ]


class RunStore:
    """Keeps the episodes of a run, in memory and, with a directory, on disk as they end.

    `DIR/trajectories.jsonl` is appended to; `DIR/eval.json` holds settings and metrics and is replaced as a whole.
    With `tokens`, `DIR/trajectories.tokens.jsonl` holds the tokens of each episode.
    """

    def __init__(
        self,
        directory: Path | None,
        settings: Mapping[str, Any],
        notes: Mapping[str, Any],
        *,
        resume: bool,
        overwrite: bool,
        tokens: bool = False,
    ) -> None:
        """`notes` go into `eval.json` beside the settings, and a run is resumed though they differ.

        Raises UsageError if the directory holds a run that is not this one, or this one unasked.
        """
        self.directory, self._settings, self._notes = directory, dict(settings), dict(notes)
        self._records = Records()
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
        """What was played, the last record of each."""
        return self._records.by_key

    @property
    def tally(self) -> Tally:
        """Counts of what was played."""
        return self._records.tally

    def is_done(self, env_id: str, task_id: str, seed: int) -> bool:
        """Whether that episode is recorded and the environment did not fail in it."""
        found = self.episodes.get((env_id, task_id, seed))
        return found is not None and found.usable

    def was_spoiled(self, env_id: str, task_id: str, seed: int) -> bool:
        """Whether that episode is recorded as one in which the environment failed."""
        found = self.episodes.get((env_id, task_id, seed))
        return found is not None and found.stop_reason == "env_error"

    def add(
        self, trajectory: Trajectory, segments: Sequence[TokenTrajectory] = (), codec: ChatCodec | None = None
    ) -> None:
        """Record an episode, and its tokens if they are wanted.

        Raises OSError if the disk is full; the files stay readable.
        """
        if self._writer is not None:
            mark = self._writer.write(trajectory)
            if self._tokens is not None and segments and codec is not None:
                self._tokens.write(mark, segments, codec)
        self._records.add(trajectory)

    def write_metrics(
        self, metrics: Mapping[str, Any] | None, suite: Mapping[str, Any] | None = None, *, complete: bool
    ) -> None:
        """Write `eval.json` as a whole or not at all; `result` is what it says."""
        found = {"replayed": self._records.replayed, "metrics": metrics, "suite": suite}
        self.result = {"schema": _SCHEMA, "complete": complete, "settings": self._settings, **self._notes, **found}
        if self.directory is not None:
            replace_text(self.directory / RESULT, strict_json(self.result, indent=2) + "\n")

    def close(self) -> None:
        """Close the files of trajectories and tokens."""
        for writer in (self._writer, self._tokens, self._lock):
            if writer is not None:
                writer.close()

    def kept(self, wanted: int) -> str:
        """What is safe if the run stops now, and how to go on."""
        done = self.tally.done
        if self.directory is None:
            return f"{done} of {wanted} episodes were played and none kept, as there is no --out DIR"
        return f"{done} of {wanted} episodes are kept in {self.directory}; go on with --resume"

    def _open(self, directory: Path, resume: bool, overwrite: bool, tokens: bool) -> None:
        from agentgym_envs.rollout.token_file import TokenWriter, tokens_path

        if directory.exists() and not directory.is_dir():
            raise UsageError(f"--out names a directory, but {directory} is a file")
        record, result = directory / TRAJECTORIES, directory / RESULT
        found = not overwrite and _holds_run(record, result)
        if found and not resume:
            raise UsageError(
                f"{directory} holds an evaluation already; --resume goes on with it, --overwrite replaces it"
            )
        self._lock = _locked(record)
        if overwrite:
            self._lock.truncate(0)  # and not removed, as another would lock a file of the same name
            for path in (result, tokens_path(record), *(directory / name for name in REPORTS)):
                path.unlink(missing_ok=True)
        if found:
            _check_same(directory, result, self._settings)
            self._records = Records(read_trajectories(record))
        self._writer = TrajectoryWriter(record)
        self._tokens = TokenWriter(record) if tokens else None
        if not found:
            self.write_metrics(None, complete=False)


def _holds_run(record: Path, result: Path) -> bool:
    """Whether there is something to go on with or to lose; a run that ended before its first episode left nothing."""
    if record.exists() and record.stat().st_size:
        return True
    try:
        found = json.loads(result.read_text(encoding="utf-8"))
        return bool(found["complete"] or found["metrics"])
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return True  # nobody knows what


def _locked(path: Path) -> BinaryIO:
    """The file, made if there is none, and locked while it is open. Raises UsageError if that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "ab")  # noqa: SIM115 (closed by close)
    except OSError as error:
        raise cannot_write("--out", path.parent, error) from None
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another eval is writing to {path.parent}; let it end, or stop it, or choose another --out"
        ) from None
    except (ImportError, OSError):  # no locks on this system, or on this disk
        pass
    return file


def replace_text(path: Path, text: str) -> None:
    """Write a file as a whole, or leave the one that is there. Raises OSError."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", errors="surrogatepass")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _key(episode: Trajectory) -> EpisodeKey:
    return episode.env_id, episode.task.id, episode.seed


def _change(before: Trajectory | None, now: Trajectory) -> Tally:
    old, new = (Tally(0, 0, 0) if episode is None else _count(episode) for episode in (before, now))
    return Tally(new.done - old.done, new.solved - old.solved, new.spoiled - old.spoiled)


def _count(episode: Trajectory) -> Tally:
    return Tally(int(episode.usable), int(episode.usable and episode.success), int(episode.stop_reason == "env_error"))


def _check_same(directory: Path, result: Path, settings: Mapping[str, Any]) -> None:
    try:
        found = json.loads(result.read_text(encoding="utf-8"))["settings"]
        items = set(found) | set(settings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{result} cannot be read ({type(error).__name__}), so what {directory} holds is unknown; "
            "choose another --out, or --overwrite it"
        ) from None
    wanted = json.loads(json.dumps(dict(settings)))
    differing = [name for name in sorted(items) if found.get(name) != wanted.get(name)]
    if differing:
        shown = ", ".join(f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here" for name in differing)
        raise UsageError(
            f"{directory} holds a run with other settings: {shown}; give the same, or choose another --out"
        )
