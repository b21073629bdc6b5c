"""The table of algorithms: the commands of `agentgym train`, their help, and the table in docs/algorithms.md.

To add an online algorithm, write an advantage estimator in `agentgym_trl.advantages` and add a row to `ALGORITHMS`.
This module imports neither torch nor TRL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_envs.registration import load_object

if TYPE_CHECKING:
    from torch import Tensor

    from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One `agentgym train` command.

    summary: one line of help.
    advantage: the formula of the advantage, or what is imitated or preferred: a cell of the table in the documentation.
    papers: arXiv numbers.
    estimator: "module:function" of the advantage estimator; empty for algorithms that are not online.
    grouped: the estimator compares the episodes of a group, so a group needs at least two.
    critic: the estimator needs the values of a critic.
    imitates: it trains on the oracle's answers in the states that the policy visits, not on the policy's answers.
    command: "module:function" that runs the command with its arguments; online algorithms need none.
    """

    summary: str
    advantage: str
    papers: tuple[str, ...] = ()
    estimator: str = ""
    grouped: bool = False
    critic: bool = False
    imitates: bool = False
    command: str = ""

    @property
    def is_online(self) -> bool:
        """True if it trains on episodes that the policy plays during training."""
        return bool(self.estimator)

    def estimate(self, batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
        """Compute the advantages of a batch with the estimator, (B,) or (B, T)."""
        advantages: Tensor = load_object(self.estimator)(batch, config)
        return advantages


ALGORITHMS: dict[str, Algorithm] = {
    "grpo": Algorithm(
        summary="group-relative policy optimisation",
        advantage="deviation from the group's mean, over its standard deviation",
        papers=("2402.03300",),
        estimator="agentgym_trl.advantages:grpo",
        grouped=True,
    ),
    "rloo": Algorithm(
        summary="REINFORCE with a leave-one-out baseline",
        advantage="deviation from the mean of the group's other episodes",
        papers=("2402.14740",),
        estimator="agentgym_trl.advantages:rloo",
        grouped=True,
    ),
    "reinforce++": Algorithm(
        summary="REINFORCE, whitened over the batch",
        advantage="return from each token on, whitened over the batch",
        papers=("2501.03262",),
        estimator="agentgym_trl.advantages:reinforce_plus_plus",
    ),
    "reinforce++-baseline": Algorithm(
        summary="REINFORCE++ with the group's mean as the baseline",
        advantage="deviation from the group's mean, whitened over the batch",
        papers=("2501.03262",),
        estimator="agentgym_trl.advantages:reinforce_plus_plus_baseline",
        grouped=True,
    ),
    "ppo": Algorithm(
        summary="proximal policy optimisation with a critic (GAE)",
        advantage="GAE over answer tokens, whitened over the batch",
        papers=("1506.02438", "1707.06347"),
        estimator="agentgym_trl.advantages:gae",
        critic=True,
    ),
    "distill": Algorithm(
        summary="imitation of the oracle in the states that the policy visits",
        advantage="1 for the oracle's answers, which replace the policy's",
        papers=("1011.0686", "2306.13649"),
        estimator="agentgym_trl.advantages:imitation",
        imitates=True,
    ),
    "sft": Algorithm(
        summary="supervised training on demonstrations",
        advantage="none: imitates demonstrations",
        command="agentgym_trl.cli.sft:train_sft",
    ),
    "dpo": Algorithm(
        summary="preferences between trajectories of the same task",
        advantage="none: prefers the better of two trajectories of a task",
        papers=("2305.18290",),
        command="agentgym_trl.cli.dpo:train_dpo",
    ),
    "agentevol": Algorithm(
        summary="explore, keep the successes, train the base model on them, repeat",
        advantage="none: imitates its own successes, from the base model, round after round",
        papers=("2406.04151",),
        command="agentgym_trl.cli.agentevol:train_agentevol",
    ),
    "dagger": Algorithm(
        summary="play, imitate the oracle in the visited states of all rounds, repeat",
        advantage="none: imitates the oracle's answers in the states that the policy visits, round after round",
        papers=("1011.0686",),
        command="agentgym_trl.cli.dagger:train_dagger",
    ),
}


def online_algorithms() -> dict[str, Algorithm]:
    """The algorithms that train on episodes that the policy plays, by name."""
    return {name: algorithm for name, algorithm in ALGORITHMS.items() if algorithm.is_online}


def algorithm_table() -> str:
    """The algorithms as a Markdown table, for docs/algorithms.md."""
    head = "| command | advantage | groups | critic | source |\n|---|---|---|---|---|\n"
    return head + "".join(_table_row(name, algorithm) for name, algorithm in ALGORITHMS.items())


def _table_row(name: str, algorithm: Algorithm) -> str:
    papers = ", ".join(f"[{number}](https://arxiv.org/abs/{number})" for number in algorithm.papers)
    grouped, critic = ("yes" if needed else "" for needed in (algorithm.grouped, algorithm.critic))
    return "| " + " | ".join([f"`{name}`", algorithm.advantage, grouped, critic, papers]) + " |\n"
