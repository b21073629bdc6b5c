"""Start verl's trainer as a subprocess."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agentgym_verl.cli.overrides import CONFIG_DIR, CONFIG_NAME

_MODULE = "verl.trainer.main_ppo"
_INTERRUPTED = 130
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def command_of(overrides: Sequence[str]) -> list[str]:
    """The command that starts stock verl with these overrides."""
    return [sys.executable, "-m", _MODULE, "--config-path", CONFIG_DIR, "--config-name", CONFIG_NAME, *overrides]


def shown(command: Sequence[str]) -> str:
    """Format a command for a shell."""
    return " \\\n  ".join([shlex.join(command[:3]), *(shlex.quote(word) for word in command[3:])])


def launch(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code; 130 after Ctrl-C.

    The process has its own process group, and each signal to this process is forwarded once. So Ctrl-C, the end of the
    terminal, and a scheduler's SIGTERM have the same effect. Signals that this process ignores (nohup) are ignored.
    """
    received: list[int] = []
    with _forward_signals(received) as listeners:  # before the process starts, so that it never outlives this one
        process = subprocess.Popen(command, env=dict(environ), stdin=subprocess.DEVNULL, process_group=0)
        for number in received:
            process.send_signal(number)
        listeners.append(process.send_signal)
        code = process.wait()
    if signal.SIGINT in received:
        return _INTERRUPTED
    return code if code >= 0 else 128 - code


@contextmanager
def _forward_signals(received: list[int]) -> Iterator[list[Callable[[int], None]]]:
    """Append the signals that would end this process to `received`, and pass them to the yielded listeners."""
    listeners: list[Callable[[int], None]] = []

    def forward(number: int, frame: Any) -> None:
        received.append(number)
        for listener in listeners:
            listener(number)

    handled = [number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in handled}
    try:
        yield listeners
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
