"""`agentgym solve`: the oracle, step by step."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentgym_envs.cli import completion, show
from agentgym_envs.cli.common import (
    Env,
    EnvArgs,
    EnvId,
    Json,
    Seed,
    Split,
    begin,
    find_env,
    make_env,
    parse_env_args,
    print_json,
    split_of,
    stdout,
)
from agentgym_envs.core import text_env
from agentgym_envs.multiagent.joint import is_team

TaskId = Annotated[
    str | None,
    typer.Option(help="The task; by default one drawn by the seed.", autocompletion=completion.tasks),
]
Group = Annotated[str | None, typer.Option(help="Draw from this group of tasks.", autocompletion=completion.groups)]


def solve_command(
    env: EnvId,
    task: TaskId = None,
    seed: Seed = 0,
    split: Split = "train",
    group: Group = None,
    env_arg: EnvArgs = None,
    as_json: Json = False,
) -> None:
    """Show how the environment's own oracle solves a task."""
    env_id = find_env(env)
    made = make_env(env_id, parse_env_args(env_arg))
    observation = begin(made, seed=seed, options=reset_options(task, split, group))
    solving = text_env(made).task
    assert solving is not None
    commands = list(text_env(made).oracle())
    console = stdout()
    if not as_json:
        opening = show.readable(observation, team=is_team(env_id))
        needed = "1 action" if len(commands) == 1 else f"{len(commands)} actions"
        show.opening(console, env_id, solving, opening, f"the oracle needs {needed}")
    turns, info = _follow(made, commands, None if as_json else console)
    made.close()
    if as_json:
        fields = {"task": solving.id, "goal": solving.goal, "seed": seed, "observation": observation}
        print_json({"env": env_id, **fields, "turns": turns, "score": info["score"], "success": info["success"]})
        return
    show.closing(console, info, info["stop_reason"])


def reset_options(task: str | None, split: str, group: str | None) -> dict[str, Any]:
    """The options of `reset` for what was asked on the command line."""
    if task is not None:
        return {"task": task}
    return {"split": split_of(split), **({} if group is None else {"group": group})}


def _follow(env: Env, commands: list[str], console: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    grammar, turns, info = text_env(env).grammar, [], dict[str, Any]()
    for number, command in enumerate(commands, 1):
        observation, reward, _, _, info = env.step(grammar.format(command))
        turns.append({"command": command, "observation": observation, "reward": float(reward)})
        if console is not None:
            console.print(f"[dim]{number:3}[/] [bold cyan]❯[/] ", show.coloured(command), sep="")
            show.reply(console, observation, info, float(reward))
    return turns, info
