"""`agentgym` in a process forked from one that has imported TRL, which takes ten seconds of CPU."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_PRELOAD = ["agentgym_trl.cli.online", "agentgym_trl.trainer"]


class Forked:
    """A running command, with the part of `subprocess.Popen` that these tests use."""

    def __init__(self, code: str, words: Sequence[str], environ: Mapping[str, str], err: Path) -> None:
        """Run `code`, the text of a program, with `words` as its arguments; its stderr goes to `err`."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOAD)
        self._err, arguments = err, (code, list(words), dict(environ), str(err))
        self._process: ForkServerProcess = context.Process(target=_run, args=arguments, daemon=True)
        with _environment(environ):
            self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"it had not ended after {timeout} s"
        return None, self._err.read_text()


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """The environment of the first process, which imports by PYTHONPATH and from which the others are forked."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(code: str, words: list[str], environ: dict[str, str], err: str) -> None:
    os.environ.update(environ)
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = ["agentgym", *words]
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
