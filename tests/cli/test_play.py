import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentgym_envs.cli.envs import parse_env_args
from agentgym_envs.trajectory import read_trajectories
from tests.waiting import SECONDS

from .conftest import Outcome, Run, command, environment

TASK = ("--task", "textcraft/3")  # birch planks out of one birch log


@pytest.fixture
def play(run: Run, monkeypatch: pytest.MonkeyPatch):
    def call(*lines: str, words: tuple = ("textcraft", *TASK)) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run("play", *words)

    return call


def test_a_solved_game_shows_turns_and_score(play) -> None:
    outcome = play("get 1 birch logs", "craft 4 birch planks using 1 birch logs", "never read")
    assert outcome.code == 0
    assert "Goal: craft birch planks." in outcome.out
    assert "  1 ❯ get 1 birch logs\nGot 1 birch logs\n  you carry 1 birch logs\n" in outcome.out
    assert outcome.out.endswith("★ Solved in 2 turns. Score 1.\n")
    assert outcome.err == ""


def test_a_hint_is_the_oracles_next_action(play) -> None:
    assert "try get 1 birch logs\n  1 ❯ :quit" in play(":hint", ":quit").out
    assert "try craft 4 birch planks using 1 birch logs" in play("get 1 birch logs", ":hint").out


def test_undo_restores_the_state_before_the_last_action(play) -> None:
    out = play("get 1 birch logs", "get 5 birch logs", ":undo", "inventory", ":undo", ":undo", ":undo").out
    assert "undone: get 5 birch logs\n  2 ❯ inventory\nInventory: [birch logs] (1)\n" in out
    assert out.count("undone: ") == 3
    assert "there is nothing to undo" in out


def test_solve_continues_from_the_current_state(play) -> None:
    out = play("get 1 birch logs", ":solve").out
    assert "craft 4 birch planks using 1 birch logs\nCrafted 4 birch planks" in out
    assert "Solved in 2 turns" in out


def test_help_look_and_unknown_commands_take_no_turn(play) -> None:
    out = play(":help", ":look", ":dance", "", ":QUIT").out
    assert "get <amount> <item>" in out
    assert out.count("Goal: craft birch planks.") == 2
    assert "the commands of the game are :hint" in out
    assert out.endswith("You quit after 0 turns. Score 0.\n")


def test_the_turn_limit_ends_the_game(play) -> None:
    out = play("inventory", "inventory", "inventory", words=("textcraft", *TASK, "--max-turns", 2)).out
    assert out.endswith("The episode is over after 2 turns (turn_limit). Score 0.\n")


def test_an_invalid_action_costs_one_turn(play) -> None:
    assert "Could not execute [bold]dance\n  2 ❯ :quit" in play("[bold]dance", ":quit").out


def test_games_are_recorded(play, tmp_path: Path) -> None:
    words = ("textcraft", *TASK, "--seed", 5, "--out", "games.jsonl")
    play("get 9 stick", ":undo", "get 1 birch logs", ":hint", "craft 4 birch planks using 1 birch logs", words=words)
    play("get 2 stick", words=words)
    play(words=words)  # without a turn there is no record
    won, left = read_trajectories("games.jsonl")
    assert won.actions == ["get 1 birch logs", "craft 4 birch planks using 1 birch logs"]
    assert (won.success, won.stop_reason, won.seed, won.meta["hints"]) == (True, "success", 5, 1)
    assert [turn.reward for turn in won.turns] == [0, 1]
    assert (left.success, left.stop_reason, left.actions) == (False, "closed", ["get 2 stick"])


def test_actions_are_recorded_in_the_grammar_of_the_environment(play) -> None:
    words = ("textcraft", *TASK, "--env-arg", "grammar=react", "--out", "games.jsonl")
    assert "Solved" in play(":solve", words=words).out
    assert all("Action: " in action for action in next(read_trajectories("games.jsonl")).actions)


def test_an_environment_without_an_oracle_gives_no_hint(play, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tests.toy.CountEnv._plan")
    out = play(":hint", ":solve", "up", "up", words=(toy, "--task", "count/2")).out
    assert out.count("no solution is known from here: CountEnv has no oracle") == 2
    assert "Solved in 2 turns" in out


def test_an_infrastructure_error_ends_the_game(play, toy: str) -> None:
    assert "failed after 1 turn: EnvError: the abacus broke" in play("crash", words=(toy, "--task", "count/2")).out
    assert "failed after 0 turns: EnvError: " in play("up", words=(toy, "--task", "count/0")).out


@pytest.mark.slow
def test_commands_are_read_from_a_pipe(spawn: Run) -> None:
    outcome = spawn("play", "textcraft", *TASK, stdin=":hint\nget 1 birch logs\n")
    assert outcome.code == 0
    assert outcome.out.endswith("You quit after 1 turn. Score 0.\n")
    assert outcome.err == ""


def read_until(terminal: int, text: str) -> str:
    seen, end = b"", time.monotonic() + SECONDS
    while text.encode() not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536)
    return seen.decode(errors="replace")


