"""An agent that sees only the last turns of its episode: how should its contexts be trained on?

    python -m benchmarks.contexts [--work DIR] [--out benchmarks/results/contexts.json] [--seeds 121 122 123]
    python -m benchmarks.contexts --tasks long --work runs/contexts-long [--out benchmarks/results/contexts-long.json]

The policy is that of the quick start. With `--tasks short`, so is the task; `--tasks long` has longer episodes
(`Long`). Every arm has a warm start on the same demonstrations, in the contexts that its agent sees, and then the same
number of steps and episodes of GRPO:

- "full": the agent sees the whole episode, one context per episode.
- "every context": it sees the first observation and the last two turns (`--agent act --context last:2`), and all
  contexts of an episode are trained on, as the trainer does. Of a long episode it sees three of up to 14 turns.
- "last context": the same agent, and only the last context of an episode is trained on. So do trainers whose rows hold
  one context.
- "N random contexts": the same agent, and N contexts of each episode are trained on, drawn at random; they have about
  as many tokens as the whole episode (long tasks only).
- "full, then limited": trained as "full", evaluated with the memory of the other two.
- "NAME, F x steps": an arm with F times the steps, so that its trained tokens are about those of "every context".

The other arms sample equal numbers of tokens, up to the lengths of their answers. The tokens that a run samples and the
tokens of the contexts that it trains on are in the result, as are the mean tokens of an evaluated episode and of the
largest context in it. A run takes one process, one thread and one to fifteen minutes of CPU time. Finished runs in
`--work` are read; several processes share them.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from agentgym_trl.demo.settings import DemoSettings, HeldOut
from benchmarks.algorithms import figures_of, success
from benchmarks.seed_runs import differences, options_parser, run_all, with_interval
from benchmarks.study.recipes import RECIPES

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")


@dataclass(frozen=True, slots=True)
class Long(DemoSettings):
    """Goals of five or seven crafts, one after another: six or eight turns, within a limit of fourteen.

    The teacher wastes half of its turns. After two of these, the limited agent does not see what it has crafted. The
    settings were chosen on other seeds. With 250 limited steps in place of 500, one of three warm starts of the limited
    agent solved 2 % of the tasks, and did not learn from there.
    """

    recipes: str = str(RECIPES)
    depths: tuple[str, ...] = ("depth-5", "depth-7")
    waste_rate: float = 0.5
    teacher_turns: int = 40
    demonstrations: int = 300
    warm_steps: int = 700
    limited_steps: int = 500
    """Steps of imitation in limited contexts, after those in full contexts."""
    steps: int = 30
    tasks_per_step: int = 8
    micro_batch: int = 64
    max_turns: str = "14"
    max_tokens: int = 512
    eval_turns: int = 14
    eval_tasks: int = 160

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The table with longer chains."""
        return {"recipe_table": self.recipes, "groups": self.groups, "max_distractors": 0, "instructions": ""}

    @property
    def held_out(self) -> tuple[HeldOut, ...]:
        """New prompts."""
        return (HeldOut("known goals, new prompts", "train", self.eval_tasks),)


class Arm(NamedTuple):
    """The training of an arm."""

    context: str
    """The context of its agent."""
    rows: str = "every"
    """The contexts of an episode that it trains on: "every", the "last", or "random:N"."""
    longer: float = 1.0
    """Its steps, in multiples of those of the setting."""


class Study(NamedTuple):
    """The tasks of a study and what depends on them."""

    memory: str
    """The context of the limited agent."""
    equal: dict[str, float]
    """Arms with as many trained tokens as "every context", as multiples of their steps; chosen on pilot seeds."""
    seeds: tuple[int, ...]
    random: int = 0
    """Random contexts per episode with as many tokens as the whole episode; 0 for no such arm."""
    make_settings: type[DemoSettings] = DemoSettings

    def arms(self) -> dict[str, Arm]:
        """The arms by name."""
        found = {
            "full": Arm("full"),
            "every context": Arm(self.memory),
            "last context": Arm(self.memory, rows="last"),
        }
        if self.random:
            found[f"{self.random} random contexts"] = Arm(self.memory, rows=f"random:{self.random}")
        return found | {f"{name}, {x} x steps": found[name]._replace(longer=x) for name, x in self.equal.items()}


