"""DAgger: play, let the oracle label the visited states, imitate all labels so far, repeat.

In round i = 1, 2, ... a mixture plays training tasks: a turn is the oracle's with probability beta_i, and the policy's
otherwise. The oracle labels every visited state with its own answer. The labels join those of earlier rounds, and a
model is trained on all of them. With beta_1 = 1, the first round is behaviour cloning.

Source: Ross, Gordon and Bagnell, arXiv 1011.0686, algorithm 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from datasets import Dataset
from rich.console import Console
from rich.table import Table
from trl import SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, OracleClock, play_labelled
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector import MakeEnv
from agentgym_trl.exploration import derive_seed, episode_key
from agentgym_trl.imitation import ImitationRows, label_counts, label_metrics
from agentgym_trl.rounds import Evaluate, MakeEngine, Round, RoundRun, RoundSettings, play_metrics
from agentgym_trl.sft import make_row_trainer, sft_dataset


@dataclass(frozen=True, slots=True)
class OracleShare:
    """The schedule of beta: the share of turns that the oracle plays in each round.

    `values` are those of the first rounds; the last one holds for all later rounds. With `decay`, the share of round i
    is decay ** (i - 1).
    """

    values: tuple[float, ...] = (1.0, 0.0)
    decay: float | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a value outside [0, 1]."""
        wrong = [value for value in (*self.values, self.decay or 0.0) if not 0 <= value <= 1]
        if wrong or not self.values:
            raise UsageError(f"the oracle's share of turns must be between 0 and 1, got {wrong or 'none'}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1,0.5,0` or `decay:0.5`. Raises UsageError."""
        decays = text.startswith("decay:")
        try:
            values = tuple(float(part) for part in text.removeprefix("decay:").split(","))
        except ValueError:
            values = ()
        if not values or (decays and len(values) != 1):
            raise UsageError(f"--oracle-share is a share for each round, as in 1,0.5,0, or decay:0.5; got {text!r}")
        return cls(decay=values[0]) if decays else cls(values)

    def of(self, number: int) -> float:
        """The share of the round `number`, from 1."""
        if self.decay is not None:
            return float(self.decay ** (number - 1))
        return self.values[min(number, len(self.values)) - 1]


@dataclass(frozen=True, slots=True)
class DaggerSettings(RoundSettings):
    """Settings of play and of the data.

    `rounds` is the number of rounds. In each, the oracle may take `oracle_seconds` for labels (None: no limit). A round
    trains on the demonstrations and on the labels of all rounds (`keep="all"`, aggregation) or of this round only
    (`keep="last"`). It trains the model that the run began with (`start="base"`), or the last round's (`"last"`).
    """

    rounds: int = 4
    episodes_per_task: int = 1
    oracle_share: OracleShare = OracleShare()
    oracle_seconds: float | None = None
    keep: Literal["all", "last"] = "all"
    start: Literal["base", "last"] = "base"

    def __post_init__(self) -> None:
        self.check(rounds=1)
        for name, known in (("keep", ("all", "last")), ("start", ("base", "last"))):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} must be {' or '.join(map(repr, known))}, got {getattr(self, name)!r}")
        if self.oracle_seconds is not None and not self.oracle_seconds > 0:
            raise UsageError(f"oracle_seconds must be above 0, got {self.oracle_seconds}; None is no limit")


def dagger(
    model: str | Path,
    demonstrations: Sequence[Trajectory],
    make_env: MakeEnv,
    codec: ChatCodec,
    args: SFTConfig,
    settings: DaggerSettings,
    *,
    make_engine: MakeEngine | None = None,
    evaluate: Evaluate | None = None,
    on_begin: Callable[[], object] | None = None,
    console: Console | None = None,
    **trainer: Any,
) -> list[Round]:
    """Run `settings.rounds` rounds of DAgger in `args.output_dir`, or resume them.

    The arguments and the resume are those of `agentevol`. `demonstrations` may be empty; they are part of the data of
    all rounds. States without a label of the oracle, and labels longer than `args.max_length`, are left out and
    counted. A round that is resumed while it plays has its whole `oracle_seconds` again.

    Returns:
        The rounds.

    Raises:
        UsageError: the oracle labelled no state, the environment or a demonstration is a team's, there are too few
            tasks, or the directory holds a run with other demonstrations.
        EnvError: every episode of a round failed.
        KeyboardInterrupt: on Ctrl-C, after everything was written.
    """
    run = _Run(str(model), demonstrations, make_env, codec, args, settings, make_engine, evaluate, console, trainer)
    return run.run(1, on_begin)


