"""The watch over the simulator's expert: it limits the number of commands, and the time only of one command."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.sciworld.gateway import ADDRESS, Client, GatewayLost
from agentgym_envs.sciworld.simulation import EXPERT_COMMANDS, _ExpertWatch


class Expert:
    """An expert with a history of `commands` commands, its own interface and its own JVM."""

    call_seconds = 10.0
    commands = 0
    stopped = 0

    def currentHistory(self) -> "Expert":
        return self

    def length(self) -> int:
        assert not self.stopped, "it has no history any more"
        return self.commands

    def release(self, unused: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        assert name == "currentHistory_$eq"
        return lambda _: setattr(self, "stopped", self.stopped + 1)


@pytest.fixture
def expert() -> Expert:
    return Expert()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch, expert: Expert) -> Any:
    """Return a function that asks the watch at a time."""
    now = [0.0]
    monkeypatch.setattr("agentgym_envs.sciworld.simulation.time.monotonic", lambda: now[0])
    watch = _ExpertWatch(expert, expert)  # type: ignore[arg-type]

    def ask(seconds: float, commands: int) -> int:
        now[0], expert.commands = seconds, commands
        watch()
        return expert.stopped

    return ask


def test_an_expert_that_gives_commands_may_take_any_time(at: Any) -> None:
    assert {at(8.9 * count, count) for count in range(1, EXPERT_COMMANDS + 1)} == {0}


def test_an_expert_with_too_many_commands_is_stopped_once(at: Any) -> None:
    assert [at(1, EXPERT_COMMANDS), at(2, EXPERT_COMMANDS + 1), at(3, EXPERT_COMMANDS + 9)] == [0, 1, 1]
    with pytest.raises(TimeoutError):
        at(13, 0)


def test_an_expert_without_progress_is_stopped_then_given_up(at: Any) -> None:
    assert [at(1, 5), at(9.9, 5), at(10.1, 5)] == [0, 0, 1]
    with pytest.raises(TimeoutError):
        at(11, 5)


# The gateway's side


@pytest.fixture
def slow_server() -> Iterator[tuple[int, threading.Event]]:
    """A gateway that answers the token at once, and a call when the event is set."""
    ready = threading.Event()
    with socket.create_server((ADDRESS, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=[connection], daemon=True).start()

        def talk(connection: socket.socket) -> None:
            with connection:
                while text := connection.recv(1000):
                    if text == b"slow\n":
                        ready.wait(60)
                    connection.sendall(b"!y\n" if text.startswith(b"A\n") else b"!y" + text)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], ready
        ready.set()


def test_a_watched_call_outlasts_the_limit_and_its_watch_can_call(slow_server: tuple[int, threading.Event]) -> None:
    port, ready = slow_server
    client, asked = Client(port, "token", 0.2), list[str]()

    def watch() -> None:
        asked.append(client.send_command("fast\n"))
        if len(asked) == 8:  # twice the limit of a call
            ready.set()

    client.watch_next = watch
    assert client.send_command("slow\n") == "yslow"
    assert set(asked) == {"yfast"} and len(asked) >= 8 and client.watch_next is None and not client.lost
    client.leave_to_parent()  # closes the connections


@pytest.mark.parametrize("watched", [False, True])
def test_a_call_that_is_given_up_is_late(slow_server: tuple[int, threading.Event], watched: bool) -> None:
    client, asked = Client(slow_server[0], "token", 0.2), list[int]()

    def give_up() -> None:
        asked.append(0)
        if len(asked) > 4:
            raise TimeoutError

    client.watch_next = give_up if watched else None
    with pytest.raises(GatewayLost) as lost:
        client.send_command("slow\n")
    assert lost.value.late and client.lost
    client.leave_to_parent()
