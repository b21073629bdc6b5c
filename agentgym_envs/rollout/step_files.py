"""The trajectories of a training run: one file `step-N.jsonl` per training step, `eval-N.jsonl` per evaluation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.token_file import TokenWriter, tokens_path
from agentgym_envs.rollout.tokens import TokenTrajectory
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter

_OPEN = 8


class StepFiles:
    """Writes finished episodes, each to the file of the step in which it began.

    A file that already exists when its step begins comes from a run that stopped within this step. It is renamed to
    `step-N.replaced-1.jsonl`, since its episodes are not part of the present training data.
    """

    def __init__(self, directory: str | Path, rank: str | int = 0, *, codec: ChatCodec | None = None) -> None:
        """`rank` is the number of the process in a distributed run. With a `codec`, the tokens are recorded as well."""
        self._directory, self._ending, self._codec = Path(directory), f".rank{rank}" if rank else "", codec
        self._seen = set[Path]()
        self._writers: OrderedDict[Path, tuple[TrajectoryWriter, TokenWriter | None]] = OrderedDict()

    def write(self, step: int, training: bool, trajectory: Trajectory, segments: Sequence[TokenTrajectory]) -> None:
        """Append one episode and its tokens. Raises OSError if the disk is full."""
        writer, tokens = self._open(self.path(step, training))
        mark = writer.write(trajectory)
        if tokens is not None and self._codec is not None:
            tokens.write(mark, segments, self._codec)

    def path(self, step: int, training: bool) -> Path:
        """The file of a step."""
        return self._directory / f"{'step' if training else 'eval'}-{step}{self._ending}.jsonl"

    def close(self) -> None:
        """Close the files; a later write opens them again."""
        while self._writers:
            self._close(self._writers.popitem()[1])

    def _open(self, path: Path) -> tuple[TrajectoryWriter, TokenWriter | None]:
        """The writers of a file. Only a few stay open, as a long run has many steps."""
        if path not in self._writers:
            if path not in self._seen and path.exists():
                _set_aside(path)
            self._seen.add(path)
            self._writers[path] = TrajectoryWriter(path), TokenWriter(path) if self._codec else None
            if len(self._writers) > _OPEN:
                self._close(self._writers.popitem(last=False)[1])
        self._writers.move_to_end(path)
        return self._writers[path]

    @staticmethod
    def _close(writers: tuple[TrajectoryWriter, TokenWriter | None]) -> None:
        for writer in writers:
            if writer is not None:
                writer.close()


def _set_aside(path: Path) -> None:
    """Rename the file, and its token file, to a free name."""
    other = _free_name(path)
    path.rename(other)
    if tokens_path(path).exists():
        tokens_path(path).rename(tokens_path(other))


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_suffix(f".replaced-{number}.jsonl")).exists():
        number += 1
    return other