STUDIES = {
    "short": Study("last:2", {"full": 2.6, "last context": 2.6}, (121, 122, 123)),
    "long": Study("last:2", {"full": 4.1, "last context": 7.2}, (151, 152, 153, 154, 155), 2, Long),
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


def warm_start(study: Study, work: Path, seed: int, context: str) -> None:
    """Imitate demonstrations in the contexts of an agent."""
    from agentgym_trl.demo import stages
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    settings, out = study.make_settings(seed=seed), folder(work, seed, f"start {context}")
    trajectories = stages.make_demonstrations(out, settings)
    shown = [exchange.message for record in conversations(trajectories, study.memory) for exchange in record.exchanges]
    texts = [text for t in trajectories for turn in t.turns for text in (turn.observation, turn.action)]
    words = [*environment_corpus(stages.make_env(settings)), *texts, *shown]
    options: dict[str, Any] = {"closed": settings.closed_vocabulary, "embedding_std": settings.embedding_std}
    options |= {"hidden_size": settings.hidden_size, "layers": settings.layers, "heads": settings.heads}
    save_tiny_model(out / "tiny", words, seed=seed, **options)
    records = conversations(trajectories, context)
    steps, begin = None, out / "tiny"
    if isinstance(settings, Long) and context != "full":  # from scratch, it would take most of the CPU time
        steps, begin = settings.limited_steps, folder(work, seed, "start full") / "warm"
    args = stages.sft_config(out / "warm", settings, steps=steps)
    args.per_device_train_batch_size = settings.warm_batch * len(records) // len(trajectories)  # as many epochs
    stages.imitate(begin, out / "warm", records, args, Console(quiet=True), "warm start")


def folder(work: Path, seed: int, name: str) -> Path:
    """The folder of an arm or a warm start."""
    return work / f"seed-{seed}" / name.replace(" ", "-").replace(":", "-")


def reinforce(study: Study, work: Path, seed: int, name: str) -> dict[str, Any]:
    """Train an arm from its warm start; return the tokens that it sampled and trained on, and its curve."""
    from agentgym_trl.demo import stages

    out, settings, arm = folder(work, seed, name), study.make_settings(seed=seed), study.arms()[name]
    settings = replace(settings, steps=round(arm.longer * settings.steps))
    counts: list[tuple[int, int]] = []
    options = {"agent": "act", "context": arm.context, "trainer_class": _trainer_class(arm.rows, counts)}
    start = folder(work, seed, f"start {arm.context}") / "warm"
    stages.reinforce(start, out, settings, Console(quiet=True), name, **options)
    rows = [row for row in stages.training_curve(out) if "rollout/success" in row]
    sampled, trained = (sum(column) for column in zip(*counts, strict=True))
    return {"sampled": sampled, "trained": trained, "curve": [row["rollout/success"] for row in rows]}


def _trainer_class(kept: str, counts: list[tuple[int, int]]) -> Any:
    """The trainer, which counts the sampled tokens and those of the contexts; it may train on some of these only."""
    from agentgym_trl.trainer import AgentTrainer

    class CountingTrainer(AgentTrainer):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            rollout: Any = self.rollout
            make_rows, rng = rollout.rows, Random(self.args.seed)

            def rows(specs: Any, episodes: Any, *rest: Any) -> Any:
                sampled = sum(sum(episode.assistant_mask) for episode in episodes)
                episodes = [chosen(episode, kept, rng) for episode in episodes]
                contexts = [context for episode in episodes for context in episode.contexts()]
                counts.append((sampled, sum(len(c.prompt_ids) + len(c.ids) for c in contexts)))
                return make_rows(specs, episodes, *rest)

            rollout.rows = rows

    return CountingTrainer


def chosen(episode: Any, kept: str, rng: Random) -> Any:
    """The episode with the contexts that are trained on; its record, and so its score, is the same."""
    from agentgym_envs.rollout.tokens import join_contexts

    contexts = episode.contexts()
    if kept == "last":
        return contexts[-1]
    if kept == "every":
        return episode
    number = min(int(kept.removeprefix("random:")), len(contexts))
    return join_contexts([contexts[index] for index in sorted(rng.sample(range(len(contexts)), number))])


def measure(model: Path, context: str, settings: DemoSettings, split: str) -> dict[str, Any]:
    """Play every set of held-out tasks with the memory of an agent."""
    import torch

    from agentgym_envs.evaluate import evaluate
    from agentgym_envs.rollout import Limits, Sampling, make_agent, play_many_as_agent, run_sync
    from agentgym_trl.demo import stages
    from agentgym_trl.models import load_engine

    agent = make_agent("act", context, 1)
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
        metrics = asdict(evaluate([episode.trajectory for episode in played]).overall)
        found[f"{held_out.name}, sampled"] = metrics | context_share(played, codec)
    return found


def context_share(played: Sequence[Any], codec: Any) -> dict[str, float]:
    """Mean tokens of the whole episode as one conversation, and of the largest context that the agent saw."""
    whole = mean(_whole(episode.trajectory, codec) for episode in played)
    largest = mean(max(len(c.prompt_ids) + len(c.ids) for c in episode.contexts()) for episode in played)
    return {"tokens_of_the_episode": whole, "tokens_of_the_largest_context": largest}


def _whole(trajectory: Any, codec: Any) -> int:
    from agentgym_envs.rollout.agents.conversation import Conversation

    turns = trajectory.turns
    answers = [turn.action for turn in turns]
    messages = Conversation("", [turn.observation for turn in turns], answers[:-1]).messages()
    return len(codec.encode_prompt(messages)) + len(codec.encode_answer(answers[-1]))


def run(study: Study, work: Path, seed: int, name: str, split: str) -> None:
    """Do a run, measure, and write the figures down."""
    began, facts, arms = time.process_time(), dict[str, Any](), study.arms()
    settings = study.make_settings(seed=seed)
    if name in arms:
        facts = reinforce(study, work, seed, name)
        results = measure(folder(work, seed, name), arms[name].context, settings, split)
    elif name == TRANSFER:
        results = measure(folder(work, seed, "full"), study.memory, settings, split)
    else:
        context = name.removeprefix("start ")
        warm_start(study, work, seed, context)
        results = measure(folder(work, seed, name) / "warm", context, settings, split)
    figures = {"arm": name, "seed": seed, "cpu_seconds": round(time.process_time() - began, 1), **facts}
    text = json.dumps({**figures, "results": results}, indent=1)
    figures_of(work, name, seed).write_text(text + "\n", encoding="utf-8")


def names(study: Study) -> list[str]:
    """The runs of a seed, in an order in which they can be made."""
    return ["start full", f"start {study.memory}", *study.arms(), TRANSFER]


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Success by arm, its difference from the arm that trains on every context, tokens, and the share in view."""
    label, *_ = next(iter(runs.values()))[0]["results"]
    base = success(runs["every context"], label)
    heads = ("arm", "success, % [95 %]", "less every context, points [95 %]", "sampled", "trained on", "in view, %")
    table = Table(*heads, title=label)
    for name, own in runs.items():
        values = success(own, label)
        cells = [with_interval(values), with_interval(differences(values, base))]
        tokens = [f"{mean(run[key] for run in own):,.0f}" if key in own[0] else "" for key in ("sampled", "trained")]
        table.add_row(name, *cells, *tokens, in_view([run["results"][label] for run in own]))
    Console(width=150).print(table)


def in_view(results: Sequence[dict[str, Any]]) -> str:
    """Tokens of the largest context in per cent of those of the episode, as a cell; empty for runs without them."""
    if "tokens_of_the_episode" not in results[0]:
        return ""
    largest, whole = (
        mean(result[key] for result in results) for key in ("tokens_of_the_largest_context", "tokens_of_the_episode")
    )
    return f"{100 * largest / whole:.0f}"


def main() -> None:
    parser = options_parser(__doc__, [], "runs/contexts")
    parser.add_argument("--tasks", choices=STUDIES, default="short", help="goals of 3 to 4 turns, or of 6 and 8")
    options = parser.parse_args()
    study = STUDIES[options.tasks]
    options.seeds = options.seeds or list(study.seeds)
    one = partial(run, study, options.work)
    run_all(options, names(study), lambda seed, name: one(seed, name, options.split), show)


if __name__ == "__main__":
    main()
