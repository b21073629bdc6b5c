"""An agent that sees only the last turns of its episode: how should its contexts be trained on?

    python -m benchmarks.contexts [--work DIR] [--out benchmarks/results/contexts.json] [--seeds 121 122 123]

The policy and the task are those of the quick start. Every arm has a warm start on the same demonstrations, in the
contexts that its agent sees, and then the same number of steps and episodes of GRPO:

- "full": the agent sees the whole episode, one context per episode.
- "every context": it sees the first observation and the last two turns (`--agent act --context last:2`), and all
  contexts of an episode are trained on, as the trainer does.
- "last context": the same agent, and only the last context of an episode is trained on. So do trainers whose rows hold
  one context.
- "full, then limited": trained as "full", evaluated with the memory of the other two.
- "full, 2.6 x steps" and "last context, 2.6 x steps": those arms with about as many trained tokens as "every context".

The other arms sample equal numbers of tokens, up to the lengths of their answers. The tokens that a run samples and the
tokens of the contexts that it trains on are in the result. A run takes one
process, one thread and about a minute of CPU time. Finished runs in `--work` are read; several processes share them.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.algorithms import figures_of, success
from benchmarks.seed_runs import differences, options_parser, run_all, with_interval

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

MEMORY = "last:2"
LONGER = 2.6
"""Tokens of all contexts of an episode in multiples of those of the whole episode."""


class Arm(NamedTuple):
    """The training of an arm."""

    context: str
    """The context of its agent."""
    last_only: bool = False
    """True if it trains on the last context of an episode alone."""
    longer: float = 1.0
    """Its steps, in multiples of those of the quick start."""


ARMS = {
    "full": Arm("full"),
    "every context": Arm(MEMORY),
    "last context": Arm(MEMORY, last_only=True),
    f"full, {LONGER} x steps": Arm("full", longer=LONGER),
    f"last context, {LONGER} x steps": Arm(MEMORY, last_only=True, longer=LONGER),
}
TRANSFER = "full, then limited"


def conversations(trajectories: Sequence[Any], context: str) -> list[Any]:
    """The demonstrations as an agent sees them: unchanged, or a record for each context of `last:K`."""
    from agentgym_trl.conversations import ConversationRecord

    if context == "full":
        return list(trajectories)
    kept = int(context.rpartition(":")[2])
    usable = [trajectory for trajectory in trajectories if trajectory.usable and trajectory.turns]
    last_turns = [(t, turn) for t in usable for turn in (min(kept, len(t.turns) - 1), *range(kept + 1, len(t.turns)))]
    return [ConversationRecord(t.task.id, _exchanges(t, turn, kept)) for t, turn in last_turns]


def _exchanges(trajectory: Any, turn: int, kept: int) -> tuple[Any, ...]:
    """The context in which a turn is played; earlier answers are trained on only if they belong to the same one."""
    from agentgym_envs.rollout.agents.conversation import Conversation
    from agentgym_trl.conversations import Exchange

    turns = trajectory.turns[: turn + 1]
    conversation = Conversation("", [t.observation for t in turns], [t.action for t in turns[:-1]])
    contents = [message["content"] for message in conversation.messages(max(0, turn - kept))] + [turns[-1].action]
    pairs = list(zip(contents[::2], contents[1::2], strict=True))
    return tuple(
        Exchange(seen, answer, trained=turn <= kept or number == len(pairs))
        for number, (seen, answer) in enumerate(pairs, 1)
    )


def warm_start(work: Path, seed: int, context: str) -> None:
    """Imitate the quick start's demonstrations in the contexts of an agent."""
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    settings, out = DemoSettings(seed=seed), folder(work, seed, f"start {context}")
    trajectories = stages.make_demonstrations(out, settings)
    shown = [exchange.message for record in conversations(trajectories, MEMORY) for exchange in record.exchanges]
    texts = [text for t in trajectories for turn in t.turns for text in (turn.observation, turn.action)]
    words = [*environment_corpus(stages.make_env(settings)), *texts, *shown]
    options: dict[str, Any] = {"closed": settings.closed_vocabulary, "embedding_std": settings.embedding_std}
    options |= {"hidden_size": settings.hidden_size, "layers": settings.layers, "heads": settings.heads}
    save_tiny_model(out / "tiny", words, seed=seed, **options)
    records = conversations(trajectories, context)
    args = stages.sft_config(out / "warm", settings)
    args.per_device_train_batch_size = settings.warm_batch * len(records) // len(trajectories)  # as many epochs
    stages.imitate(out / "tiny", out / "warm", records, args, Console(quiet=True), "warm start")


def folder(work: Path, seed: int, name: str) -> Path:
    """The folder of an arm or a warm start."""
    return work / f"seed-{seed}" / name.replace(" ", "-").replace(":", "-")


