"""Plants bugs in a copy of the tree, one at a time, and reports whether the tests find them.

    python scripts/planted_bugs.py                          all bugs of scripts/planted_bugs.toml
    python scripts/planted_bugs.py --only NAME [NAME ...]   only these

The copy is a git worktree of the last commit with the changes of tracked files. A bug is killed if one of its tests
fails with it and passes without it. Ends with status 1 if a bug is not killed.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUGS = ROOT / "scripts/planted_bugs.toml"
SECONDS = 600.0
"""The time limit of the tests of one bug; a bug that makes them hang is killed."""
PYTEST = ("pytest", "-x", "--tb=no", "-p", "no:cacheprovider")
SETTINGS = {
    "AGENTGYM_SLICE": "0",  # of the rotating tests, so that the next run has the same
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
_HANG = "a time limit"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class PlantedBug(NamedTuple):
    """A mistake: `file` with `new` in place of `old`, and the test files that must find it."""

    name: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The text of the file with the bug. Raises ValueError if `old` does not occur exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {count} times, not once: change the bug {self.name!r}")
        return text.replace(self.old, self.new)


class Verdict(NamedTuple):
    """The result of a bug: "killed", "survived", or "unclear" if the test that fails does so without the bug."""

    result: str
    test: str = ""


def read_bugs(path: Path = BUGS) -> list[PlantedBug]:
    """The bugs of a file, in order."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    return [PlantedBug(name, **{**row, "tests": tuple(row["tests"])}) for name, row in rows.items()]


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of a repository, without its untracked and ignored files."""

    def git(*command: str) -> str:
        run = subprocess.run(["git", *command], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
        return run.stdout.strip()

    with tempfile.TemporaryDirectory(prefix="planted-bugs-") as folder:
        copy = os.path.join(folder, "tree")
        git("worktree", "add", "--quiet", "--detach", copy, git("stash", "create") or "HEAD")
        try:
            yield Path(copy)
        finally:
            git("worktree", "remove", "--force", copy)


def judge(bug: PlantedBug, tree: Path, seconds: float = SECONDS) -> Verdict:
    """Plant a bug in a tree, run its tests, and remove it again."""
    path = tree / bug.file
    text = path.read_text(encoding="utf-8")
    path.write_text(bug.planted(text), encoding="utf-8")
    try:
        failed = failing_test(tree, bug.tests, seconds)
    finally:
        path.write_text(text, encoding="utf-8")
    if failed is None:
        return Verdict("survived")
    without = failing_test(tree, bug.tests if failed == _HANG else [failed], seconds)
    return Verdict("killed" if without is None else "unclear", failed)


def failing_test(tree: Path, tests: Sequence[str], seconds: float) -> str | None:
    """The first test that fails; None if all pass. Raises RuntimeError if they do not run."""
    paths = os.pathsep.join(map(str, [tree, *sorted(tree.glob("adapters/*"))]))
    with subprocess.Popen(
        [sys.executable, "-m", *PYTEST, *tests],
        cwd=tree,
        env={**SETTINGS, **os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # also the processes that the tests started
            if isinstance(error, subprocess.TimeoutExpired):
                return _HANG
            raise
    if process.returncode == 0:
        return None
    found = _FAILED.search(output)
    if process.returncode != 1 or found is None:
        raise RuntimeError(f"the tests {' '.join(tests)} did not run:\n{output[-2000:]}")
    return found[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the bugs that the command line names, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    bugs = {bug.name: bug for bug in read_bugs()}
    parser.add_argument("--only", nargs="+", choices=bugs, metavar="NAME", default=list(bugs))
    chosen = parser.parse_args(arguments).only
    results = []
    with copied(ROOT) as tree:
        for name in chosen:
            began = time.monotonic()
            verdict = judge(bugs[name], tree)
            results.append(verdict.result)
            print(f"{verdict.result:8} {name:24} {time.monotonic() - began:5.1f} s  {verdict.test}", flush=True)
    print(f"{results.count('killed')} of {len(results)} bugs were killed")
    return int(results.count("killed") < len(results))


if __name__ == "__main__":
    sys.exit(main())
