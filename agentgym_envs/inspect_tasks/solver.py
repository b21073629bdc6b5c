"""The solver that plays an episode with a model of Inspect, and what it notes for the scorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolDef, ToolParams
from inspect_ai.util import LimitExceededError, StoreModel, store_as
from pydantic import Field

from agentgym_envs.core import StopReason
from agentgym_envs.grammar import ToolCall, tools_of

if TYPE_CHECKING:
    from agentgym_envs.core import TextEnv
    from agentgym_envs.rollout.policies import Answer
    from agentgym_envs.trajectory import Trajectory

_ONE_CALL = "Only the first call of an answer is carried out."
_LIMITS: Mapping[str, StopReason] = {
    "turn": StopReason.TURN_LIMIT,
    "message": StopReason.TURN_LIMIT,
    "token": StopReason.TOKEN_LIMIT,
}
"""The reasons for the limits of Inspect. Others, such as time and cost, are `closed`."""


class EpisodeState(StoreModel):
    """The episode so far. It is written before each request, where a limit of Inspect may end the sample."""

    score: float = 0.0
    success: bool = False
    stop_reason: str | None = None
    turn: int = 0
    seed: int = 0
    error: str | None = None
    rewards: list[float] = Field(default_factory=list)
    state_key: str | None = None

    def note(self, status: Mapping[str, Any]) -> None:
        """Copy the status of the environment."""
        self.score, self.success = status["score"], status["success"]
        self.turn, self.seed = status["turn"], status["seed"]

    def finish(self, trajectory: Trajectory) -> None:
        """Copy the record of the whole episode."""
        self.score, self.success, self.seed = trajectory.score, trajectory.success, trajectory.seed
        self.stop_reason, self.error, self.turn = trajectory.stop_reason, trajectory.error, len(trajectory.turns)
        self.rewards = [turn.reward for turn in trajectory.turns]
        if trajectory.turns:
            self.state_key = trajectory.turns[-1].info.get("state_key")


@solver
def play_episode(env_id: str, seed: int = 0, max_turns: int = 30, **env_args: Any) -> Solver:
    """Play the episode of the sample's task.

    Args:
        env_id: the environment.
        seed: the seed of every episode; repeated epochs repeat the episode.
        max_turns: the turn limit. Inspect's own limits apply too.
        **env_args: arguments of the environment. A grammar with tools makes the model act by tool calls.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        from contextlib import closing

        from agentgym_envs.core import text_env
        from agentgym_envs.hosting.session_host import make_env
        from agentgym_envs.rollout import EpisodeSpec, Limits
        from agentgym_envs.rollout.play import run_episode
        from agentgym_envs.vector.runner import EnvRunner

        arguments = {"split": state.metadata["split"], **env_args}
        episode = store_as(EpisodeState)
        with closing(EnvRunner(lambda: make_env(env_id, arguments))) as runner:
            player = InspectPlayer(text_env(runner.last_env), state, generate, episode)
            spec = EpisodeSpec(str(state.sample_id), seed)
            try:
                trajectory = await run_episode(runner, player.act, spec, Limits(max_turns))
            except LimitExceededError as limit:
                episode.stop_reason = _LIMITS.get(limit.type, StopReason.CLOSED).value
                raise
            episode.finish(trajectory)
        player.show(trajectory.final_observation)
        player.state.completed = True
        return player.state

    return solve


class InspectPlayer:
    """The model of a sample as the player of an episode."""

    def __init__(self, env: TextEnv, state: TaskState, generate: Generate, episode: EpisodeState) -> None:
        """Begin the conversation with the environment's instructions."""
        self.state = state
        self._env, self._generate, self._episode = env, generate, episode
        self._calls: list[InspectToolCall] = []
        self.state.messages = [ChatMessageSystem(content=env.instructions)] if env.instructions else []
        self.state.tools = [_tool(each["function"]) for each in tools_of(env.grammar)]

    async def act(self, observation: str) -> Answer:
        """Show the observation, and return the model's answer in the environment's grammar."""
        from agentgym_envs.rollout.policies import Answer

        self._episode.note(self._env.status())
        self.show(observation)
        self.state = await self._generate(self.state, tool_calls="none")
        message = self.state.output.message
        self._calls = list(message.tool_calls or ()) if self.state.tools else []
        if not self._calls:
            return Answer(message.text)
        call = self._calls[0]
        return Answer(str(ToolCall(message.text.strip(), call.function, dict(call.arguments))))

    def show(self, observation: str) -> None:
        """Append the observation: as the result of the tool call before it, or as the user's message."""
        shown: list[ChatMessage] = [
            ChatMessageTool(content=text, tool_call_id=call.id, function=call.function)
            for call, text in zip(self._calls, [observation, *[_ONE_CALL] * len(self._calls)], strict=False)
        ]
        self.state.messages += shown or [ChatMessageUser(content=observation)]


def _tool(function: Mapping[str, Any]) -> Any:
    """A tool that Inspect shows to the model. The environment carries out its calls, so Inspect never does."""

    async def execute(**arguments: Any) -> str:
        raise RuntimeError("the environment carries out the calls of this tool")

    parameters = ToolParams.model_validate(function["parameters"])
    made = ToolDef(execute, function["name"], function["description"], parameters, parallel=False)
    return made.as_tool()
