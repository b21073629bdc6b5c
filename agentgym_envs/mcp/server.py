"""The MCP server of an environment: the tools `reset` and `step`, and one tool per command of the scenario."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

import agentgym_envs
from agentgym_envs.command_tools import command_of, tool_grammar
from agentgym_envs.core import StopReason
from agentgym_envs.errors import AgentGymError
from agentgym_envs.grammar import tools_of
from agentgym_envs.mcp.episodes import EpisodeTable, McpEpisode
from agentgym_envs.task import SPLITS

_ANNOTATIONS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "boolean": bool}
_HOW = "Call `reset` first. Then act with the other tools, one call at a time, until `done` is true."
_ENV_FAILED = "The environment failed. This episode is over, and it does not count."
Handle = Annotated[str, Field(description="The episode, as `reset` named it.")]
NewestHandle = Annotated[str | None, Field(description="The episode, as `reset` named it; by default the newest.")]
TaskId = Annotated[str | None, Field(description="The id of a task; by default one is drawn.")]
Seed = Annotated[int | None, Field(ge=0, description="Equal tasks and seeds make equal episodes.")]


class StepResult(BaseModel):
    """The state of an episode after a call."""

    episode: str = Field(description="The handle for the next calls.")
    observation: str = Field(description="What the environment answers.")
    turn: int = Field(description="The number of actions taken.")
    turns_left: int = Field(description="The number of actions that are left.")
    done: bool = Field(description="True after the end of the episode.")


class GradedStepResult(StepResult):
    """The state of an episode with its grade, for training."""

    reward: float = Field(description="The gain of the score by this call.")
    score: float = Field(description="The sum of the rewards, in [0, 1].")
    success: bool
    stop_reason: str | None
    task_id: str
    seed: int


class EnvMCPServer:
    """Makes the `MCPServer` over a table of episodes."""

    def __init__(self, episodes: EpisodeTable, *, show_reward: bool, explicit_handles: bool) -> None:
        """Prepare the tools.

        Args:
            episodes: the environment and its episodes.
            show_reward: put reward, score and the reason of the end into the results.
            explicit_handles: require the handle in every call. Clients that share the server need it; over stdio there
                is one client, whose newest episode is the default.
        """
        self._episodes, self._show_reward = episodes, show_reward
        self._result = GradedStepResult if show_reward else StepResult
        one_episode = episodes.pinned is not None or not explicit_handles
        self._handle = inspect.Parameter(
            "episode",
            inspect.Parameter.KEYWORD_ONLY,
            annotation=NewestHandle if one_episode else Handle,
            default=None if one_episode else inspect.Parameter.empty,
        )

    def make(self, rules: str) -> MCPServer[Any]:
        """Make the server; `rules` describes the world."""
        name = self._episodes.env_id.partition("/")[2] or self._episodes.env_id
        how = f"{rules}\n\n{_HOW}".strip()
        server: MCPServer[Any] = MCPServer(
            name, instructions=how, version=agentgym_envs.__version__, log_level="WARNING"
        )
        for tool, description, run in (self._reset_tool(rules), self._step_tool()):
            server.add_tool(run, tool, description=description, annotations=_ANNOTATIONS)
        grammar = tool_grammar(self._episodes.grammars)
        for tool in [each["function"] for each in tools_of(grammar) if each["function"]["name"] != "act"]:
            run = self._command_tool(tool)
            server.add_tool(run, tool["name"], description=tool["description"], annotations=_ANNOTATIONS)
        if self._episodes.pinned is None:
            server.resource("agentgym://tasks/{split}", mime_type="application/json")(self._tasks)
        server.prompt("play", description="How to play an episode.")(lambda: how)
        return server

    def _reset_tool(self, rules: str) -> tuple[str, str, Callable[..., Any]]:
        async def drawn(task: TaskId = None, seed: Seed = None) -> Any:
            return await self._answer(self._episodes.begin(task, seed))

        async def pinned() -> Any:
            return await self._answer(self._episodes.begin(None, None))

        run = drawn if self._episodes.pinned is None else pinned
        return "reset", f"Begin an episode. {rules}".strip(), self._returning(run)

    def _step_tool(self) -> tuple[str, str, Callable[..., Any]]:
        async def run(*, action: str, episode: str | None = None) -> Any:
            return await self._answer(self._episodes.step(episode, action))

        text = Annotated[str, Field(description="The action, as text.")]
        action = inspect.Parameter("action", inspect.Parameter.KEYWORD_ONLY, annotation=text)
        description = f"Take one action, as text. {self._episodes.grammar.instructions}"
        return "step", description, self._returning(run, action, self._handle)

    def _command_tool(self, tool: Mapping[str, Any]) -> Callable[..., Any]:
        """The function of a tool whose arguments are those of a command."""
        name, schema = tool["name"], tool["parameters"]

        async def run(*, episode: str | None = None, **arguments: Any) -> Any:
            given = {key: value for key, value in arguments.items() if value is not None}
            return await self._answer(self._command(episode, name, given))

        parameters = [_parameter(key, value, key in schema["required"]) for key, value in schema["properties"].items()]
        return self._returning(run, *parameters, self._handle)

    async def _command(self, handle: str | None, name: str, arguments: Mapping[str, Any]) -> McpEpisode:
        command = command_of(tool_grammar(self._episodes.grammars), name, arguments)
        return await self._episodes.step(handle, self._episodes.grammar.format(command))

    def _returning(self, run: Callable[..., Any], *parameters: inspect.Parameter) -> Callable[..., Any]:
        """Give a function the signature from which MCPServer makes the schemas of its arguments and its result."""
        known = parameters or tuple(inspect.signature(run, eval_str=True).parameters.values())
        ordered = sorted(known, key=lambda each: each.default is not inspect.Parameter.empty)
        run.__signature__ = inspect.Signature(ordered, return_annotation=self._result)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in ordered} | {"return": self._result}
        return run

    async def _answer(self, call: Coroutine[Any, Any, McpEpisode]) -> StepResult:
        """Make the result of a call. Errors become ToolError, since MCP hides the text of any other."""
        try:
            episode = await call
        except AgentGymError as error:
            raise ToolError(str(error)) from None
        if episode.info["stop_reason"] == StopReason.ENV_ERROR:
            raise ToolError(_ENV_FAILED)
        info, last = episode.info, episode.last
        plain: dict[str, Any] = {
            "episode": episode.handle,
            "observation": last["observation"],
            "turn": info["turn"],
            "turns_left": self._episodes.max_turns - info["turn"],
            "done": episode.done,
        }
        if not self._show_reward:
            return StepResult(**plain)
        graded = {key: info[key] for key in ("score", "success", "stop_reason", "task_id", "seed")}
        return GradedStepResult(**plain, reward=last["reward"], **graded)

    async def _tasks(self, split: str) -> list[dict[str, str]]:
        """The ids, groups and goals of the tasks of a split."""
        if split not in SPLITS:
            raise ValueError(f"the splits are {', '.join(SPLITS)}")
        return await self._episodes.tasks(split)


def make_mcp_server(
    episodes: EpisodeTable, rules: str, *, show_reward: bool = False, explicit_handles: bool = True
) -> MCPServer[Any]:
    """Make the MCP server of an environment; see `EnvMCPServer`."""
    return EnvMCPServer(episodes, show_reward=show_reward, explicit_handles=explicit_handles).make(rules)


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> inspect.Parameter:
    """The parameter of a function for a property of a JSON schema."""
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _TYPES[schema["type"]]
    described = Field(description=schema["description"], ge=schema.get("minimum"))
    default = inspect.Parameter.empty if required else None
    annotation: Any = Annotated[kind if required else kind | None, described]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
