"""`agentgym verl train`: a run of stock verl, checked before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_envs.cli.common import names_of
from agentgym_envs.rollout import AGENTS
from agentgym_verl.cli import options as opt
from agentgym_verl.cli.runs import OUT, TaskSelection, VerlRun
from agentgym_verl.settings import BACKENDS

Algorithm = Annotated[
    str, typer.Argument(metavar="ALGORITHM", help="grpo, rloo, reinforce++, reinforce++-baseline or ppo.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Other settings of verl's configuration, in Hydra's grammar."),
]
Model = Annotated[str, typer.Option(metavar="PATH", help="The model: a folder, or a name on the hub.")]
Out = Annotated[Path, typer.Option(OUT, metavar="DIR", help="Run folder: data, checkpoints, trajectories, metrics.")]
Scenario = Annotated[
    str | None,
    typer.Option(help="The paper's settings for textcraft, babyai, sciworld, search or webarena."),
]
Horizon = Annotated[str | None, typer.Option(help="With --scenario: scaling (a turn-limit curriculum) or fixed.")]
Envs = Annotated[
    list[str] | None, typer.Option("--env", metavar="ENV[:WEIGHT]", help="An environment to play (repeatable).")
]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder written by `agentgym verl data`, instead of --env.")
]
MaxTurns = Annotated[str | None, typer.Option(help="Max turns: 30, or a turn-limit curriculum as in 10,20,30.")]
Every = Annotated[int | None, typer.Option(min=1, help="Training steps that each number of --max-turns lasts.")]
EvalMaxTurns = Annotated[int | None, typer.Option(min=1, help="Max turns in validation; by default that of the step.")]
AgentName = Annotated[str | None, typer.Option("--agent", help=f"How the model reasons: {', '.join(AGENTS)}.")]
Context = Annotated[str | None, typer.Option(help="What an --agent sees: full, last:K turns, or summarise:K.")]
Attempts = Annotated[int | None, typer.Option(min=1, help="--agent reflect: largest number of attempts at a task (3).")]
ChatTemplate = Annotated[Path | None, typer.Option(metavar="FILE", help="File with a Jinja chat template.")]
KeepThoughts = Annotated[
    bool, typer.Option("--keep-thoughts", help="Refuse a template that drops the thoughts of earlier answers.")
]
LossAverage = Annotated[str | None, typer.Option(help="Unit of the loss's mean: token, or episode (the default).")]
Backend = Annotated[str | None, typer.Option(help=f"Processes that run the environments: {', '.join(BACKENDS)}.")]
Hardware = Annotated[str, typer.Option(help="gpu1, gpu8, or nodes (several machines with 8 GPUs).")]
Engine = Annotated[str, typer.Option(help="Inference engine: vllm or sglang.")]
Mode = Annotated[str, typer.Option(help="sync, colocate_async or separate_async; see docs/training-cluster.md.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, print command and configuration, exit.")]


def train_command(
    algorithm: Algorithm,
    model: Model,
    out: Out,
    more: Overrides = None,
    scenario: Scenario = None,
    horizon: Horizon = None,
    env: Envs = None,
    env_kwargs: opt.EnvKwargs = None,
    tools: opt.Tools = False,
    data: Data = None,
    split: opt.Split = "train",
    eval_split: opt.EvalSplit = None,
    tasks: opt.Tasks = None,
    eval_tasks: opt.EvalTasks = None,
    groups: opt.Groups = None,
    seed: opt.Seed = 0,
    max_turns: MaxTurns = None,
    every: Every = None,
    eval_max_turns: EvalMaxTurns = None,
    agent: AgentName = None,
    context: Context = None,
    attempts: Attempts = None,
    chat_template: ChatTemplate = None,
    keep_thoughts: KeepThoughts = False,
    loss_average: LossAverage = None,
    backend: Backend = None,
    hardware: Hardware = "gpu1",
    engine: Engine = "vllm",
    mode: Mode = "sync",
    resume: Resume = False,
    dry_run: DryRun = False,
) -> int:
    """Train a model with verl's own `main_ppo`: GRPO, RLOO, REINFORCE++ or PPO over whole episodes.

    agentgym verl train grpo --scenario textcraft --model Qwen/Qwen2.5-7B-Instruct --hardware gpu8 --out runs/craft

    Everything is checked before verl starts. To continue a stopped run, add --resume to the same command.
    """
    selection = TaskSelection(
        env, env_kwargs, tools, data, split, eval_split, tasks, eval_tasks, names_of(groups), seed
    )
    config_groups = {"hardware": hardware, "engine": engine, "mode": mode, "scenario": scenario, "horizon": horizon}
    settings = {"max_turns": max_turns, "every": every, "eval_max_turns": eval_max_turns, "backend": backend}
    settings |= {"agent": agent, "context": context, "attempts": attempts, "keep_thoughts": keep_thoughts or None}
    more_settings = opt.verl_settings(loss_average, chat_template)
    words = tuple(more or ())
    run = VerlRun(algorithm, model, out.absolute(), selection, config_groups, settings, more_settings, words, resume)
    return run.show() if dry_run else run.start()
