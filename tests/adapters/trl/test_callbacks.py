"""The progress of a training run without a terminal, and its stop by signals."""

import io
import signal
from types import SimpleNamespace

import pytest

pytest.importorskip("agentgym_trl")

from rich.console import Console

from agentgym_trl import callbacks
from agentgym_trl.callbacks import ProgressLine, StopOnInterrupt


def lines_of(steps: int) -> list[str]:
    out = io.StringIO()
    line = ProgressLine("grpo", Console(file=out, force_terminal=False, width=80))
    state = SimpleNamespace(is_world_process_zero=True, max_steps=3, global_step=0)
    line.on_train_begin(None, state, None)
    for state.global_step in range(1, steps + 1):
        line.on_log(None, state, None, {"rollout/success": 0.25, "loss": 0.5})
        line.on_step_end(None, state, None)
    line.stop()
    return out.getvalue().splitlines()


def test_a_log_file_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "_SECONDS_BETWEEN_LINES", 0.0)
    assert lines_of(2)[:2] == ["grpo 1/3  success 25%  loss 0.500", "grpo 2/3  success 25%  loss 0.500"]


def test_repeated_sigterms_stop_training_once() -> None:
    state = SimpleNamespace(is_world_process_zero=True)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    stop = StopOnInterrupt(Console(file=io.StringIO()))
    stop.on_train_begin(None, state, None)
    try:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        stop.on_step_end(None, state, control)
        assert control.should_save and control.should_training_stop
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        stop.restore()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_log_file_gets_lines_at_intervals() -> None:
    assert sum(line.startswith("grpo 1/3 ") or line.startswith("grpo 2/3 ") for line in lines_of(2)) == 1