def print_rounds(console: Console, rounds: Sequence[Round]) -> None:
    """Print a table with one row per round."""
    names = list(dict.fromkeys(name for r in rounds for name in r.metrics if name.startswith("eval/")))
    table = Table(
        "round", "oracle's turns", "success", "states", "labelled", "agreement", "labels in all", "loss", *names
    )
    for row in rounds:
        m = row.metrics
        shares = [f"{m[name]:.1%}" for name in ("oracle_turns", "success")]
        counts = [f"{m[name]:.0f}" for name in ("states", "labelled")]
        agreement = f"{m['agreement']:.1%}" if m["oracle_turns"] < 1 else "-"
        evaluated = [f"{m[name]:.3f}" if name in m else "-" for name in names]
        labels = f"{m['trained_on']:.0f}"
        table.add_row(str(row.number), *shares, *counts, agreement, labels, f"{m['loss']:.4f}", *evaluated)
    console.print(table)


@dataclass(frozen=True, slots=True)
class _Run(RoundRun):
    """The steps of a round."""

    algorithm = "dagger"

    settings: DaggerSettings

    def play_and_train(self, number: int, directory: Path, before: Sequence[Round]) -> dict[str, float]:
        """Play, label and train."""
        last = str(before[-1].model) if before else self.model
        explored, seconds = self._labelled(number, directory, last)
        data, found = (
            self._data(explored, before if self.settings.keep == "all" else []),
            label_metrics(map(label_counts, explored)),
        )

        def trainer(start: str, args: SFTConfig) -> Any:
            return make_row_trainer(start, self._dataset(data, found), self.codec, args, **self.trainer)

        facts = {
            **play_metrics(explored),
            **found,
            "oracle_seconds": seconds,
            "trained_on": float(data.labels),
            "too_long": float(data.too_long),
            "rows": float(len(data.rows)),
        }
        start = last if self.settings.start == "last" else self.model
        return {**facts, **self.train(directory, f"round {number}: train", start, trainer)}

    def _labelled(self, number: int, directory: Path, model: str) -> tuple[list[Trajectory], float]:
        """The labelled episodes of a round, and the seconds of the oracle in this process."""
        settings, clock = self.settings, OracleClock(self.settings.oracle_seconds)
        share, seed = settings.oracle_share.of(number), derive_seed(settings.seed, number)
        play_with = partial(play_labelled, oracle_share=share, clock=clock, seed=seed)
        return self.explore(directory, number, model, play_with), clock.spent

    def _data(self, explored: Sequence[Trajectory], earlier: Sequence[Round]) -> ImitationRows:
        """The rows of all labels to train on, in an order that does not depend on which episode ended first."""
        data = ImitationRows()
        for trajectory in [*(t for r in earlier for t in sorted(r.explored(), key=episode_key)), *explored]:
            if trajectory.usable:
                data.add(trajectory, self.codec, self.args.max_length)
        return data

    def _dataset(self, data: ImitationRows, found: dict[str, float]) -> Any:
        """The rows of demonstrations and labels. Raises UsageError if there is no label."""
        if not data.labels:
            counts = ", ".join(f"{found[name]:.0f} {name}" for name in ("out_of_reach", "unsolved", "unasked"))
            raise UsageError(
                f"the oracle labelled none of the {found['states']:.0f} visited states within --max_length ({counts}, "
                f"{data.too_long} too long); choose an environment with an oracle, or raise the limit that was reached"
            )
        shown = sft_dataset(self.demonstrations, self.codec, self.args.max_length) if self.demonstrations else []
        return Dataset.from_list([*shown, *data.rows])
