"""verl's trainer as a process of its own."""

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
    """A command as one would type it."""
    return " \\\n  ".join([shlex.join(command[:3]), *(shlex.quote(word) for word in command[3:])])


def launch(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code; 130 if it was told to stop by Ctrl-C.

    It gets a process group of its own and the signals that this process gets, once each, so that a terminal's Ctrl-C,
    its end, and a scheduler's SIGTERM do the same. What this process was told to ignore (nohup), it ignores.
    """
    told: list[int] = []
    with _signals(told) as listeners:  # from before there is a process, so that none is left behind
        process = subprocess.Popen(command, env=dict(environ), stdin=subprocess.DEVNULL, process_group=0)
        for number in told:
            process.send_signal(number)
        listeners.append(process.send_signal)
        code = process.wait()
    if signal.SIGINT in told:
        return _INTERRUPTED
    return code if code >= 0 else 128 - code


@contextmanager
def _signals(told: list[int]) -> Iterator[list[Callable[[int], None]]]:
    """Notes the signals that would end this process, and tells them to whom is in the list that it gives."""
    listeners: list[Callable[[int], None]] = []

    def hear(number: int, frame: Any) -> None:
        told.append(number)
        for listener in listeners:
            listener(number)

    heeded = [number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hear) for number in heeded}
    try:
        yield listeners
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
