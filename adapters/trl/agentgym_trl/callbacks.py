"""Callbacks of a training run: a progress line, a metrics file, and a clean stop on Ctrl-C."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from safetensors import SafetensorError
from transformers import PrinterCallback, TrainerCallback

from agentgym_trl.attention import without_cudnn_attention
from agentgym_trl.distributed import anywhere

_SHOWN = (
    ("success", "rollout/success", "{:.0%}"),
    ("turns", "rollout/turns", "{:.1f}"),
    ("limit", "rollout/max_turns", "{:.0f}"),
    ("loss", "loss", "{:.3f}"),
)
_SECONDS_BETWEEN_LINES = 10.0


class ProgressLine(TrainerCallback):  # type: ignore[misc]
    """One live line with the step and its metrics; plain lines if the console is not a terminal."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        """`title` is the text before the bar."""
        self._title, self._console = title, console or Console(stderr=True)
        self._progress: Progress | None = None
        self._quiet_until = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Show the bar, in the main process only."""
        if not state.is_world_process_zero:
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(16),  # narrow enough for a terminal of 80 columns
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[facts]}"),
        )
        self._progress = self._make_progress(columns)
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=state.max_steps, completed=state.global_step, facts="")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Show the metrics of the last step."""
        facts = [f"{name} {form.format(float(logs[key]))}" for name, key, form in _SHOWN if logs and key in logs]
        if self._progress and facts:
            self._progress.update(self._task, facts="  ".join(facts))
            self._log(f"{self._title} {state.global_step}/{state.max_steps}  {'  '.join(facts)}")

    def _make_progress(self, columns: Sequence[ProgressColumn]) -> Progress:
        """The live display."""
        return Progress(*columns, console=self._console)

    def _log(self, line: str) -> None:
        """Print a line from time to time where a live bar cannot be shown, such as in a log file."""
        if not self._console.is_terminal and time.monotonic() >= self._quiet_until:
            self._console.print(line, highlight=False, soft_wrap=True)
            self._quiet_until = time.monotonic() + _SECONDS_BETWEEN_LINES

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Update the bar."""
        if self._progress:
            self._progress.update(self._task, completed=state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop the bar and leave it on the screen."""
        self.stop()

    def stop(self) -> None:
        """Stop the live display, also after an error."""
        if self._progress:
            self._progress.stop()
        self._progress = None


class MetricsFile(TrainerCallback):  # type: ignore[misc]
    """Appends the log to a JSONL file, one line per step; a resumed run drops lines after its checkpoint."""

    def __init__(self, path: str | Path) -> None:
        """`path` is created when training begins."""
        self._path = Path(path)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Keep the lines up to the step at which training begins."""
        if not state.is_world_process_zero:
            return
        kept = [line for line in read_metrics(self._path) if line["step"] <= state.global_step]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(text, encoding="utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Append one line."""
        if not state.is_world_process_zero:
            return
        row = {"step": state.global_step, **{key: _number(value) for key, value in (logs or {}).items()}}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a metrics file, without an incomplete last one; empty if there is no file."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


_STOPS = (signal.SIGINT, signal.SIGTERM)


class StopOnInterrupt(TrainerCallback):  # type: ignore[misc]
    """Stops training after the current step, with a checkpoint, on the first Ctrl-C; the second stops it at once.

    SIGTERM counts as a first Ctrl-C, any number of times: schedulers send it to every process before they take a
    machine away, and launchers forward it. They limit the time that is left: torch's launcher waits 30 seconds.
    Signals reach the processes of a run at different times, so all processes stop once any of them got one. `stopping`
    is true once they agreed to stop.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Replaces the handlers of both signals during training."""
        self.stopping = False
        self._received, self._is_main = False, True
        self._console = console or Console(stderr=True)
        self._before: dict[signal.Signals, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Install the signal handlers."""
        self._is_main = state.is_world_process_zero
        self._before = {number: signal.signal(number, self._on_signal) for number in _STOPS}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save and stop, if any process got a signal."""
        self._agree()
        if self.stopping:
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Restore the handlers."""
        self._agree()
        self.restore()

    def restore(self) -> None:
        """Restore the previous handlers, also after an error."""
        for number, handler in self._before.items():
            if handler is not None:  # None: not installed from Python, and cannot be restored
                signal.signal(number, handler)
        self._before = {}

    def _agree(self) -> None:
        self.stopping = self.stopping or anywhere(self._received)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._received:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self._received = True
        if self._is_main:
            self._console.print("[yellow]Stopping after this step, with a checkpoint. Ctrl-C again stops at once.[/]")


def run_training(
    trainer: Any,
    title: str,
    *,
    console: Console | None = None,
    checkpoint: str | None = None,
    progress: ProgressLine | None = None,
) -> bool:
    """Train with a progress line, a metrics file and a clean stop, and save the model to the output directory.

    `checkpoint` is the checkpoint to resume from; `progress` replaces the progress line. Returns False if training was
    interrupted.
    """
    console = console or Console(stderr=True)
    progress, stop = progress or ProgressLine(title, console), StopOnInterrupt(console)
    trainer.remove_callback(PrinterCallback)
    for callback in (progress, stop, MetricsFile(Path(trainer.args.output_dir) / "metrics.jsonl")):
        trainer.add_callback(callback)
    try:
        with _disk_errors(), without_cudnn_attention():
            trainer.train(resume_from_checkpoint=checkpoint)
            trainer.save_model(trainer.args.output_dir)
    finally:
        progress.stop()
        stop.restore()
    return not stop.stopping


_TORCH_WRITES = ("PytorchStreamWriter", "inline_container")


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Convert the errors that safetensors and torch raise when a file cannot be written to `OSError`."""
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None and not any(part in str(error) for part in _TORCH_WRITES):
            raise
        code = int(number[1]) if number else errno.ENOSPC
        raise OSError(code, f"a checkpoint could not be written: {os.strerror(code)}") from error


def _number(value: Any) -> Any:
    """Convert text to a number: TRL logs some numbers as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
