"""A trajectory: the immutable record of one episode, and one line of JSONL."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentgym_envs.core import ENV_FAILED
from agentgym_envs.errors import TrajectoryError
from agentgym_envs.image_files import image_name, write_image
from agentgym_envs.task import Task
from agentgym_envs.times import EpisodeTimes

SCHEMA_VERSION = 2
_READABLE = (1, SCHEMA_VERSION)
Message = dict[str, str]
_log = logging.getLogger(__name__)
_BLOCK = 1 << 16
_HUGE = 1e100


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the observation, the policy's action, its reward, and the info of the step."""

    observation: str
    action: str
    reward: float
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of one episode.

    `final_observation` follows the last action. `stop_reason` is a `StopReason` value. `error` describes the failure if
    that is `env_error`. `meta` is JSON from the recorder (policy, training step, turn limit, ...).
    `times` are those of the recorder, if it measured any. Equality ignores them, as they differ in every repetition.
    """

    env_id: str
    task: Task
    seed: int
    instructions: str
    turns: tuple[Turn, ...]
    final_observation: str
    score: float
    success: bool
    stop_reason: str
    error: str | None = None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    times: EpisodeTimes | None = field(default=None, compare=False)

    @property
    def actions(self) -> list[str]:
        """The actions of the policy, one per turn."""
        return [turn.action for turn in self.turns]

    @property
    def truncated(self) -> bool:
        """True if the environment did not end the episode: a limit, a failure or `close` did."""
        return self.stop_reason not in ("success", "failure")

    @property
    def usable(self) -> bool:
        """True if the episode is evidence about the policy: it has a turn, and the environment did not fail."""
        return self.stop_reason != "env_error" and bool(self.turns)

    def messages(self) -> list[Message]:
        """The conversation: system (the instructions), user (observations) and assistant (actions).

        The final observation is left out, since the policy did not reply to it.
        """
        conversation = prompt_messages(self.instructions, self.turns[0].observation if self.turns else "")
        for number, turn in enumerate(self.turns):
            conversation.append({"role": "assistant", "content": turn.action})
            if number + 1 < len(self.turns):
                conversation.append({"role": "user", "content": self.turns[number + 1].observation})
        return conversation

    def to_json(self, images: dict[str, bytes] | None = None) -> str:
        """One line of JSON, with the version of this schema.

        Of the environment's arguments, paths become text, and objects such as a `TaskSet` the name of their type.
        Images (bytes) become the names of their files, by which they are added to `images`.
        """
        found = {} if images is None else images

        def described(value: Any) -> Any:
            if not isinstance(value, bytes):
                return asdict(value)
            name = image_name(value)
            found[name] = value
            return name

        row = {"schema": SCHEMA_VERSION, **_fields(self), "task": _fields(self.task)}
        row["turns"] = [_fields(turn) for turn in self.turns]
        if (times := row.pop("times")) is not None:  # last, and left out without any: such records have equal bytes
            row["times"] = times.to_json()
        try:
            return json.dumps(row, ensure_ascii=False, default=described)
        except TypeError:
            row["env_kwargs"] = json.loads(json.dumps(dict(self.env_kwargs), default=_described))
            return json.dumps(row, ensure_ascii=False, default=described)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a line that `to_json` wrote, also of schema 1. Raises TrajectoryError."""
        try:
            row = json.loads(line)
            schema = row.pop("schema")
            if schema not in _READABLE:
                raise TrajectoryError(f"this version reads trajectory schema 1 or 2, not {schema}")
            if schema == 1:
                _rename_attempts(row.get("meta"))
            row["task"] = Task(**row["task"])
            if not isinstance(row["turns"], list):
                raise TrajectoryError("turns is not a list")
            row["turns"] = tuple(Turn(**turn) for turn in row["turns"])
            if row.get("times") is not None:
                row["times"] = EpisodeTimes.from_json(row["times"])
            trajectory = cls(**row)
            _check_types(trajectory)
            return trajectory
        except KeyError as error:
            raise TrajectoryError(f"not a trajectory: it has no {error}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, TrajectoryError):
                raise
            raise TrajectoryError(f"not a trajectory: {type(error).__name__}: {error}") from None


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a dataclass; `asdict` would copy their values too, which takes most of the time of `to_json`."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _described(argument: object) -> str:
    return os.fspath(argument) if isinstance(argument, os.PathLike) else f"<{type(argument).__name__}>"


def _rename_attempts(meta: Any) -> None:
    """Give the keys of an agent's attempts their present name; schema 1 called them `tries`."""
    agent = meta.get("agent") if isinstance(meta, dict) else None
    if isinstance(agent, dict) and "tries" in agent:
        agent["attempts"] = agent.pop("tries")
        if "tries" in meta:
            meta["attempts"] = meta.pop("tries")


def _check_types(read: Trajectory) -> None:
    """Raise TrajectoryError if a field has the wrong type: JSON may hold anything."""
    task = read.task
    texts = (read.env_id, task.id, task.split, task.group, task.goal, read.instructions, read.final_observation)
    if not all(isinstance(text, str) for text in (*texts, read.stop_reason, read.error or "")):
        raise TrajectoryError("a field that must be text (an id, a goal, an observation, ...) is not")
    if not all(isinstance(value, dict) for value in (task.data, read.env_kwargs, read.meta)):
        raise TrajectoryError("task.data, env_kwargs and meta must be objects")
    if type(read.seed) is not int or type(read.success) is not bool or not _is_finite(read.score):
        raise TrajectoryError("seed must be a whole number, success true or false, and score a finite number")
    for number, turn in enumerate(read.turns, 1):
        if not isinstance(turn.observation, str) or not isinstance(turn.action, str):
            raise TrajectoryError(f"observation and action of turn {number} must be text")
        if not isinstance(turn.info, dict) or not _is_finite(turn.reward):
            raise TrajectoryError(f"info of turn {number} must be an object, and its reward a finite number")


def _is_finite(value: object) -> bool:
    """True for a number whose sums stay finite."""
    return (type(value) is int or type(value) is float) and abs(value) < _HUGE


def strict_json(value: Any, *, indent: int | None = None, ensure_ascii: bool = False) -> str:
    """Strictly valid JSON: NaN and infinite numbers become null."""
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, separators=separators, allow_nan=False)
    except ValueError:
        return json.dumps(_nulled(value), indent=indent, ensure_ascii=ensure_ascii, separators=separators)


