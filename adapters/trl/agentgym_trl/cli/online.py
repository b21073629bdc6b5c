"""The online algorithms of `agentgym train`: one trainer, which differs by its advantage estimator only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentgym_envs.cli.common import note
from agentgym_envs.cli.evaluating.turn_limits import oracle_notes
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import Agent
from agentgym_envs.rollout.mixture import DrawnTask, MixtureEnv, draw_mixture
from agentgym_envs.schedule import match_schedules, parse_schedules
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.environments import environments, makers
from agentgym_trl.config import AgentConfig, default_schedule
from agentgym_trl.error_messages import as_usage_errors

_EVAL_SEED = 20_000
_LAST_STEP = 10**9


def train_online(algorithm: str, argv: Sequence[str]) -> int:
    """Train by reinforcement learning on episodes. Returns the exit code."""
    env_args, args, model_args = parse(AgentConfig, argv, fixed={"algorithm": algorithm})
    if args.eval_strategy != "no":
        raise UsageError("--eval_strategy is TRL's evaluation of a data set; use --eval-every N, on held-out tasks")
    return _train(algorithm, env_args, args, model_args)


def _train(algorithm: str, env_args: EnvArguments, args: AgentConfig, model_args: Any) -> int:
    """Run with parsed options; the trainer and its libraries are imported only now."""
    from trl import get_peft_config

    from agentgym_trl.cli.runs import model_name, run, run_settings
    from agentgym_trl.dataset import as_dataset
    from agentgym_trl.models import load_tokenizer, make_codec, read_template
    from agentgym_trl.trainer import AgentTrainer

    found = [_for_agent(environment, args.agent_options) for environment in environments(env_args)]
    default = default_schedule([environment.id for environment in found])
    given, args.max_turns = args.max_turns is not None, args.max_turns or default
    codec = make_codec(
        load_tokenizer(model_args.model_name_or_path),
        template=read_template(args.chat_template),
        template_kwargs=args.chat_template_kwargs,
        keep_thoughts=args.keep_thoughts,
    )
    drawn = _tasks(found, env_args, args)
    if args.process_index == 0:
        _show_limits(found, drawn, args, given)
    dataset = as_dataset(drawn)
    _check_enough(dataset, args)
    team = {} if args.train_agents is None else {"train_agents": args.train_agents, "partner": args.partner}
    agent = {} if args.agent is None else {"agent": args.agent, "context": args.context, "attempts": args.attempts}
    settings = run_settings(args, algorithm, env_args, model_args, **team, **agent)
    with as_usage_errors():
        trainer = AgentTrainer(
            model_name(model_args, args),
            makers(found),
            args=args,
            processing_class=codec.tokenizer,
            train_dataset=dataset,
            eval_dataset=_held_out(found, env_args, args) if args.eval_every is not None else None,
            peft_config=get_peft_config(model_args),
        )
    return run(trainer, settings, resume=env_args.resume)


def _for_agent(environment: MixtureEnv, agent: Agent | None) -> MixtureEnv:
    """The environment with the grammar of the agent, unless the caller has chosen another."""
    if agent is None:
        return environment
    return replace(environment, kwargs={"grammar": agent.grammar, **environment.kwargs})


def _show_limits(found: list[MixtureEnv], drawn: Sequence[DrawnTask], args: AgentConfig, given: bool) -> None:
    """Print the default limit, and the environments in which the oracle needs more turns than the last limit."""
    if not given:
        note(f"at most {args.max_turns} turns per episode, by default; --max-turns changes it")
        return
    schedules = match_schedules(
        parse_schedules(str(args.max_turns), args.every), short_names([environment.id for environment in found])
    )
    for environment in found:
        schedule = schedules if callable(schedules) else schedules[environment.id]
        env = text_env(environment.make())
        tasks = [row.task for row in drawn if row.env == environment.id]
        for text in oracle_notes(environment.id, env.tasks, tasks, schedule(_LAST_STEP)):
            note(text)
        env.close()


def _tasks(found: list[MixtureEnv], env_args: EnvArguments, args: AgentConfig) -> list[DrawnTask]:
    """The tasks of all environments."""
    return draw_mixture(
        found,
        env_args.tasks,
        enough=_enough(args),
        split=env_args.split,
        groups=env_args.groups,
        seed=args.seed,
    )


def _held_out(found: list[MixtureEnv], env_args: EnvArguments, args: AgentConfig) -> Any:
    """The held-out tasks; the same in every evaluation, and in runs that differ by their seed only."""
    if args.eval_split == env_args.split:
        raise UsageError(f"--eval-split {args.eval_split} is the split that is trained on; held-out tasks need another")
    from agentgym_trl.dataset import as_dataset

    tasks = draw_mixture(
        found, args.eval_tasks, enough=args.eval_tasks, split=args.eval_split, groups=env_args.groups, seed=_EVAL_SEED
    )
    return as_dataset(tasks)


def _enough(args: AgentConfig) -> int:
    """The number of tasks to draw from an unlimited set, so that the run plays each of them once."""
    steps = args.max_steps if args.max_steps > 0 else 1000
    return max(1, steps * int(args.generation_batch_size) // int(args.num_generations or 1))


def _check_enough(dataset: Any, args: AgentConfig) -> None:
    """Raise UsageError if the tasks do not fill one batch: TRL drops the incomplete batch and trains for no step."""
    needed = int(args.generation_batch_size) // int(args.num_generations or 1)
    if len(dataset) < needed:
        raise UsageError(
            f"a rollout plays {needed} groups of {args.num_generations}, and there are only {len(dataset)} tasks; "
            f"--tasks {needed} repeats them with new seeds"
        )