def interrupt(game: subprocess.Popen) -> bytes:
    """Send Ctrl-C until the game ends: readline ignores one that arrives just before it starts to wait."""
    time.sleep(0.3)
    for _ in range(12):
        game.send_signal(signal.SIGINT)
        try:
            return game.communicate(timeout=SECONDS / 12)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("Ctrl-C did not end the game")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_supports_tab_another_game_and_ctrl_c(tmp_path: Path) -> None:
    terminal, inner = pty.openpty()
    words = command("play", "textcraft", "--groups", "depth-1", "--out", "games.jsonl")
    environ = {**environment(), "TERM": "xterm"}
    game = subprocess.Popen(
        words, stdin=inner, stdout=inner, stderr=subprocess.PIPE, cwd=tmp_path, env=environ, start_new_session=True
    )
    try:
        read_until(terminal, "  1 ❯ ")
        os.write(terminal, b":so\t\n")
        assert "Solved in" in read_until(terminal, "Another one?")
        os.write(terminal, b"y\n")
        read_until(terminal, "  1 ❯ ")
        os.write(terminal, b"inventory\n")
        read_until(terminal, "  2 ❯ ")
        err = interrupt(game)
    finally:
        game.kill()
        game.communicate()  # otherwise the next test would fail with a ResourceWarning
        os.close(terminal)
        os.close(inner)
    assert game.returncode == 130
    assert err.decode() == "agentgym: interrupted; the turns so far are saved in games.jsonl\n"
    assert [t.stop_reason for t in read_trajectories(tmp_path / "games.jsonl")] == ["success", "closed"]


def test_the_map_is_shown_if_the_environment_draws_text(play) -> None:
    out = play(":map", ":solve", words=("babyai", "--task", "babyai/GoToRedBallNoDists/3")).out
    assert "Step 0 of 64, carrying nothing\n" in out and "██" in out and "you, ● ball" in out
    assert "Solved in" in out
    bare = play(":map", ":quit", words=("babyai", "--task", "babyai/GoToObj/3", "--env-arg", "render_mode=rgb_array"))
    assert "no text map" in bare.out


WALL = ("textcraftcoop", "--task", "textcraft-coop/2/22")


def test_a_team_is_played_one_agent_at_a_time(play, tmp_path: Path) -> None:
    lines = ["get 6 cobblestone", "dance", ":undo", "pass", ":look", "get 6 cobblestone", "pass"]
    lines += ["give 6 cobblestone to crafter_1", "pass", "pass", "craft 6 cobblestone wall using 6 cobblestone"]
    out = play(*lines, words=(*WALL, "--out", "games.jsonl")).out
    assert "[crafter_0]" in out and "  1 crafter_0 ❯ get 6 cobblestone\n  1 crafter_1 ❯ dance\n" in out
    assert "[crafter_0]\nGot 6 cobblestone\n\n[crafter_1]\nCould not execute dance\n" in out
    assert "[crafter_1]\nYou pass.\ncrafter_0 gives you 6 cobblestone.\n" in out
    assert out.endswith("★ Solved in 3 turns. Score 1.\n")
    [game] = read_trajectories(tmp_path / "games.jsonl")
    assert game.success and len(game.turns) == 3


def test_the_oracle_solves_a_team_game(play, run: Run) -> None:
    out = play(":hint", ":solve", words=WALL).out
    assert 'try {"crafter_0": "say ' in out and "★ Solved in 5 turns" in out
    solved = run("solve", *WALL).out
    assert "[crafter_1]\nYou pass.\ncrafter_0 gives you 6 cobblestone.\n" in solved and "│ [crafter_0]" in solved


def test_planner_and_actor_alternate(play) -> None:
    out = play("Take some wood!", "get 1 birch logs", ":quit", words=("planneractor", *TASK)).out
    assert "  1 planner ❯ Take some wood!\n" in out and "  2 actor ❯ get 1 birch logs\n" in out
    assert 'planner says: "Take some wood!"' in out and "  3 planner ❯ :quit" in out


def test_arguments_of_environments_are_json_python_constants_or_text() -> None:
    pairs = ["a=true", "b=True", "c=None", "d=[5, 8]", "e=Truely", "f=1.5", 'g="True"', "h="]
    values = [True, True, None, [5, 8], "Truely", 1.5, "True", ""]
    assert list(parse_env_args(pairs).values()) == values


def test_the_first_screen_lists_the_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(":quit\n"))
    shown = run("play", "textcraft").out
    assert "commands: get <amount> <item> · craft <item> using <ingredients> · inventory" in shown
