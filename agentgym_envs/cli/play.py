"""`agentgym play`: play a task in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agentgym_envs.cli import show
from agentgym_envs.cli.common import (
    EnvArgs,
    EnvId,
    Groups,
    LenientMaxTurns,
    Seed,
    Split,
    check_writable,
    lenient_max_turns,
    stdout,
)
from agentgym_envs.cli.envs import Env, find_env, make_env, parse_env_args
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.cli.solve import TaskId, reset_options
from agentgym_envs.command_tools import command_forms
from agentgym_envs.core import Snapshot, StopReason, text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.image_observations import text_of
from agentgym_envs.multiagent.joint import is_team
from agentgym_envs.multiagent.joint_format import read_texts, write_command
from agentgym_envs.registration import entry_point_of
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn
from agentgym_envs.wrappers import first_picture, make_trajectory

if TYPE_CHECKING:
    from rich.console import Console

Out = Annotated[Path | None, typer.Option(help="JSONL file to append the games to, one trajectory per line.")]

_HELP = """\
[bold]:hint[/]   the next action of the oracle      [bold]:undo[/]   undo the last action
[bold]:solve[/]  let the oracle play to the end     [bold]:look[/]   show the task again
[bold]:map[/]    show the whole state               [bold]:quit[/]   leave (also Ctrl-D)
[bold]:help[/]   the rules, and these commands"""


def play_command(
    env: EnvId,
    task: TaskId = None,
    seed: Seed = 0,
    split: Split = "train",
    groups: Groups = None,
    max_turns: LenientMaxTurns = None,
    env_arg: EnvArgs = None,
    out: Out = None,
) -> None:
    """Play a task yourself. Type actions, or :hint, :undo, :map, :solve, :help and :quit."""
    env_id = find_env(env)
    if out is not None:
        check_writable("--out", out)
    made, console = make_env(env_id, _with_map(env_id, parse_env_args(env_arg))), stdout()
    writer = None if out is None else TrajectoryWriter(out)
    game = (TeamGame if is_team(env_id) else Game)(made, console, env_id, lenient_max_turns(max_turns, env_id))
    try:
        with _line_editing(game):
            again = True
            while again:
                game.begin(seed, reset_options(task, split, groups, seed))
                again = _play_one(game, writer) and task is None and _wants_another(console)
                seed += 1
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_saved(writer)}") from None
    finally:
        made.close()
        if writer:
            writer.close()


class _UndoState(NamedTuple):
    """The state that `:undo` restores."""

    snapshot: Snapshot
    observation: str
    info: dict[str, Any]


class Game:
    """One task in play: carries out the lines of the player, prints the replies and records the turns."""

    def __init__(self, env: Env, console: Console, env_id: str, max_turns: int) -> None:
        """After `max_turns` turns the game ends with `turn_limit`."""
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
        observation, self._info = self._env.reset(seed=seed, options=options)
        self._observation = text_of(observation)
        self._opening = show.readable(self._observation, team="agents" in self._info)
        self._first_picture = first_picture(self._info)
        self._turns: list[Turn] = []
        self._past: list[_UndoState] = []
        self._stop: str | None = self._info["stop_reason"]
        self._hints = 0
        self._look()

    @property
    def over(self) -> bool:
        """True after the end of the episode, or after :quit."""
        return self._stop is not None

    @property
    def left(self) -> bool:
        """True if the player quit before the end."""
        return self._stop == StopReason.CLOSED.value

    @property
    def prompt(self) -> str:
        """The prompt, with the number of the turn."""
        return f"{self._info['turn'] + 1:>3} ❯ "

    @property
    def words(self) -> list[str]:
        """Words for Tab completion: those of the available actions, else of the task, and the game's commands."""
        text = " ".join(self._info.get("available_actions", [self._opening, "inventory"]))
        return sorted({*text.replace(",", " ").replace(".", " ").split(), *self._commands})

    def take(self, line: str) -> None:
        """Carry out a line. An unknown :command prints the list of commands."""
        if not line:
            return
        if line.startswith(":"):
            self._commands.get(line.lower(), self._unknown)()
        else:
            self._act(line)

    def end(self) -> Trajectory | None:
        """Print the outcome and return the record of the game; None without any turn."""
        show.closing(self._console, self._info, self._stop)
        if not self._turns:
            return None
        meta = {"policy": "human", "hints": self._hints, "max_turns": self._max_turns, **self._first_picture}
        stop = self._stop or StopReason.CLOSED.value
        return make_trajectory(
            self._env, tuple(self._turns), self._observation, self._info, stop_reason=stop, meta=meta
        )

    def _act(self, command: str) -> None:
        self._past.append(_UndoState(self._base.snapshot(), self._observation, self._info))
        action = self._base.grammar.format(command)
        seen = self._observation
        observation, reward, _, _, self._info = self._env.step(action)
        self._observation = text_of(observation)
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
            self._say(f"no solution is known from here: {error}")
            return []

    def _undo(self) -> None:
        if not self._past:
            self._say("there is nothing to undo")
            return
        snapshot, self._observation, self._info = self._past.pop()
        self._base.restore(snapshot)
        undone = self._turns.pop()
        self._console.print("[dim]undone:[/] ", show.coloured(undone.action), sep="")

    def _look(self) -> None:
        assert self._base.task is not None
        note = f"at most {self._max_turns} turns · :hint :undo :map :solve :help :quit"
        show.opening(self._console, self._env_id, self._base.task, self._opening, note)
        if commands := command_forms(self._base.grammars):
            self._say(f"commands: {' · '.join(commands)}")

    def _map(self) -> None:
        from rich.text import Text

        image = self._env.render()
        if isinstance(image, str):
            self._console.print(Text(image), soft_wrap=True)
        else:
            self._say("this environment has no text map")

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
    """A game in which the player enters one line for every agent of a team, one after the other."""

    def begin(self, seed: int, options: dict[str, Any]) -> None:
        """Start a task and show it."""
        self._lines: dict[str, str] = {}
        super().begin(seed, options)

    @property
    def prompt(self) -> str:
        """The prompt, with the number of the turn and the agent."""
        return f"{self._info['turn'] + 1:>3} {self._next} ❯ "

    def take(self, line: str) -> None:
        """Collect one line per agent, then take the turn. A :command discards the lines of this turn."""
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
        """The first agent without a line."""
        return self._acting[len(self._lines)]


def _with_map(env_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Add the render mode for `:map` to environments of this suite. Others may not accept it."""
    return {"render_mode": "ansi", **arguments} if entry_point_of(env_id) else arguments


def _play_one(game: Game, writer: TrajectoryWriter | None) -> bool:
    """Play a game and record it, even if the player quits early. Returns False if the player quit."""
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
    line = sys.stdin.readline()  # piped: print the line, so that the output shows the whole game
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


def _saved(writer: TrajectoryWriter | None) -> str:
    if writer is None:
        return "nothing was recorded, because there is no --out FILE"
    return f"the turns so far are saved in {writer.path}"


@contextmanager
def _line_editing(game: Game) -> Iterator[None]:
    """Enable history and Tab completion, if Python has readline and stdin is a terminal."""
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
