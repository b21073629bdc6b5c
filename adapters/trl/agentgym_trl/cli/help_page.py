"""The help of `agentgym train ALGORITHM`: our options in groups, a line each. Imports neither torch nor TRL.

`--help-all` has the whole texts, and TRL's own options. A test compares the rows with the fields of the configs.
"""

from __future__ import annotations

from typing import NamedTuple

from agentgym_trl.algorithms import ALGORITHMS

_WIDTH = 30
_ALL = "online sft dpo agentevol dagger"
_ROUNDS = "agentevol dagger"
_DEMOS = "sft agentevol dagger"


class Option(NamedTuple):
    """A line of the help: an option, its value, a text, its default and the algorithms that have it."""

    name: str
    value: str
    text: str
    default: str = ""
    algorithms: str = "online"


OPTIONS: dict[str, tuple[Option, ...]] = {
    "environment": (
        Option("env", "ENV", "environment, by id or short name", "", "sft dpo agentevol dagger"),
        Option("env", "ENV[:WEIGHT] ...", "environments, by id or short name"),
        Option("env-kwargs", "JSON", "arguments of the environment", "{}", _ALL),
        Option("tools", "", "native tool calls as actions", "", _ALL),
        Option("split", "NAME", "split to draw tasks from", "train", _ALL),
        Option("groups", "NAME ...", "groups to draw tasks from; all by default", "", _ALL),
        Option("tasks", "N", "number of tasks", "", "online sft agentevol"),
        Option("tasks", "N", "tasks and seeds with pairs, at most", "", "dpo"),
        Option("sampler", "NAME", "choice of the tasks of a rollout", "uniform"),
        Option("train-agents", "NAME ...", "teams: the agents to train; all by default"),
        Option("partner", "MODEL", "teams: a frozen model for the other agents"),
    ),
    "episodes": (
        Option("demos", "FILE", "trajectories to train on; else the oracle's", "", "sft agentevol"),
        Option("demos", "FILE", "trajectories to begin with; none by default", "", "dagger"),
        Option("trajectories", "FILE ...", "several episodes of each task", "", "dpo"),
        Option("preferences", "KIND ...", "pairs by success, score and turns; all", "", "dpo"),
        Option("max-pairs-per-task", "N", "pairs of a task and seed, at most", "4", "dpo"),
        Option("min-margin", "X", "difference of the scores, at least", "0.0", "dpo"),
        Option("rounds", "N", "rounds of exploration and training", "3", "agentevol"),
        Option("rounds", "N", "rounds of play, labels and training", "4", "dagger"),
        Option("explore-tasks", "N", "tasks of a round; 0: all", "256", _ROUNDS),
        Option("episodes-per-task", "N", "episodes of a task in a round", "4", "agentevol"),
        Option("episodes-per-task", "N", "episodes of a task in a round", "1", "dagger"),
        Option("temperature", "X", "sampling temperature", "1.0", _ROUNDS),
        Option("num_generations", "N", "episodes of a task: the size of a group", "8"),
        Option("max-turns", "N or N,N,...", "turn limit, or limits that rise in stages"),
        Option("max-turns", "N", "turn limit; by default the environment's", "", _ROUNDS),
        Option("every", "N", "steps of each stage of --max-turns"),
        Option("max_completion_length", "N", "tokens of an episode", "8192"),
        Option("max-tokens", "N", "tokens of an episode", "8192", _ROUNDS),
        Option("max-turn-tokens", "N", "tokens of an answer", "512", "online agentevol dagger"),
        Option("agent", "NAME", "reasoning: act, react, plan, reflect"),
        Option("context", "NAME", "history that the agent sees", "full"),
        Option("attempts", "N", "attempts of --agent reflect, at most", "3"),
        Option("tree", "WxD", "episodes as trees with common beginnings"),
        Option("dynamic-sampling-retries", "N", "new tasks for groups with equal scores", "0"),
        Option("env-concurrency", "N", "episodes at the same time", "1024"),
        Option("explore-batch", "N", "episodes at the same time", "128", _ROUNDS),
        Option("env-retries", "N", "retries of an episode that failed", "2"),
        Option("reuse-kv-cache", "BOOL", "keep keys and values between turns", "True"),
        Option("async", "", "episodes continue while the trainer learns"),
        Option("max-staleness", "N", "--async: versions behind, at most"),
        Option("async-oversample", "N", "--async: further groups in flight"),
    ),
    "algorithm": (
        Option("credit", "NAME", "how turns share an episode's return", "episode"),
        Option("branches", "N", "--credit vine: continuations of a state"),
        Option("at", "WHERE", "--credit vine: the states to fork"),
        Option("turn-level-advantage", "", "compare turns, not whole episodes"),
        Option("step-advantage-weight", "X", "weight of turns from equal states (GiGPO)", "0.0"),
        Option("process-reward", "NAME", "rewards of turns from the oracle"),
        Option("process-reward-weight", "X", "weight of --process-reward", "1.0"),
        Option("oracle-seconds", "X", "time of the oracle in a rollout"),
        Option("oracle-seconds", "X", "time of the oracle in a round", "", "dagger"),
        Option("oracle-share", "P,P,...", "turns of the oracle, by round", "1,0", "dagger"),
        Option("gamma", "X", "discount", "1.0"),
        Option("gae-lambda", "X", "ppo: decay of GAE", "0.95"),
        Option("discount-per", "UNIT", "discount between turns, or per token", "turn"),
        Option("kl-in", "WHERE", "add the KL term to the loss or reward", "loss"),
        Option("kl-clip", "X", "largest KL term of a token"),
        Option("epsilon_high", "X", "upper clip range of the ratio"),
        Option("loss-average", "UNIT", "mean over tokens, turns or episodes"),
        Option("mask-truncated-answers", "", "leave truncated answers out of the loss"),
        Option("bootstrap-truncated-episodes", "BOOL", "ppo: value of the last state", "True"),
        Option("critic-model", "MODEL", "ppo: the critic; else a copy of the policy"),
        Option("critic-learning-rate", "X", "ppo: learning rate of the critic", "1e-05"),
        Option("critic-lr-warmup-steps", "N", "ppo: steps in which it rises", "0"),
        Option("critic-warmup-steps", "N", "ppo: steps in which only the critic learns", "0"),
        Option("critic-clip-range", "X", "ppo: clip range of a value", "0.2"),
        Option("threshold", "X", "score of episodes to keep; else successes", "", "agentevol"),
        Option("max-per-task", "N", "kept episodes of a task, at most", "", "agentevol"),
        Option("keep", "all or last", "train on all rounds, or the last", "all", _ROUNDS),
        Option("start", "base or last", "the model that a round trains", "base", "dagger"),
        Option("stop-on-collapse", "", "stop when the score falls by half"),
        Option("padding-free", "BOOL", "compute the loss without padding", "True"),
    ),
    "model": (
        Option("model", "NAME", "the model: a folder, or a name on the hub", "", _ALL),
        Option("chat-template", "FILE", "another chat template (Jinja)", "", _ALL),
        Option("chat-template-kwargs", "JSON", "variables of the chat template", "", _ALL),
        Option("keep-thoughts", "", "a template that keeps earlier thoughts", "", _ALL),
        Option("reset-adapter-every", "N", "LoRA: steps until the adapter is merged"),
    ),
    "evaluation": (
        Option("eval-every", "N", "steps between evaluations on held-out tasks"),
        Option("eval-tasks", "N", "held-out tasks", "100"),
        Option("eval-tasks", "N", "validation tasks after each round", "0", _ROUNDS),
        Option("eval-split", "NAME", "split of the held-out tasks", "validation"),
        Option("eval-max-turns", "N", "their turn limit; else that of the step"),
        Option("keep-best", "", "keep the best model in OUT/best"),
    ),
    "output": (
        Option("out", "DIR", "folder of the run", "", _ALL),
        Option("resume", "", "continue the run in --out", "", _ALL),
        Option("config", "FILE", "read options from a YAML file", "", _ALL),
        Option("record-tokens", "", "record tokens for agentgym view"),
    ),
}
"""The options of all algorithms by group. Underscores mark those of TRL's that have our own default."""

_USAGE = """usage: agentgym train {name} --env ENV --model MODEL --out DIR ...

{summary}
"""
_END = """
Often used options of TRL: --learning_rate, --max_steps, --num_train_epochs,
--per_device_train_batch_size, --gradient_accumulation_steps, --use_peft.
--help-all lists all of them, with longer texts. Every option takes hyphens or
underscores. Guide: docs/training-one-machine.md
"""


def options_of(algorithm: str) -> dict[str, list[Option]]:
    """The options of an algorithm, by group."""
    kind = "online" if ALGORITHMS[algorithm].is_online else algorithm
    return {group: [row for row in rows if kind in row.algorithms.split()] for group, rows in OPTIONS.items()}


def help_page(algorithm: str) -> str:
    """The page of an algorithm."""
    page = _USAGE.format(name=algorithm, summary=ALGORITHMS[algorithm].summary)
    for group, rows in options_of(algorithm).items():
        if rows:
            page += f"\n{group}\n" + "".join(map(_line, rows))
    return page + _END


def _line(option: Option) -> str:
    left = f"  --{option.name} {option.value}".rstrip()
    default = f" [{option.default}]" if option.default else ""
    return f"{left:<{_WIDTH}} {option.text}{default}\n"
