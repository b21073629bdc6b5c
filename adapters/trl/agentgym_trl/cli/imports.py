"""Import the libraries of a training command without what they import only because it is installed."""

from __future__ import annotations

import functools
import gc
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

HELP_ALL = "--help-all"
_UNUSED = ("sklearn", "scipy", "trio")
"""Transformers imports the first two for assisted generation and object detection; httpcore supports the third."""
_LOGGERS = ("wandb", "mlflow", "trackio")
"""Stay hidden until the process ends."""
_FOR_TRAINING = ("peft", "datasets")


@contextmanager
def only_needed(argv: Sequence[str]) -> Iterator[None]:
    """Hide packages that `agentgym train ARGV` does not use, if it is the command of this process.

    Libraries remember that a package is missing. A program that calls the command as a function may need the package
    later, so nothing is hidden there.
    """
    alone = sys.argv[1:] == ["train", *argv]
    hidden = [name for name in _unused(argv) if name not in sys.modules] if alone else []
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: the import fails
    scan, collecting = metadata.packages_distributions, gc.isenabled()
    metadata.packages_distributions = functools.cache(scan)  # transformers and TRL both read all installed packages
    gc.disable()  # imports leave little garbage, and the searches for it take a tenth of their time
    try:
        yield
    finally:
        if alone:
            gc.freeze()  # later searches for garbage skip the modules
        if collecting:
            gc.enable()
        metadata.packages_distributions = scan
        for name in set(hidden) - set(_LOGGERS):  # TRL asks again later whether a logger is there, and then uses it
            sys.modules.pop(name, None)


def asks_for_help(argv: Sequence[str]) -> bool:
    """True if the command prints all options, also those of TRL, and ends."""
    return HELP_ALL in argv


def _unused(argv: Sequence[str]) -> tuple[str, ...]:
    if asks_for_help(argv):
        return (*_UNUSED, *_LOGGERS, *_FOR_TRAINING)
    return _UNUSED if _may_report(argv) else (*_UNUSED, *_LOGGERS)


def _may_report(argv: Sequence[str]) -> bool:
    """True if the command line, or a file that it names, mentions the option `report_to`."""
    files = (_read(word.rpartition("=")[2]) for word in argv)
    return any(re.search("report[_-]to", text) for text in (*argv, *files))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""
