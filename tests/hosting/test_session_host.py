"""The environments of a process by session."""

from __future__ import annotations

import pytest

from agentgym_envs.errors import EnvError
from agentgym_envs.hosting.session_host import SessionHost
from tests.toy_envs import HERE


def test_a_failed_environment_is_replaced_once() -> None:
    host = SessionHost()
    host.open("s", f"{HERE}Toy/Tricky-v0", {})

    def serial() -> str:
        host.call("s", "reset", {"seed": 0, "options": None})
        return str(host.call("s", "step", {"action": "who"})["observation"])

    first = serial()
    assert serial() == first
    with pytest.raises(EnvError):
        host.call("s", "step", {"action": "raise"})
    second = serial()
    assert serial() == second != first
    host.close_all()
