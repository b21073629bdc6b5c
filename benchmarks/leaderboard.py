"""The leaderboard: rows made from runs of `agentgym eval`, and the tables of docs/leaderboard.md.

    python -m benchmarks.leaderboard add RUN --name "My model" [--link URL]
    python -m benchmarks.leaderboard measure [BOARD ...]

`add` reads the folder of a run whose settings are those of a board, and adds its row to
benchmarks/results/leaderboard.json, or replaces the row of that name. `measure` plays oracle and random. Both write
the page again. To add a board, add an entry to `BOARDS`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from agentgym_envs.cli.run_store import RESULT, read_result
from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate.estimates import Estimate

ROOT = Path(__file__).parents[1]
FILE, PAGE = ROOT / "benchmarks/results/leaderboard.json", ROOT / "docs/leaderboard.md"
_SCHEMA = 1
_BY_POLICY = {"grammar"}
"""Arguments of an environment that belong to the agent, not to the tasks."""


@dataclass(frozen=True, slots=True)
class Board:
    """The settings that all rows of a table share.

    Attributes:
        title: its heading.
        env: the id of the environment.
        max_turns: the turn limit.
        tasks: the number of tasks, chosen by seed 0; None for all of the test split.
        env_args: arguments of the environment.
        groups: the groups of tasks; None for all.
        baselines: the policies that `measure` plays.
    """

    title: str
    env: str
    max_turns: int
    tasks: int | None = None
    env_args: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    baselines: tuple[str, ...] = ("oracle", "random")

    def settings(self) -> dict[str, Any]:
        """The settings that a run must have, as `eval.json` names them."""
        own = {name: getattr(self, name) for name in ("max_turns", "tasks")}
        groups = None if self.groups is None else list(self.groups)
        return {"env": [self.env], **own, "groups": groups, "split": "test", "seed": 0, "episodes_per_task": 1}

    def command(self, policy: str) -> list[str]:
        """The words of the command that plays a row."""
        words = ["agentgym", "eval", self.env, "--policy", policy, "--split", "test"]
        words += ["--tasks", str(self.tasks)] if self.tasks else []
        words += ["--groups", ",".join(self.groups)] if self.groups else []
        words += ["--max-turns", str(self.max_turns)]
        return words + [word for item in self.env_args.items() for word in ("--env-arg", "=".join(map(str, item)))]


BOARDS = {
    "textcraft": Board("TextCraft", "AgentGym/TextCraft-v0", 30),
    "textcraft-invented": Board(
        "TextCraft, worlds with invented items",
        "AgentGym/TextCraft-v0",
        6,
        200,
        {"worlds": "invented", "max_distractors": 0, "instructions": ""},
        ("depth-1",),
    ),
    "babyai": Board("BabyAI", "AgentGym/BabyAI-v0", 30, 200),
    "sciworld": Board("SciWorld", "AgentGym/SciWorld-v0", 100, 20),
    "search": Board("Search", "AgentGym/Search-v0", 10, 200),
    "webarena": Board("WebArena", "AgentGym/WebArena-v0", 30, 20),
}


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one policy on a board.

    `digest` is that of the task table, `settings` are those of the policy, `versions` those of the packages.
    """

    board: str
    name: str
    policy: str
    link: str | None
    digest: str
    tasks: int
    episodes: int
    excluded: int
    success: Estimate
    score: Estimate
    turns: float
    invalid_actions: float
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read a row and check it. Raises UsageError."""
        names = {one.name for one in fields(cls)}
        if wrong := sorted(names ^ set(found)):
            raise UsageError(f"a row of the leaderboard has the fields {sorted(names)}; missing or unknown: {wrong}")
        try:
            estimates = {name: Estimate(**found[name]) for name in ("success", "score")}
        except TypeError as error:
            raise UsageError(f"success and score have mean, low and high: {error}") from None
        row = cls(**{**found, **estimates})
        _check(row)
        return row


def _check(row: Row) -> None:
    """Check the values of a row. Raises UsageError."""
    wrong = {
        "board": row.board not in BOARDS,
        "name": not row.name.strip() or "|" in row.name or "\n" in row.name,
        "link": row.link is not None and not re.match(r"https?://\S+$", row.link),
        "digest": not re.fullmatch(r"[0-9a-f]{64}", row.digest),
        "tasks": not 0 < row.tasks <= row.episodes,
        "success": not 0 <= row.success.low <= row.success.mean <= row.success.high <= 1,
        "score": not 0 <= row.score.low <= row.score.mean <= row.score.high <= 1,
        "turns": not 0 < row.turns <= BOARDS[row.board].max_turns if row.board in BOARDS else False,
        "invalid_actions": not 0 <= row.invalid_actions <= 1,
        "versions": "agentgym-envs" not in row.versions,
    }
    for name, failed in wrong.items():
        if failed:
            raise UsageError(
                f"the row {row.name!r} of the leaderboard has an impossible {name}: {getattr(row, name)!r}"
            )


def read_rows(path: Path = FILE) -> list[Row]:
    """Read and check the rows of the leaderboard. Raises UsageError."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("schema") != _SCHEMA:
        raise UsageError(f"{path} has schema {found.get('schema')!r}; this version reads {_SCHEMA}")
    rows = [Row.from_json(row) for row in found["rows"]]
    _check_tasks(rows)
    return rows


