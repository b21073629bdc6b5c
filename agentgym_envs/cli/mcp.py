"""`agentgym mcp`: the episodes of an environment as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion, serve
from agentgym_envs.cli.common import EnvId, MaxTurns
from agentgym_envs.cli.envs import find_env, parse_env_args
from agentgym_envs.errors import UsageError
from agentgym_envs.mcp import check_packages
from agentgym_envs.registration import default_max_turns

if TYPE_CHECKING:
    from agentgym_envs.mcp.episodes import EpisodeTable

Http = Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp, instead of stdio.")]
PinnedTask = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Evaluate: the server has one episode, of this task; the agent cannot choose or repeat it.",
        autocompletion=completion.tasks,
    ),
]
PinnedSeed = Annotated[int | None, typer.Option(min=0, help="Seed of the episode of --task; default: 0.")]
ShowReward = Annotated[
    bool,
    typer.Option("--show-reward", help="Show the agent reward, score and the reason of the end: for training only."),
]
MaxEpisodes = Annotated[int, typer.Option(min=1, help="Maximum number of open episodes.")]
Out = Annotated[Path | None, typer.Option(help="File to which the trajectories of all episodes are appended (JSONL).")]
McpEnvArgs = Annotated[
    list[str] | None,
    typer.Option("--env-arg", metavar="KEY=VALUE", help="Argument of the environment; the value is JSON or text."),
]


def mcp_command(
    env: EnvId,
    http: Http = False,
    host: serve.Host = "127.0.0.1",
    port: serve.Port = 8000,
    task: PinnedTask = None,
    seed: PinnedSeed = None,
    show_reward: ShowReward = False,
    max_turns: MaxTurns = None,
    max_episodes: MaxEpisodes = 64,
    idle_seconds: serve.IdleSeconds = 900.0,
    workers: serve.Workers = None,
    token: serve.Token = None,
    token_file: serve.TokenFile = None,
    insecure: serve.Insecure = False,
    out: Out = None,
    env_arg: McpEnvArgs = None,
) -> None:
    """Offer episodes to an MCP client as tools: reset, step, and one per command, such as get and craft.

    Without --http, the client starts this command and talks over stdin and stdout. With --task, the server is for the
    evaluation of an agent; --out then has the score, which the agent does not see.
    """
    check_packages()
    serve.load_server()
    if seed is not None and task is None:
        raise UsageError("--seed is the seed of the episode of --task: give both, or none")
    name = env if ":" in env else find_env(env)
    settings: dict[str, Any] = {
        "workers": workers or 1,
        "max_sessions": max_episodes,
        "idle_seconds": idle_seconds,
        "env_args": parse_env_args(env_arg),
    }
    pin = None if task is None else (task, seed or 0)
    with contextlib.ExitStack() as stack:
        episodes = _episodes(stack, name, settings, pin, max_turns, out)
        if http:
            address = serve.listen_address(host, port, token, token_file, insecure)
            _serve_http(episodes, address, show_reward, settings)
        else:
            serve.run(lambda: _serve_stdio(episodes, show_reward), None, "every episode is closed")


def _episodes(
    stack: contextlib.ExitStack,
    name: str,
    settings: dict[str, Any],
    pin: tuple[str, int] | None,
    max_turns: int | None,
    out: Path | None,
) -> EpisodeTable:
    """Make the table of episodes. Raises UsageError, also for a task that does not exist."""
    from agentgym_envs.http.sessions import Sessions
    from agentgym_envs.mcp.episodes import EpisodeTable, PinnedEpisode
    from agentgym_envs.trajectory import TrajectoryWriter

    sessions = Sessions([name], **settings)
    (env_id,) = sessions.classes
    recorder = None if out is None else stack.enter_context(TrajectoryWriter(out))
    pinned = None if pin is None else PinnedEpisode(*pin)
    limit = max_turns or default_max_turns(env_id)
    return EpisodeTable(sessions, env_id, max_turns=limit, pinned=pinned, recorder=recorder)


async def _serve_stdio(episodes: EpisodeTable, show_reward: bool) -> None:
    from agentgym_envs.mcp.http import keep
    from agentgym_envs.mcp.server import make_mcp_server

    async with keep(episodes.sessions):
        await episodes.check()
        description = await episodes.sessions.describe(episodes.env_id)
        server = make_mcp_server(episodes, description["rules"], show_reward=show_reward, explicit_handles=False)
        try:
            await server.run_stdio_async()
        finally:
            episodes.close()


def _serve_http(
    episodes: EpisodeTable, address: serve.ListenAddress, show_reward: bool, settings: dict[str, Any]
) -> None:
    from agentgym_envs.mcp.http import PATH, only_mcp

    asyncio.run(episodes.check())
    shared = {name: settings[name] for name in ("max_sessions", "idle_seconds")}
    serve.run_server(
        [],
        address,
        mounts=[partial(only_mcp, episodes=episodes, show_reward=show_reward)],
        say=lambda url: f"MCP client: {url}{PATH}",
        **shared,
    )
