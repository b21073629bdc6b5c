"""The table of credit methods of `--credit`: the ways to divide the return of an episode among its turns.

To add a method, write an estimator of advantages and add a row to `CREDITS`; the option, its help and the table in
docs/algorithms.md follow. A method that plays more than the episodes of a group adds its part to `StepRollout`.
This module imports neither torch nor TRL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from agentgym_envs.errors import UsageError
from agentgym_envs.registration import load_object

if TYPE_CHECKING:
    from torch import Tensor

    from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
    from agentgym_trl.algorithms import Algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """One value of `--credit`.

    summary: a few words of help.
    advantage: the formula of the advantage, a cell of the table in the documentation.
    papers: arXiv numbers.
    estimator: "module:function" of the advantage estimator; empty for that of the algorithm.
    """

    summary: str
    advantage: str
    papers: tuple[str, ...] = ()
    estimator: str = ""

    def estimate(self, algorithm: Algorithm, batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
        """Compute the advantages of a batch, (B,) or (B, T)."""
        if not self.estimator:
            return algorithm.estimate(batch, config)
        advantages: Tensor = load_object(self.estimator)(batch, config)
        return advantages


CREDITS: dict[str, Credit] = {
    "episode": Credit(
        summary="the algorithm's own",
        advantage="that of the algorithm, with the options above",
    ),
    "vine": Credit(
        summary="values from continuations of forked states",
        advantage="rewards of a segment, plus the value of the state after it, minus that of the state before it",
        papers=("2410.01679",),
        estimator="agentgym_trl.fork_advantages:vine",
    ),
    "tree": Credit(
        summary="means of the episodes of a tree (--tree)",
        advantage="deviation from the tree's mean, plus that from the group's, averaged over the episodes that share "
        "the turn",
        papers=("2509.21240",),
        estimator="agentgym_trl.fork_advantages:tree",
    ),
}

ForkKind = Literal["every-turn", "random", "surprising"]


@dataclass(frozen=True, slots=True)
class ForkPoints:
    """The turns of `--at`: every turn, or about `count` turns of an episode."""

    kind: ForkKind
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `every-turn`, `random:N` or `surprising:N`. Raises UsageError."""
        kind, _, count = text.partition(":")
        if text == "every-turn":
            return cls("every-turn")
        if kind in ("random", "surprising") and count.isdecimal() and int(count) > 0:
            return cls(cast(ForkKind, kind), int(count))
        raise UsageError(f"--at is every-turn, random:N or surprising:N with N of at least 1, got {text!r}")


@dataclass(frozen=True, slots=True)
class Vine:
    """Continuations of forked states: `branches` from each of the states at `points`, discounted by `gamma`."""

    points: ForkPoints
    branches: int
    gamma: float


@dataclass(frozen=True, slots=True)
class TreeShape:
    """The shape of `--tree WxD`: at each of `depth` levels, every path becomes `width` paths."""

    width: int
    depth: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `WxD`. Raises UsageError."""
        width, _, depth = text.lower().replace("×", "x").partition("x")
        if width.isdecimal() and depth.isdecimal() and int(width) > 1 and int(depth) > 0:
            return cls(int(width), int(depth))
        raise UsageError(
            f"--tree is WxD, W branches (at least 2) at each of D levels (at least 1), as in 2x2, got {text!r}"
        )

    @property
    def leaves(self) -> int:
        """The number of episodes of a tree."""
        return int(self.width**self.depth)


def fork_options(args: Any) -> dict[str, Any]:
    """The arguments of `make_rollout_func` for an `AgentConfig`."""
    if args.credit == "vine":
        return {"vine": Vine(ForkPoints.parse(args.at), args.branches, args.gamma)}
    return {"tree": TreeShape.parse(args.tree)} if args.credit == "tree" else {}


def check_credit(args: Any) -> None:
    """Fill in the defaults of an `AgentConfig`. Raises UsageError if its settings exclude each other."""
    if args.credit not in CREDITS:
        raise UsageError(f"there is no credit {args.credit!r}; choose from {', '.join(CREDITS)}")
    if args.tree is not None and args.credit == "episode":
        args.credit = "tree"
    _check_own_options(args)
    if args.credit == "vine":
        args.branches, args.at = args.branches or 4, args.at or "every-turn"
        ForkPoints.parse(args.at)
    if args.credit == "tree":
        _check_tree(args, TreeShape.parse(args.tree))
    if args.credit != "episode":
        _check_forks(args)


def _check_own_options(args: Any) -> None:
    if args.credit != "vine" and (args.branches is not None or args.at is not None):
        raise UsageError("--branches and --at are for --credit vine; add it, or leave them out")
    if (args.credit == "tree") != (args.tree is not None):
        raise UsageError("--credit tree and --tree WxD belong together; give --tree only, or leave both out")


def _check_forks(args: Any) -> None:
    """Check what no method that forks can do."""
    name = f"--credit {args.credit}"
    if args.algorithm != "grpo":
        raise UsageError(f"{name} is for grpo, got {args.algorithm}; with --scale_rewards none, it divides by nothing")
    others = {
        "--turn-level-advantage": args.turn_level_advantage,
        "--step-advantage-weight": args.step_advantage_weight,
        "--async": args.asynchronous,
        "--kl-in reward": args.kl_in == "reward",
        "--agent reflect": args.agent_options is not None and args.agent_options.attempts > 1,
    }
    if used := [option for option, value in others.items() if value]:
        raise UsageError(f"{name} cannot be combined with {', '.join(used)}; leave one of them out")


def _check_tree(args: Any, shape: TreeShape) -> None:
    rows = args.per_device_train_batch_size * (args.steps_per_generation or args.gradient_accumulation_steps)
    for name, number in (("--num_generations", args.num_generations), ("the rows of a process", rows)):
        if number % shape.leaves:
            raise UsageError(
                f"--tree {args.tree} grows trees of {shape.leaves} episodes, so {name} must be a multiple, got {number}"
            )
    if args.dynamic_sampling_retries:
        raise UsageError("--tree replaces no groups; leave out --dynamic-sampling-retries")


def credit_table() -> str:
    """The credit methods as a Markdown table, for docs/algorithms.md."""
    rows = ["| `--credit` | advantage of a turn | source |", "|---|---|---|"]
    for name, credit in CREDITS.items():
        papers = ", ".join(f"[{number}](https://arxiv.org/abs/{number})" for number in credit.papers)
        rows.append(f"| `{name}` | {credit.advantage} | {papers} |")
    return "\n".join(rows) + "\n"
