"""`RecordedTokens`: the tokens of recorded episodes, also of agents whose contexts do not follow from the messages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, TokenTrajectory, encode_trajectory
from agentgym_envs.rollout.token_file import TokenFile, TokenRecord
from agentgym_envs.rollout.tokens import join_contexts
from agentgym_envs.trajectory import Trajectory, line_mark


class RecordedTokens:
    """Returns the tokens of trajectories that were read from files.

    Most trajectories are the conversation that the model read, and are encoded. An agent that plans, drops or
    summarises turns, or makes several attempts read other messages. Its tokens come from the token file.
    """

    def __init__(self, paths: Iterable[str | Path], codec: ChatCodec) -> None:
        """`paths` are the files of the trajectories; their token files may be missing."""
        self._files, self._codec = [TokenFile(path) for path in paths], codec

    def __call__(self, trajectory: Trajectory) -> TokenTrajectory:
        """The tokens of a trajectory.

        Raises:
            UsageError: an agent's tokens were not recorded, or with another tokenizer.
        """
        if not _rewritten(trajectory):
            return encode_trajectory(trajectory, self._codec)
        mark = line_mark(trajectory.to_json().encode("utf-8", "surrogatepass"))
        for file in self._files:
            if records := file.read(mark):
                return join_contexts([self._context(record, trajectory, file.path) for record in records])
        agent = trajectory.meta["agent"]
        raise UsageError(
            f"the agent {agent['name']} with the context {agent['context']} read other messages than the trajectory of "
            f"task {trajectory.task.id} has, and its tokens were not recorded; play with eval --tokens, or train with "
            "--record-tokens true, and keep NAME.tokens.jsonl next to NAME.jsonl"
        )

    def _context(self, record: TokenRecord, trajectory: Trajectory, path: Path) -> TokenTrajectory:
        if self._codec.pieces([*record.prompt_ids, *record.ids]) != [*record.prompt_pieces, *record.pieces]:
            raise UsageError(f"the tokens in {path} are of another tokenizer than the model's; play with this model")
        spans, rewards = tuple(record.turn_spans), list(record.rewards)
        return TokenTrajectory(trajectory, record.prompt_ids, record.ids, record.mask, rewards, spans)


def _rewritten(trajectory: Trajectory) -> bool:
    """True if an agent may have read other messages than `trajectory.messages()`."""
    agent = trajectory.meta.get("agent") or {}
    return agent.get("context", "full") != "full" or agent.get("plan") is not None or agent.get("attempts", 1) > 1
