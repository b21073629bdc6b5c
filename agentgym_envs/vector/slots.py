"""`Slot`: the state of one environment in a vector environment."""

from __future__ import annotations

from typing import Literal

from agentgym_envs.hosting.connection import Request
from agentgym_envs.hosting.remote_env import StepResult
from agentgym_envs.vector.runner import EnvRunner, Result

State = Literal["none", "running", "over", "stuck"]


class Slot:
    """The state of one environment in a vector environment.

    Attributes:
        state: "none" before the first reset, "running" in an episode, "over" after its end, and "stuck" after a reset
            that failed. The failure is then the result of the next step, since Gymnasium cannot truncate a reset.
        request: the running request.
        number: the number of that request; a result of an earlier one, which was given up, is dropped.
        deadline: the time when the running request is given up.
        result: the result that is ready.
        final: the last step of the previous episode, while the next episode begins in the same step.
        stuck_result: the failure of a stuck slot.
        observation: the last observation returned.
    """

    __slots__ = (
        "deadline",
        "final",
        "inline",
        "number",
        "observation",
        "request",
        "result",
        "runner",
        "state",
        "stuck_result",
    )

    def __init__(self, runner: EnvRunner) -> None:
        self.runner, self.inline = runner, runner.inline
        self.state: State = "none"
        self.request: Request | None = None
        self.number = 0
        self.deadline: float | None = None
        self.result: StepResult | None = None
        self.final: StepResult | None = None
        self.stuck_result: StepResult | None = None
        self.observation = ""

    def accept(self, result: Result, same_step: bool) -> bool:
        """Store the result of a request. Returns whether the next episode must begin in the same step."""
        if len(result) == 5:
            if result[2] or result[3]:
                self.state = "over"
                if same_step:
                    self.final = result
                    return True
            self.result = result
            return False
        observation, info = result
        final, self.final = self.final, None
        if info["stop_reason"] is None:
            self.state = "running"
        else:
            self.state, self.stuck_result = "stuck", (observation, 0.0, False, True, {**info, "invalid_action": None})
        if final is None:
            self.result = (observation, 0.0, False, False, info)
        else:
            ended = {"final_obs": final[0], "final_info": final[4]}
            self.result = (observation, final[1], final[2], final[3], {**ended, **info})
        return False

    def pop_result(self) -> StepResult:
        """Remove the result that is ready and return it."""
        result, self.result = self.result, None
        assert result is not None
        self.observation = result[0]
        return result
