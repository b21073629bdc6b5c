"""The steps of `scripts/check` after the installation: format, lint, language, types, tests."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
USAGE = """usage: scripts/check            format, lint, language, types and tests; one slice of each long sweep (as CI)
       scripts/check fast       without the tests marked slow or train
       scripts/check all        with every slice of every sweep, new random examples, and an audit of the day's tasks
       scripts/check PATH...    files or folders: their format, lint and language, and their types and tests"""
THREE = ("-n", "3")
"""Workers of the full run: in a third of their time, tests wait for a browser, a server or another process."""
MODES = {
    "": [*THREE],
    "fast": ["-m", "not slow and not train"],
    "all": [*THREE, "--hypothesis-profile", "random"],
}
PYTEST = ("pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--progress")
TESTS_OF = {
    "agentgym_envs/mcp": "tests/doors",
    "agentgym_envs/inspect_tasks": "tests/doors",
    "agentgym_envs": "tests",
    "adapters/verifiers": "tests/doors",
    "adapters": "tests/adapters",
    "benchmarks": "tests/benchmarks",
    "examples": "tests/examples",
    "scripts": "tests/scripts",
    "docs": "tests/docs",
    "README.md": "tests/docs",
    "CHANGELOG.md": "tests/test_release.py",
    "CITATION.cff": "tests/test_release.py",
    "pyproject.toml": "tests/test_release.py",
    ".github": "tests/test_release.py",
}
"""The folder of the tests of each part of the repository; a package's tests are in the folder of its name."""
TYPED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
"""The files and folders whose types mypy checks."""


class Step(NamedTuple):
    """A Python module or file to run from the root of the repository, with its arguments."""

    title: str
    command: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The command line."""
        return [sys.executable, *([] if self.command[0].endswith(".py") else ["-m"]), *self.command]

    def run(self) -> bool:
        """True if it succeeds."""
        began = time.monotonic()
        print(f"== {self.title}: {' '.join(self.command)}", flush=True)
        code = _run(self.words)
        print(f"   {self.title}: {'ok' if code == 0 else 'FAILED'} after {time.monotonic() - began:.0f} s", flush=True)
        return code == 0


def _run(command: list[str]) -> int:
    """Return the exit code of a command. After Ctrl-C, which the command gets as well, wait for its output."""
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


def steps(arguments: list[str]) -> list[Step]:
    """The steps that a command line asks for."""
    mode = "".join(arguments)
    if len(arguments) < 2 and mode in MODES:
        return [*_steps(["."], ["."], [], MODES[mode]), *(_audit() if mode == "all" else ())]
    paths = [known_path(path) for path in arguments]
    if Path() in paths:  # the root: everything
        return _steps(["."], ["."], [], [])
    tests = sorted({test for path in paths for test in tests_of(path)})
    python = [str(path) for path in paths if (ROOT / path).is_dir() or path.suffix == ".py"]
    prose = [str(path) for path in paths if str(path) in python or path.suffix == ".md"]
    types = outermost({*tests, *(typed for path in paths for typed in _typed(path))})
    return _steps(python, prose, types, tests)


def _audit() -> list[Step]:
    """The attack on every environment. The day selects the tasks, and the printed command repeats it."""
    return [Step("audit", ("benchmarks.audit", "--budget", "60", "--seed", str(int(time.time() // 86_400))))]


def _steps(files: list[str], prose: list[str], types: list[str], tests: list[str]) -> list[Step]:
    style = [Step("format", ("ruff", "format", "--check", *files)), Step("lint", ("ruff", "check", *files))]
    language = Step("language", ("scripts/language.py", *prose))
    return [
        *(style if files else []),
        *([language] if prose else []),
        Step("types", ("mypy", *types)),
        Step("tests", (*PYTEST, *tests)),
    ]


def known_path(given: str) -> Path:
    """A path of the command line, from the root of the repository."""
    path = Path(given).resolve()
    if path.exists() and path.is_relative_to(ROOT):
        return path.relative_to(ROOT)
    raise SystemExit(f"scripts/check: there is no file or folder {given!r} in this repository\n\n{USAGE}")


def _typed(path: Path) -> list[str]:
    """The paths to give mypy for one path: its folder, a script, or the checked parts inside a folder."""
    folder = path if (ROOT / path).is_dir() else path.parent
    if any(folder.is_relative_to(typed) for typed in TYPED):
        return [str(folder)]
    return [typed for typed in TYPED if Path(typed).is_relative_to(path)]


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that are not inside another one, since mypy refuses a file and its folder at once."""
    every = {Path(path) for path in paths}
    return sorted(str(path) for path in every if not every & set(path.parents))


def tests_of(path: Path) -> list[str]:
    """The test files or folders of a path; for a module, the tests of its package that import it."""
    if path.parts[:1] == ("tests",):
        home, found = path.parent, [path] if (ROOT / path).is_dir() or path.name.startswith("test_") else []
    else:
        home, found = _home(path), []
    if path.suffix == ".py":
        found = found or [test for test in _test_files(home) if module_name(path) in imported(ROOT / test)]
    return [str(test) for test in found or [home]]


def _home(path: Path) -> Path:
    """The folder, or file, with the tests of a path."""
    for part, tests in TESTS_OF.items():
        if path.is_relative_to(part):
            inner = Path(tests, *path.relative_to(part).parts[:1])
            return inner if (ROOT / inner).is_dir() else Path(tests)
    raise SystemExit(f"scripts/check: no tests belong to {path}; `scripts/check fast` runs some of everything")


def _test_files(home: Path) -> list[Path]:
    """The test files of a package; for the whole suite, those at the top."""
    pattern = "test_*.py" if home == Path("tests") else "**/test_*.py"
    return sorted(file.relative_to(ROOT) for file in (ROOT / home).glob(pattern))


def module_name(path: Path) -> str:
    """The dotted name by which tests import a file."""
    parts = path.parts[2:] if path.parts[0] == "adapters" else path.parts
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__")


@cache
def imported(file: Path) -> set[str]:
    """The modules that a file imports, and the names from them."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def marker_path(root: Path) -> Path:
    """The record of the last check of everything, in git's own folder."""
    return root / git(root, "rev-parse", "--git-path", "agentgym-check.json")


def git(root: Path, *words: str) -> str:
    """The output of a git command, stripped. Raises CalledProcessError."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def _record(mode: str, failed: list[str]) -> None:
    """Record a check of everything for `scripts/release`; of a changed tree, no tree is recorded.

    Where git or its folder cannot be used, as in an unpacked archive, nothing is recorded.
    """
    with suppress(OSError, subprocess.CalledProcessError):
        tree = None if git(ROOT, "status", "--porcelain") else git(ROOT, "rev-parse", "HEAD^{tree}")
        marker_path(ROOT).write_text(
            json.dumps({"tree": tree, "mode": mode, "failed": failed}) + "\n", encoding="utf-8"
        )


def main(arguments: list[str]) -> int:
    """Run every step, also after a failure. Returns the number of failed steps."""
    if arguments == ["all"]:
        os.environ["AGENTGYM_SLICE"] = "all"
    failed = [step for step in steps(arguments) if not step.run()]
    if arguments in ([], ["all"]):
        _record("".join(arguments), [step.title for step in failed])
    if [step.title for step in failed] not in ([], ["tests"]):  # the tests say themselves what to run again
        print("Failed:", *(f"  {' '.join(step.words)}" for step in failed), sep="\n")
    return len(failed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