def _check_tasks(rows: Sequence[Row]) -> None:
    """Raise UsageError unless all rows of a board were played on the same tasks."""
    for board in BOARDS:
        if len({row.digest for row in rows if row.board == board}) > 1:
            raise UsageError(f"the rows of {board} were played on different tasks; measure them again")


def write_rows(rows: Sequence[Row], path: Path = FILE) -> None:
    """Write the rows, sorted by board and success. Raises UsageError before anything is written."""
    _check_tasks(rows)
    order = [*BOARDS]
    ordered = sorted(rows, key=lambda row: (order.index(row.board), -row.success.mean, -row.score.mean, row.name))
    found = {"schema": _SCHEMA, "rows": [asdict(row) for row in ordered]}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def row_of_run(run: Path, name: str, link: str | None = None) -> Row:
    """Make a row from the folder of a run. Raises UsageError if it is not a complete run of a board."""
    try:
        result = read_result(run / RESULT)
        settings, metrics = result["settings"], result["metrics"]["overall"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{run} holds no finished run of `agentgym eval --out`: {error!r}") from None
    board = _board_of(settings)
    if not result["complete"] or not metrics["episodes"]:
        raise UsageError(f"the run in {run} is not complete; continue it with --resume")
    taken = {one: metrics[one] for one in ("tasks", "episodes", "excluded", "success", "score", "turns")}
    taken |= {"invalid_actions": metrics["invalid_actions"], "versions": result["versions"]}
    (digest,) = settings["task_digests"].values()
    own = ("agent", "temperature", "max_tokens", "max_turn_tokens")
    shown = {one: settings[one] for one in own if settings.get(one) is not None}
    return Row.from_json(
        {"board": board, "name": name, "policy": settings["policy"], "link": link, "digest": digest, **taken}
        | {"settings": shown}
    )


def _board_of(settings: Mapping[str, Any]) -> str:
    """The board with the settings of a run. Raises UsageError with the differences to the nearest one."""
    differences = {name: _differences(board, settings) for name, board in BOARDS.items()}
    name = min(differences, key=lambda one: len(differences[one]))
    if differences[name]:
        command = " ".join(BOARDS[name].command("POLICY"))
        raise UsageError(
            f"no board has the settings of this run. Nearest is {name}: {'; '.join(differences[name])}. Run: {command}"
        )
    return name


def _differences(board: Board, settings: Mapping[str, Any]) -> list[str]:
    given = {name: value for name, value in settings["env_args"].items() if name not in _BY_POLICY}
    wanted = {**board.settings(), "env_args": dict(board.env_args)}
    found = {**settings, "env_args": given}
    return [
        f"{name} is {found.get(name)!r}, not {value!r}" for name, value in wanted.items() if found.get(name) != value
    ]


def add(row: Row, path: Path = FILE) -> None:
    """Add a row, or replace the one of the same name. Raises UsageError if the board's rows have other tasks."""
    rows = read_rows(path) if path.exists() else []
    write_rows([one for one in rows if (one.board, one.name) != (row.board, row.name)] + [row], path)


def start_again(board: str, baselines: Sequence[Row], path: Path = FILE) -> None:
    """Replace the baselines of a board, and remove its rows that were played on other tasks."""
    names, digests = {row.name for row in baselines}, {row.digest for row in baselines}
    others = [row for row in read_rows(path) if row.board != board or (row.name not in names and row.digest in digests)]
    write_rows([*others, *baselines], path)


def measure(names: Sequence[str]) -> None:
    """Play the baselines of boards, and start the boards whose tasks have changed again."""
    for name in names:
        start_again(name, [_baseline(name, policy) for policy in BOARDS[name].baselines])


def _baseline(board: str, policy: str) -> Row:
    from agentgym_envs.cli.app import main as agentgym

    with tempfile.TemporaryDirectory() as folder:
        words = [*BOARDS[board].command(policy)[1:], "--out", folder]
        if agentgym(words):
            raise SystemExit(f"agentgym {' '.join(words)} failed")
        return row_of_run(Path(folder), policy)


def tables(rows: Sequence[Row]) -> str:
    """The boards in Markdown, each with its command, tasks and rows."""
    return "\n\n".join(_board_text(name, [row for row in rows if row.board == name]) for name in BOARDS)


def _board_text(name: str, rows: Sequence[Row]) -> str:
    board = BOARDS[name]
    about = f"{rows[0].tasks} tasks of the test split, at most {board.max_turns} turns" if rows else "no rows yet"
    digest = f"; digest `{rows[0].digest[:12]}`" if rows else ""
    command = " ".join([*board.command("POLICY"), "--out", "runs/row"])
    head = ["| policy | success [95 %] | score [95 %] | turns | invalid | version |", "|---|--:|--:|--:|--:|--:|"]
    table = [*head, *map(_row_text, rows)] if rows else []
    return "\n".join(
        [f"### {board.title}", "", f"`{board.env}`: {about}{digest}.", "", *table, "", f"```bash\n{command}\n```"]
    )


def _row_text(row: Row) -> str:
    name = f"[{row.name}]({row.link})" if row.link else row.name
    cells = [name, _percent(row.success), _percent(row.score), f"{row.turns:.1f}", f"{100 * row.invalid_actions:.0f} %"]
    return f"| {' | '.join([*cells, row.versions['agentgym-envs']])} |"


def _percent(estimate: Estimate) -> str:
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def write_page() -> None:
    """Write the tables into docs/leaderboard.md."""
    spec = importlib.util.spec_from_file_location("sections", ROOT / "scripts/site/sections.py")
    assert spec is not None and spec.loader is not None
    sections = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sections)
    PAGE.write_text(sections.fill_in(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="add the row of a run")
    adding.add_argument("run", type=Path, help="the folder that eval --out wrote")
    adding.add_argument("--name", required=True, help="the name to show")
    adding.add_argument("--link", help="an address with more about the policy")
    commands.add_parser("measure", help="play the baselines").add_argument("boards", nargs="*", choices=[*BOARDS, []])
    given = parser.parse_args()
    try:
        if given.command == "add":
            add(row_of_run(given.run, given.name, given.link))
        else:
            measure(given.boards or [*BOARDS])
    except UsageError as error:
        raise SystemExit(f"leaderboard: {error}") from None
    write_page()


if __name__ == "__main__":
    main()
