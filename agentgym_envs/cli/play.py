"""`agentgym play`: a task as a game in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agentgym_envs.cli import show
from agentgym_envs.cli.common import (
    Env,
    EnvArgs,
    EnvId,
    Interrupted,
    MaxTurns,
    Seed,
    Split,
    check_writable,
    find_env,
    make_env,
    parse_env_args,
    stdout,
)
from agentgym_envs.cli.solve import Group, TaskId, reset_options
from agentgym_envs.core import Snapshot, StopReason, text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.multiagent.joint import is_team
from agentgym_envs.multiagent.joint_format import read_texts, write_command
from agentgym_envs.registration import entry_point_of
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn
from agentgym_envs.wrappers import make_trajectory

if TYPE_CHECKING:
    from rich.console import Console

Out = Annotated[Path | None, typer.Option(help="Append the games to this file, one trajectory a line.")]

_HELP = """\
[bold]:hint[/]   the next action of the oracle      [bold]:undo[/]   take the last action back
[bold]:solve[/]  let the oracle play to the end     [bold]:look[/]   show the task again
[bold]:map[/]    show the whole state               [bold]:quit[/]   leave (also Ctrl-D)
[bold]:help[/]   the rules, and these commands"""


def play_command(
    env: EnvId,
    task: TaskId = None,
    seed: Seed = 0,
    split: Split = "train",
    group: Group = None,
    max_turns: MaxTurns = 100,
    env_arg: EnvArgs = None,
    out: Out = None,
) -> None:
    """Play a task yourself. Type actions; :hint, :undo, :map, :solve, :help and :quit help along."""
    env_id = find_env(env)
    if out is not None:
        check_writable("--out", out)
    made, console = make_env(env_id, _with_map(env_id, parse_env_args(env_arg))), stdout()
    writer = None if out is None else TrajectoryWriter(out)
    game = (TeamGame if is_team(env_id) else Game)(made, console, env_id, max_turns)
    try:
        with _line_editing(game):
            again = True
            while again:
                game.begin(seed, reset_options(task, split, group))
                again = _play_one(game, writer) and task is None and _wants_another(console)
                seed += 1
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_kept(writer)}") from None
    finally:
        made.close()
        if writer:
            writer.close()


class _Moment(NamedTuple):
    """What `:undo` goes back to."""

    snapshot: Snapshot
    observation: str
    info: dict[str, Any]


class Game:
    """One task being played: reads lines, shows what they do, and remembers the way."""

    def __init__(self, env: Env, console: Console, env_id: str, max_turns: int) -> None:
        """`max_turns` ends a game as a limit ends an episode."""
        self._env, self._base, self._console = env, text_env(env), console
        self._env_id, self._max_turns = env_id, max_turns
        self._commands: dict[str, Callable[[], None]] = {
            ":hint": self._hint,
            ":solve": self._solve,
            ":undo": self._undo,
            ":look": self._look,
            ":map": self._map,
            ":help": self._help,
            ":quit": self._quit,
        }

    def begin(self, seed: int, options: dict[str, Any]) -> None:
        """Start a task and show it."""
        self._observation, self._info = self._env.reset(seed=seed, options=options)
        self._opening = show.readable(self._observation, team="agents" in self._info)
        self._turns: list[Turn] = []
        self._past: list[_Moment] = []
        self._stop: str | None = self._info["stop_reason"]
        self._hints = 0
        self._look()

    @property
    def over(self) -> bool:
        """Whether the game has ended, by itself or by :quit."""
        return self._stop is not None

    @property
    def left(self) -> bool:
        """Whether the player left before the end."""
        return self._stop == StopReason.CLOSED.value

    @property
    def prompt(self) -> str:
        """What stands before the cursor: which turn this is."""
        return f"{self._info['turn'] + 1:>3} ❯ "

    @property
    def words(self) -> list[str]:
        """What Tab completes: the words of the possible actions or else of the task, and the commands of the game."""
        text = " ".join(self._info.get("available_actions", [self._opening, "inventory"]))
        return sorted({*text.replace(",", " ").replace(".", " ").split(), *self._commands})

    def take(self, line: str) -> None:
        """Do what a line says; an unknown :command says which there are."""
        if not line:
            return
        if line.startswith(":"):
            self._commands.get(line.lower(), self._unknown)()
        else:
            self._act(line)

    def end(self) -> Trajectory | None:
        """Say how it went; the record of the game, if a turn was taken."""
        show.closing(self._console, self._info, self._stop)
        if not self._turns:
            return None
        meta = {"policy": "human", "hints": self._hints, "max_turns": self._max_turns}
        stop = self._stop or StopReason.CLOSED.value
        return make_trajectory(
            self._env, tuple(self._turns), self._observation, self._info, stop_reason=stop, meta=meta
        )

    def _act(self, command: str) -> None:
        self._past.append(_Moment(self._base.snapshot(), self._observation, self._info))
        action = self._base.grammar.format(command)
        seen = self._observation
        self._observation, reward, _, _, self._info = self._env.step(action)
        self._turns.append(Turn(seen, action, float(reward), self._info))
        show.reply(self._console, self._observation, self._info, float(reward))
        self._stop = self._info["stop_reason"]
        if self._stop is None and self._info["turn"] >= self._max_turns:
            self._stop = StopReason.TURN_LIMIT.value

    def _hint(self) -> None:
        if plan := self._plan():
            self._hints += 1
            self._console.print("[dim]try[/] ", show.coloured(plan[0]), sep="")

    def _solve(self) -> None:
        for command in self._plan():
            if self.over:
                return
            self._hints += 1
            self._console.print(f"[dim]{self.prompt}[/]", show.coloured(command), sep="")
            self._act(command)

    def _plan(self) -> list[str]:
        try:
            return list(self._base.oracle())
        except NoOracle as error:
            self._say(f"no way is known from here: {error}")
            return []

    def _undo(self) -> None:
        if not self._past:
            self._say("there is nothing to take back")
            return
        snapshot, self._observation, self._info = self._past.pop()
        self._base.restore(snapshot)
        undone = self._turns.pop()
        self._console.print("[dim]took back[/] ", show.coloured(undone.action), sep="")

    def _look(self) -> None:
        assert self._base.task is not None
        note = f"at most {self._max_turns} turns · :hint :undo :map :solve :help :quit"
        show.opening(self._console, self._env_id, self._base.task, self._opening, note)

    def _map(self) -> None:
        from rich.text import Text

        picture = self._env.render()
        if isinstance(picture, str):
            self._console.print(Text(picture), soft_wrap=True)
        else:
            self._say("this environment has no map that is text")

    def _help(self) -> None:
        self._console.print(show.coloured(self._base.rules))
        self._console.print(f"\n{_HELP}")

    def _quit(self) -> None:
        self._stop = StopReason.CLOSED.value

    def _unknown(self) -> None:
        self._say(f"the commands of the game are {' '.join(self._commands)}")

    def _say(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(text, "dim"))


class TeamGame(Game):
    """A game in which the player plays every agent of a team, a line each, in turn."""

    def begin(self, seed: int, options: dict[str, Any]) -> None:
        """Start a task and show it."""
        self._lines: dict[str, str] = {}
        super().begin(seed, options)

    @property
    def prompt(self) -> str:
        """Which turn this is, and whose."""
        return f"{self._info['turn'] + 1:>3} {self._next} ❯ "

    def take(self, line: str) -> None:
        """Keep the line of an agent until all that act have one; a :command forgets those of this turn."""
        if not line or line.startswith(":"):
            self._lines = {} if line else self._lines
            super().take(line)
            return
        self._lines[self._next] = line
        if len(self._lines) == len(self._acting):
            action, self._lines = write_command(self._lines), {}
            super().take(action)

    @property
    def _acting(self) -> list[str]:
        """The agents that act in this turn."""
        seen = [turn.observation for turn in self._turns] + [self._observation]
        return list(next(filter(None, map(read_texts, reversed(seen))), {}))

    @property
    def _next(self) -> str:
        """The first of them that has no line yet."""
        return self._acting[len(self._lines)]


def _with_map(env_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """With the render mode that `:map` needs; what is not of this suite is refused later, and may not know it."""
    return {"render_mode": "ansi", **arguments} if entry_point_of(env_id) else arguments


def _play_one(game: Game, writer: TrajectoryWriter | None) -> bool:
    """Play to the end and record it, also when it is left early. False if the player left."""
    left = True
    try:
        while not game.over:
            game.take(_read_line(game.prompt))
        left = game.left
    except EOFError:
        typer.echo("")
        game.take(":quit")
    finally:
        record = game.end()
        if writer and record:
            writer.write(record)
    return not left


def _read_line(prompt: str) -> str:
    if sys.stdin.isatty():
        return input(f"\001\033[1;36m\002{prompt}\001\033[0m\002").strip()
    line = sys.stdin.readline()  # piped: show what was read, so that the output reads like a game
    if not line:
        raise EOFError
    typer.echo(f"{prompt}{line.strip()}")
    return line.strip()


def _wants_another(console: Console) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("Another one? [Y/n] ").strip().lower() not in ("n", "no", "q", ":quit")
    except EOFError:
        console.print()
        return False


def _kept(writer: TrajectoryWriter | None) -> str:
    if writer is None:
        return "nothing was recorded, as there is no --out FILE"
    return f"the turns that were played are kept in {writer.path}"


@contextmanager
def _line_editing(game: Game) -> Iterator[None]:
    """History and Tab, where Python has readline and a person types."""
    try:
        import readline
    except ImportError:  # Windows
        yield
        return
    if not sys.stdin.isatty():
        yield
        return

    def complete(text: str, number: int) -> str | None:
        found = [word for word in game.words if word.startswith(text)]
        return f"{found[number]} " if number < len(found) else None

    before = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    readline.set_completer_delims(" ,")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before[0])
        readline.set_completer_delims(before[1])