def reinforce(work: Path, seed: int, name: str) -> dict[str, Any]:
    """Train an arm from its warm start; return the tokens that it sampled and trained on, and its curve."""
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings

    out, settings, arm = folder(work, seed, name), DemoSettings(seed=seed), ARMS[name]
    settings = replace(settings, steps=round(arm.longer * settings.steps))
    counts: list[tuple[int, int]] = []
    options = {"agent": "act", "context": arm.context, "trainer_class": _trainer_class(arm.last_only, counts)}
    start = folder(work, seed, f"start {arm.context}") / "warm"
    stages.reinforce(start, out, settings, Console(quiet=True), name, **options)
    rows = [row for row in stages.training_curve(out) if "rollout/success" in row]
    sampled, trained = (sum(column) for column in zip(*counts, strict=True))
    return {"sampled": sampled, "trained": trained, "curve": [row["rollout/success"] for row in rows]}


def _trainer_class(last_only: bool, counts: list[tuple[int, int]]) -> Any:
    """The trainer, which counts the sampled tokens and those of the contexts; it may keep only the last context."""
    from agentgym_trl.trainer import AgentTrainer

    class CountingTrainer(AgentTrainer):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            rollout: Any = self.rollout
            make_rows = rollout.rows

            def rows(specs: Any, episodes: Any, *rest: Any) -> Any:
                sampled = sum(sum(episode.assistant_mask) for episode in episodes)
                if last_only:
                    episodes = [episode.contexts()[-1] for episode in episodes]
                contexts = [context for episode in episodes for context in episode.contexts()]
                counts.append((sampled, sum(len(c.prompt_ids) + len(c.ids) for c in contexts)))
                return make_rows(specs, episodes, *rest)

            rollout.rows = rows

    return CountingTrainer


def measure(model: Path, context: str, seed: int, split: str) -> dict[str, Any]:
    """Play every set of held-out tasks with the memory of an agent."""
    import torch

    from agentgym_envs.evaluate import evaluate
    from agentgym_envs.rollout import Limits, Sampling, make_agent, play_many_as_agent, run_sync
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings
    from agentgym_trl.models import load_engine

    settings, agent = DemoSettings(seed=seed), make_agent("act", context, 1)
    (engine, codec), sampling = load_engine(str(model)), Sampling(settings.eval_turn_tokens, 1.0)
    limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
    found = {}
    torch.manual_seed(0)
    for held_out in settings.held_out:
        specs = stages.held_out_specs(settings, held_out, split)
        played = run_sync(
            play_many_as_agent(
                specs,
                stages.make_env(settings),
                agent,
                engine,
                codec,
                limits=limits,
                sampling=sampling,
                concurrency=160,
            )
        )
        found[f"{held_out.name}, sampled"] = asdict(evaluate([episode.trajectory for episode in played]).overall)
    return found


def run(work: Path, seed: int, name: str, split: str) -> None:
    """Do a run, measure, and write the figures down."""
    began, facts = time.process_time(), dict[str, Any]()
    if name in ARMS:
        facts = reinforce(work, seed, name)
        results = measure(folder(work, seed, name), ARMS[name].context, seed, split)
    elif name == TRANSFER:
        results = measure(folder(work, seed, "full"), MEMORY, seed, split)
    else:
        context = name.removeprefix("start ")
        warm_start(work, seed, context)
        results = measure(folder(work, seed, name) / "warm", context, seed, split)
    figures = {"arm": name, "seed": seed, "cpu_seconds": round(time.process_time() - began, 1), **facts}
    text = json.dumps({**figures, "results": results}, indent=1)
    figures_of(work, name, seed).write_text(text + "\n", encoding="utf-8")


def names() -> list[str]:
    """The runs of a seed, in an order in which they can be made."""
    return [*(f"start {context}" for context in dict.fromkeys(arm.context for arm in ARMS.values())), *ARMS, TRANSFER]


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Success by arm, and the difference from the arm that trains on every context."""
    label, *_ = next(iter(runs.values()))[0]["results"]
    base = success(runs["every context"], label)
    table = Table("arm", "success, % [95 %]", "less every context, points [95 %]", "sampled", "trained on", title=label)
    for name, own in runs.items():
        values = success(own, label)
        cells = [with_interval(values), with_interval(differences(values, base))]
        tokens = [f"{mean(run[key] for run in own):,.0f}" if key in own[0] else "" for key in ("sampled", "trained")]
        table.add_row(name, *cells, *tokens)
    Console(width=130).print(table)


def main() -> None:
    options = options_parser(__doc__, [121, 122, 123], "runs/contexts").parse_args()
    run_all(options, names(), lambda seed, name: run(options.work, seed, name, options.split), show)


if __name__ == "__main__":
    main()
