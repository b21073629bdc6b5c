"""`agentgym solve`: the oracle's solution, step by step."""

from __future__ import annotations

import random
from typing import Annotated, Any

import typer

from agentgym_envs.cli import completion, show
from agentgym_envs.cli.common import EnvArgs, EnvId, Groups, Json, Seed, Split, names_of, print_json, split_of, stdout
from agentgym_envs.cli.envs import Env, begin, find_env, make_env, parse_env_args
from agentgym_envs.core import text_env
from agentgym_envs.image_observations import text_of
from agentgym_envs.multiagent.joint import is_team

TaskId = Annotated[
    str | None,
    typer.Option(help="Id of the task; default: a task drawn by the seed.", autocompletion=completion.tasks),
]


def solve_command(
    env: EnvId,
    task: TaskId = None,
    seed: Seed = 0,
    split: Split = "train",
    groups: Groups = None,
    env_arg: EnvArgs = None,
    as_json: Json = False,
) -> None:
    """Show how the environment's oracle solves a task."""
    env_id = find_env(env)
    made = make_env(env_id, parse_env_args(env_arg))
    observation = begin(made, seed=seed, options=reset_options(task, split, groups, seed))
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


def reset_options(task: str | None, split: str, groups: str | None, seed: int) -> dict[str, Any]:
    """Options of `reset` for --task, --split and --groups. `seed` chooses one of several groups."""
    if task is not None:
        return {"task": task}
    names = names_of(groups)
    return {"split": split_of(split), **({"group": random.Random(seed).choice(names)} if names else {})}


def _follow(env: Env, commands: list[str], console: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    grammar, turns, info = text_env(env).grammar, [], dict[str, Any]()
    for number, command in enumerate(commands, 1):
        observation, reward, _, _, info = env.step(grammar.format(command))
        turns.append({"command": command, "observation": text_of(observation), "reward": float(reward)})
        if console is not None:
            console.print(f"[dim]{number:3}[/] [bold cyan]❯[/] ", show.coloured(command), sep="")
            show.reply(console, text_of(observation), info, float(reward))
    return turns, info
