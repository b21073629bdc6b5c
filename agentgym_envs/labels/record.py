"""Label records: the file `NAME.labels.jsonl` next to `NAME.jsonl` holds the labels of its episodes.

A line is an episode: `{"schema": 1, "of": MARK, ...}`, where the mark is `line_mark` of the trajectory's line. A turn
has `before`, `after`, `regret`, `reachable`, `method` and `verdict`; the first mistake and the rest follow from them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.trajectory import LineWriter, Trajectory, line_mark

LABEL_SCHEMA_VERSION = 1
_ENDING = ".labels.jsonl"
Verdict = Literal["on plan", "detour", "lost", "unknown"]
"""The verdict on a turn: no regret, regret, the goal is out of reach, or no label."""


@dataclass(frozen=True, slots=True)
class TurnLabel:
    """The turns to go before and after a turn. None: no way to the goal is known.

    With `exact`, both numbers are proven to be the smallest, and None that no way exists. Otherwise they are lengths of
    the oracle's plans, or of the rest of the episode if that is shorter. `reachable` is true if a way to the goal is
    known after the turn, false if there is a proof that none exists, and None otherwise.
    """

    before: int | None
    after: int | None
    exact: bool
    reachable: bool | None

    @property
    def method(self) -> str:
        """The source of the label."""
        return "exact" if self.exact else "oracle plan"

    @property
    def regret(self) -> int | None:
        """The turns that this turn lost: 1 + after - before, 0 or more; None without both numbers."""
        return None if self.before is None or self.after is None else 1 + self.after - self.before

    @property
    def verdict(self) -> Verdict:
        """The verdict on the turn."""
        if self.reachable is False:
            return "lost"
        return "unknown" if self.regret is None else "detour" if self.regret > 0 else "on plan"

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON object with all derived values."""
        names = ("before", "after", "regret", "reachable", "method", "verdict")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class EpisodeLabels:
    """The labels of an episode's turns, or the reason why it could not be labelled (`error`, with no turns).

    A turn in which the environment failed has no label, so there may be fewer labels than turns.
    """

    of: str
    env_id: str
    task: str
    seed: int
    turns: tuple[TurnLabel, ...] = ()
    error: str | None = None

    @property
    def first_mistake(self) -> int | None:
        """The number of the first turn (from 1) with regret, or that put the goal out of reach."""
        for number, turn in enumerate(self.turns, 1):
            if turn.verdict == "detour" or (turn.verdict == "lost" and turn.before is not None):
                return number
        return None

    @property
    def regret(self) -> int | None:
        """The sum of the turns' regret; None if that of a turn is unknown or the goal was lost."""
        regrets = [turn.regret for turn in self.turns]
        return None if not regrets or None in regrets else sum(regret or 0 for regret in regrets)

    @property
    def recovered(self) -> bool | None:
        """True if the episode came closer to the goal than before its first mistake; None without a mistake."""
        first = self.first_mistake
        if first is None:
            return None
        best = self.turns[first - 1].before
        return any(turn.after is not None and (best is None or turn.after < best) for turn in self.turns[first:])

    @property
    def exact(self) -> bool:
        """True if all labels are proven."""
        return bool(self.turns) and all(turn.exact for turn in self.turns)

    def to_json(self) -> dict[str, Any]:
        """Convert to the JSON object of a line, with the derived values for readers without this package."""
        head = {"schema": LABEL_SCHEMA_VERSION, "of": self.of, "env_id": self.env_id, "task": self.task}
        turns = [turn.to_json() for turn in self.turns]
        derived = {name: getattr(self, name) for name in ("first_mistake", "regret", "recovered", "exact")}
        return {**head, "seed": self.seed, "error": self.error, **derived, "turns": turns}

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a line that `to_json` wrote. Raises TrajectoryError."""
        try:
            row = json.loads(line)
            if row["schema"] != LABEL_SCHEMA_VERSION:
                raise TrajectoryError(f"this version reads label schema {LABEL_SCHEMA_VERSION}, not {row['schema']}")
            turns = tuple(_turn(turn) for turn in row["turns"])
            return cls(row["of"], row["env_id"], row["task"], row["seed"], turns, row["error"])
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise TrajectoryError(f"not a line of labels: {type(error).__name__}: {error}") from None


def _turn(row: Mapping[str, Any]) -> TurnLabel:
    before, after = row["before"], row["after"]
    if not all(value is None or type(value) is int for value in (before, after)):
        raise ValueError("turns to go must be whole numbers or null")
    return TurnLabel(before, after, row["method"] == "exact", row["reachable"])


def labels_path(trajectories: str | Path) -> Path:
    """The path of the labels of a file of trajectories."""
    path = Path(trajectories)
    return path.with_name(path.name.removesuffix(".jsonl") + _ENDING)


def is_label_file(path: str | Path) -> bool:
    """True if the name of a file is that of a file of labels."""
    return Path(path).name.endswith(_ENDING)


def read_labels(trajectories: str | Path) -> dict[str, EpisodeLabels]:
    """The labels of a file's episodes by `line_mark`; empty if there are none. An incomplete last line is skipped.

    Raises TrajectoryError with file and line number.
    """
    path, found = labels_path(trajectories), dict[str, EpisodeLabels]()
    if not path.is_file():
        return found
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break
            try:
                labels = EpisodeLabels.from_json(line.decode("utf-8", "surrogatepass"))
            except (TrajectoryError, UnicodeDecodeError) as error:
                raise TrajectoryError(f"{path}:{number}: {error}") from None
            found[labels.of] = labels
    return found


class LabelTable:
    """Finds the labels of episodes, by the mark of the line or, if that was written elsewhere, by task and seed."""

    def __init__(self, labels: Iterable[EpisodeLabels]) -> None:
        self._by_mark = {one.of: one for one in labels}
        keys = [(one.env_id, one.task, one.seed) for one in self._by_mark.values()]
        counts = Counter(keys)
        self._by_key = {key: one for key, one in zip(keys, self._by_mark.values(), strict=True) if counts[key] == 1}

    def __len__(self) -> int:
        return len(self._by_mark)

    def find(self, trajectory: Trajectory) -> EpisodeLabels | None:
        """Return the labels of an episode, or None."""
        mark = line_mark(trajectory.to_json().encode("utf-8", "surrogatepass"))
        key = trajectory.env_id, trajectory.task.id, trajectory.seed
        return self._by_mark.get(mark) or self._by_key.get(key)


def write_labels(writer: LineWriter, labels: EpisodeLabels) -> None:
    """Append the labels of an episode."""
    writer.write_line(json.dumps(labels.to_json(), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def complete_lines(trajectories: str | Path) -> Iterator[bytes]:
    """The complete lines of a file of trajectories, without their line ends."""
    with open(os.fspath(trajectories), "rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line[:-1]
