"""Locks between processes."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from agentgym_envs.file_locks import lock

fcntl = pytest.importorskip("fcntl")

HOLD = """import sys
from agentgym_envs.file_locks import lock
file = open(sys.argv[1], "ab")
print(lock(file), flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_refused_until_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "held"
    with open(path, "ab") as first, open(path, "ab") as second:
        assert lock(first) and not lock(second, wait=False)
        first.close()
        assert lock(second, wait=False)


def test_the_end_of_a_process_releases_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"True\n"
        with open(path, "ab") as file:
            assert not lock(file, wait=False)
        holder.kill()
    with open(path, "ab") as file:
        assert lock(file, wait=False)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_disk_without_locks_is_no_error(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object, flags: int) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(tmp_path / "held", "ab") as file:
        assert lock(file) and lock(file, wait=False)
