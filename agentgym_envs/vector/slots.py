"""One place of a vector environment: its runner, what was asked of it, and what is there to be handed over."""

from __future__ import annotations

from typing import Any, Literal

from agentgym_envs.hosting.remote_env import Request
from agentgym_envs.vector.runner import EnvRunner, Result

Row = tuple[str, float, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated, info."""
State = Literal["none", "running", "over", "stuck"]


class Slot:
    """The state of one environment in a vector environment.

    `state` is "none" before the first reset, "running" in an episode, "over" after its end, and "stuck" if a reset
    failed: the failure is then handed over as the next step, for a reset cannot be truncated.
    """

    __slots__ = ("ask", "deadline", "final", "inline", "number", "observation", "row", "runner", "state", "stuck_row")

    def __init__(self, runner: EnvRunner) -> None:
        self.runner, self.inline = runner, runner.inline
        self.state: State = "none"
        self.ask: Request | None = None  # what is under way
        self.number = 0  # of that call: an answer to an earlier one, which was given up, is not for us
        self.deadline: float | None = None
        self.row: Row | None = None  # what is ready
        self.final: Row | None = None  # how the last episode ended, while the next one begins in the same step
        self.stuck_row: Row | None = None
        self.observation = ""

    def take(self, result: Result, same_step: bool) -> bool:
        """Take what a call returned; whether the next episode must begin in the same step."""
        if len(result) == 5:
            if result[2] or result[3]:
                self.state = "over"
                if same_step:
                    self.final = result
                    return True
            self.row = result
            return False
        observation, info = result
        final, self.final = self.final, None
        if info["stop_reason"] is None:
            self.state = "running"
        else:
            self.state, self.stuck_row = "stuck", (observation, 0.0, False, True, {**info, "invalid_action": None})
        if final is None:
            self.row = (observation, 0.0, False, False, info)
        else:
            ended = {"final_obs": final[0], "final_info": final[4]}
            self.row = (observation, final[1], final[2], final[3], {**ended, **info})
        return False

    def deliver(self) -> Row:
        """What is ready."""
        row, self.row = self.row, None
        assert row is not None
        self.observation = row[0]
        return row
