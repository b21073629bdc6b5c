"""vLLM's sleep mode: awake for a whole rollout. vLLM itself needs a GPU; this is TRL's protocol with it."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from trl.generation.vllm_generation import VLLMGeneration

from agentgym_trl.sleep_mode import awake


class Colocated:
    """The calls that TRL's generation makes to vLLM, as in trl 1.16."""

    def __init__(self) -> None:
        self.enable_sleep_mode, self._llm_weights_sleeping = True, True
        self.calls: list[str] = []
        self.llm = SimpleNamespace(
            wake_up=lambda tags: self.calls.append(f"wake {tags[0]}"),
            sleep=lambda level: self.calls.append(f"sleep {level}"),
        )

    def sync_weights(self) -> None:
        if self.enable_sleep_mode:
            self.llm.wake_up(tags=["weights"])
            self._llm_weights_sleeping = False
        self.calls.append("sync")

    def generate(self) -> None:
        if self.enable_sleep_mode and self._llm_weights_sleeping:
            self.sync_weights()
        if self.enable_sleep_mode:
            self.llm.wake_up(tags=["kv_cache"])
        self.calls.append("generate")
        if self.enable_sleep_mode:
            self.llm.sleep(level=2)
            self._llm_weights_sleeping = True


def trainer_of(engine: Colocated, mode: str = "colocate") -> Any:
    return SimpleNamespace(use_vllm=True, vllm_generation=engine, args=SimpleNamespace(vllm_mode=mode))


def test_a_rollout_of_three_turns_wakes_once() -> None:
    engine = Colocated()
    for _ in range(2):
        with awake(trainer_of(engine)):
            for _ in range(3):
                engine.generate()
    rollout = ["wake weights", "sync", "wake kv_cache", "generate", "generate", "generate", "sleep 2"]
    assert engine.calls == 2 * rollout and engine.enable_sleep_mode and engine._llm_weights_sleeping


def test_weights_that_trl_has_just_sent_are_not_sent_again() -> None:
    engine = Colocated()
    engine.sync_weights()
    with awake(trainer_of(engine)):
        engine.generate()
    assert engine.calls == ["wake weights", "sync", "wake kv_cache", "generate", "sleep 2"]


def test_vllm_sleeps_after_an_error() -> None:
    engine = Colocated()
    with pytest.raises(ValueError, match="broken"), awake(trainer_of(engine)):
        raise ValueError("broken")
    assert engine.calls[-1] == "sleep 2" and engine.enable_sleep_mode


def test_other_engines_are_left_alone() -> None:
    engine = Colocated()
    with awake(trainer_of(engine, "server")), awake(SimpleNamespace(use_vllm=False)):
        pass
    engine.enable_sleep_mode = False
    with awake(trainer_of(engine)):
        pass
    assert engine.calls == []


def test_trl_still_has_this_protocol() -> None:
    generate, sync = (inspect.getsource(getattr(VLLMGeneration, name)) for name in ("generate", "sync_weights"))
    use = "sleep_mode.awake sets these attributes around a rollout"
    assert 'self.mode == "colocate" and self.enable_sleep_mode and self._llm_weights_sleeping' in generate, use
    assert 'if self.enable_sleep_mode:\n                self.llm.wake_up(tags=["kv_cache"])' in generate, use
    assert "if self.enable_sleep_mode:\n                self.llm.sleep(level=2)" in generate, use
    assert 'self.llm.wake_up(tags=["weights"])\n            self._llm_weights_sleeping = False' in sync, use