def _nulled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _nulled(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nulled(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def prompt_messages(instructions: str, observation: str) -> list[Message]:
    """The conversation before the first answer. Empty instructions give no system message."""
    system = [{"role": "system", "content": instructions}] if instructions else []
    return [*system, {"role": "user", "content": observation}]


class LineWriter:
    """Appends lines to a file; written lines survive a crash.

    A line that a full disk truncated is removed again, so that the file stays readable and can be continued.
    """

    def __init__(self, path: str | Path) -> None:
        """Open `path` for appending, and make its directory."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (closed by close)
        self._drop_torn_line()

    def write_line(self, line: bytes) -> None:
        """Append one line, given without its line end. On a full disk, remove the partial line and raise OSError."""
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line + b"\n")
            if written != len(line) + 1:
                raise OSError(f"only {written} of {len(line) + 1} bytes fitted on the disk")
        except OSError:
            self._file.truncate(end)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _drop_torn_line(self) -> None:
        """Truncate the file after its last line end. The search starts at the end, as the file may be large."""
        end = size = self._file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - _BLOCK)
            self._file.seek(begin)
            if (newline := self._file.read(end - begin).rfind(b"\n")) >= 0:
                end = begin + newline + 1
                break
            end = begin
        if end < size:
            self._file.truncate(end)


class TrajectoryWriter(LineWriter):
    """Appends trajectories to a file as they finish. Their images go into files next to it; see `image_files`."""

    def write(self, trajectory: Trajectory) -> str:
        """Append one line and return its `line_mark`. Raises OSError as `write_line` does.

        The images are written first, so that a line never refers to an image that an interruption left out.
        """
        images = dict[str, bytes]()
        line = trajectory.to_json(images).encode("utf-8", "surrogatepass")
        for name, image in images.items():
            write_image(self.path.parent, name, image)
        self.write_line(line)
        return line_mark(line)


def placeholder_task(task_id: object) -> Task:
    """A placeholder task for an episode that failed before its task could be looked up."""
    return Task("unknown" if task_id is None else str(task_id), "train", "unknown", ENV_FAILED)


def with_image_names(trajectory: Trajectory) -> Trajectory:
    """The trajectory as it is read back: with the names of its images in their place, which frees their memory.

    An episode with images begins with one, in its `meta`.
    """
    has_images = isinstance(trajectory.meta.get("screenshot"), bytes)
    return Trajectory.from_json(trajectory.to_json()) if has_images else trajectory


def line_mark(line: bytes) -> str:
    """16 hex digits that identify a line (without its line end), so that records in other files can refer to it."""
    return hashlib.blake2b(line, digest_size=8).hexdigest()


def read_trajectories(path: str | Path) -> Iterator[Trajectory]:
    """The trajectories of a JSONL file, in order.

    A last line without a line end comes from a crash: it is skipped with a warning. Any other line that cannot be read
    raises TrajectoryError with file and line number.
    """
    with open(path, "rb") as lines:  # decoded line by line, as a crash may have split a character
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                _log.warning("%s:%d is incomplete and was skipped", path, number)
                return
            try:
                trajectory = Trajectory.from_json(line.decode("utf-8", "surrogatepass"))
            except (TrajectoryError, UnicodeDecodeError) as error:
                raise TrajectoryError(f"{path}:{number}: {error}") from None
            yield trajectory
