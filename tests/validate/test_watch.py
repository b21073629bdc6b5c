"""The record of what an environment does to its surroundings."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from agentgym_envs.validate.watch import Watch, is_local, joined, watching, written_outside

OUTSIDE = ("192.0.2.1", 9)
"""An address for documentation. A datagram socket that is connected to it sends nothing."""


def connect(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(address)


def test_connections_to_other_machines_are_recorded() -> None:
    with watching() as watch:
        connect(("127.0.0.1", 9))
        connect(OUTSIDE)
        connect(OUTSIDE)
        socket.getaddrinfo("localhost", 80)
    connect(("192.0.2.7", 9))
    assert list(watch.hosts) == ["192.0.2.1"]


@pytest.mark.parametrize("host", ["", "localhost", "127.3.2.1", "::1", "shop.agentgym.localhost", "0.0.0.0"])
def test_this_machine_is_local(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["192.168.1.2", "example.com", "localhost.example.com", "2001:db8::1"])
def test_other_machines_are_not_local(host: str) -> None:
    assert not is_local(host)


def test_written_files_are_recorded_and_read_ones_are_not(tmp_path: Path) -> None:
    with watching() as watch:
        (tmp_path / "a").write_text("a")
        (tmp_path / "a").read_text()
        os.close(os.open(__file__, os.O_RDWR))
        (tmp_path / "b").mkdir()
        Path(__file__).read_bytes()
    assert list(watch.written) == [str(tmp_path / "a"), __file__, str(tmp_path / "b")]


def test_only_files_outside_of_temporary_folders_and_caches_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    paths = [
        "/etc/motd",
        f"{tempfile.gettempdir()}/x",
        "/caches/y",
        "/srv/__pycache__/z.pyc",
        "/dev/null",
        "/caches-no/a",
    ]
    assert written_outside(Watch(written=dict.fromkeys(paths))) == ["/etc/motd", "/caches-no/a"]


def test_started_programs_are_recorded() -> None:
    with watching() as watch:
        subprocess.run(["true"], check=True)
    assert list(watch.processes) == ["true"]


def test_changes_of_variables_and_directory_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watching() as watch:
        monkeypatch.setenv("CORRIDOR", "1")
        monkeypatch.chdir(tmp_path)
    assert list(watch.changed) == ["the variable CORRIDOR", "the working directory"]


@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (random.random, ["random"]),
        (np.random.random, ["numpy.random"]),
        (lambda: random.Random(0).random(), []),
        (lambda: np.random.default_rng(0).random(), []),
    ],
)
def test_global_generators_are_recorded(draw: object, found: list[str]) -> None:
    with watching() as watch:
        draw()  # type: ignore[operator]
    assert watch.global_rng == found


def test_events_are_joined() -> None:
    one, other = Watch(hosts={"a": None}, global_rng=["random"]), Watch(hosts={"b": None}, global_rng=["random"])
    assert list(joined(one, other).hosts) == ["a", "b"] and joined(one, other).global_rng == ["random"]


def test_events_after_the_end_are_not_recorded() -> None:
    with pytest.raises(KeyError), watching() as watch:
        raise KeyError
    subprocess.run(["true"], check=True)
    assert not watch.processes
