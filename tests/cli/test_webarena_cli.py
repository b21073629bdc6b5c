"""`agentgym webarena sites`."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from agentgym_envs.webarena.tasks.table import load
from tests.waiting import SECONDS, until

from .conftest import Run, command, environment


@pytest.mark.slow
def test_the_inspector_is_served_until_ctrl_c(tmp_path: Path) -> None:
    task = load().tasks[0]
    shown = tmp_path / "out.txt"
    words = command("webarena", "sites", "--task", task.id, "--port", 0, "--no-browser")
    with shown.open("w") as out:
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.PIPE, text=True
        )
    try:
        until(lambda: "until Ctrl-C" in shown.read_text() or process.poll() is not None)
        found = re.match(
            r"Inspector at http://(inspector\.agentgym\.localhost):(\d+) until Ctrl-C\n", shown.read_text()
        )
        assert found, (shown.read_text(), process.poll())
        with httpx.Client(base_url=f"http://127.0.0.1:{found[2]}") as browser:
            status = browser.get("/status", headers={"host": f"{found[1]}:{found[2]}"}).json()
            assert status["task"]["goal"] == task.goal
            start = httpx.URL(status["start"])
            page = browser.get(start.raw_path.decode(), headers={"host": start.netloc.decode()})
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert browser.get("/").status_code == 404
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err.splitlines()[-1]) == (130, "agentgym: interrupted; the inspector is closed")
    finally:
        process.kill()
        process.communicate()


def test_invalid_requests_print_one_line(refuses: Run) -> None:
    assert "there is no task 'webarena/none'" in refuses("webarena", "sites", "--task", "webarena/none").err
    assert "give either --task or --world" in refuses("webarena", "sites", "--task", "x", "--world", 3).err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "--port 0 chooses a free port" in refuses("webarena", "sites", "--no-browser", "--port", port).err
