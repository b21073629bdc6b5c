"""`agentgym serve`, and the other commands with an environment on a server."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
import psutil
import pytest

from agentgym_envs.cli import serve
from agentgym_envs.errors import UsageError, missing_extra
from agentgym_envs.http.run import background_server
from agentgym_envs.trajectory import read_trajectories
from tests.children import ended
from tests.episodes import without_times
from tests.ports import free_port
from tests.toy import CountEnv
from tests.waiting import SECONDS, until

from .conftest import ROOT, Run, Start, environment

pytestmark = pytest.mark.slow  # too slow for the fast run

ENV = "AgentGym/TextCraft-v0"


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTGYM_TOKEN", raising=False)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with background_server([ENV]) as url:
        yield url


def finish(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, Path("out.txt").read_text(), err


def test_serve_exits_with_0_on_sigterm(start: Start) -> None:
    process, url, _ = start("serve", ENV)
    env = gym.make(ENV, base_url=url)
    assert env.reset(seed=3) == gym.make(ENV).reset(seed=3)
    code, out, err = finish(process, signal.SIGTERM)
    assert (code, err) == (0, "")
    assert ENV in out
    assert f'gym.make("{ENV}", base_url="{url}")' in out
    assert "no token needed" in out
    assert env.step("inventory")[4]["stop_reason"] == "env_error"


def test_ctrl_c_closes_sessions_and_workers(start: Start) -> None:
    process, url, _ = start("serve", "textcraft", "--isolate", "--workers", 2)
    envs = [gym.make(ENV, base_url=url) for _ in range(3)]
    assert len({env.reset(seed=1)[0] for env in envs}) == 1
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len([worker for worker in workers if "worker_main" in " ".join(worker.cmdline())]) == 2
    code, out, err = finish(process, signal.SIGINT)
    assert (code, err) == (130, "agentgym: interrupted; every session is closed\n")
    assert "workers (at most 2)" in out
    until(lambda: ended(workers))


@pytest.mark.rotating
def test_without_ids_all_environments_are_served(start: Start) -> None:
    _, url, _ = start("serve")
    assert ENV in [row["id"] for row in httpx.get(f"{url}/envs").json()["envs"]]


def test_environments_of_the_user_are_served(start: Start) -> None:
    _, url, shown = start("serve", "tests.toy_envs:Toy/Count-v0", says="base_url", PYTHONPATH=str(ROOT))
    assert [row["id"] for row in httpx.get(f"{url}/envs").json()["envs"]] == ["Toy/Count-v0"]
    (line,) = [line for line in shown.read_text().splitlines() if line.startswith("gym.make(")]
    program = f"import agentgym_envs, gymnasium as gym; print({line}.reset(seed=1)[1]['seed'])"
    command = [sys.executable, "-c", program]  # in a process that has not imported the module
    assert subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout == "1\n"


def test_tracebacks_are_logged_and_not_sent(start: Start) -> None:
    process, url, _ = start("serve", "tests.toy_envs:Toy/Tricky-v0", PYTHONPATH=str(ROOT))
    session = httpx.post(f"{url}/v2/sessions", json={"env": "Toy/Tricky-v0"}).json()["session"]
    httpx.post(f"{url}/v2/sessions/{session}/reset", json={"seed": 0})
    reply = httpx.post(f"{url}/v2/sessions/{session}/step", json={"action": "raise"})
    assert reply.status_code == 500
    assert reply.json() == {"error": {"type": "EnvError", "message": "ZeroDivisionError: a bug"}}
    err = finish(process, signal.SIGTERM)[2]
    assert "Traceback" in err
    assert 'raise ZeroDivisionError("a bug")' in err


def test_the_limits_reach_the_server(start: Start) -> None:
    _, url, _ = start("serve", ENV, "--max-sessions", 1, "--idle-seconds", 1.5)
    body = {"env": ENV}
    assert httpx.post(f"{url}/v2/sessions", json=body).status_code == 201
    assert httpx.post(f"{url}/v2/sessions", json=body).status_code == 429
    until(lambda: httpx.get(f"{url}/health").json()["sessions"] == 0)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("source", ["--token", "--token-file", "variable"])
def test_a_token_is_required_and_not_printed(start: Start, tmp_path: Path, source: str) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    words = {"--token": ["--token", "s3cret"], "--token-file": ["--token-file", "secret"], "variable": []}[source]
    process, url, _ = start("serve", ENV, *words, **({"AGENTGYM_TOKEN": "s3cret"} if source == "variable" else {}))
    assert httpx.get(f"{url}/envs").status_code == 401
    assert httpx.get(f"{url}/envs", headers={"Authorization": "Bearer s3cret"}).status_code == 200
    code, out, err = finish(process, signal.SIGTERM)
    assert (code, err) == (0, "")
    assert "clients need the token" in out
    assert "s3cret" not in out


def test_token_sources_have_an_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("of-the-file\n")
    assert serve.find_token(None, None) is None
    monkeypatch.setenv("AGENTGYM_TOKEN", "of-the-variable")
    assert serve.find_token(None, None) == "of-the-variable"
    assert serve.find_token(None, path) == "of-the-file"
    assert serve.find_token("typed", None) == "typed"


@pytest.mark.parametrize("token", ["", "two words", "naïve", "line\nbreak"])
def test_invalid_tokens_are_refused(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTGYM_TOKEN", token)
    with pytest.raises(UsageError, match="environment variable AGENTGYM_TOKEN is not a token"):
        serve.find_token(None, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_remote_hosts_need_a_token(refuses: Run, host: str) -> None:
    err = refuses("serve", ENV, "--host", host).err
    assert "--token-file" in err
    assert "--insecure" in err


def test_insecure_accepts_remote_hosts(start: Start) -> None:
    process, url, _ = start("serve", ENV, "--host", "0.0.0.0", "--insecure")
    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{url}/health").json()["status"] == "ok"
    assert finish(process, signal.SIGTERM)[0] == 0


def test_a_unix_socket_is_served_and_removed(start: Start, refuses: Run, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    process, url, _ = start("serve", ENV, "--host", f"unix:{path}")
    assert (url, path.stat().st_mode & 0o777) == (f"unix:{path}", 0o600)
    assert "address already in use" in refuses("serve", ENV, "--host", url).err
    env = gym.make(ENV, base_url=url)
    assert env.reset(seed=3) == gym.make(ENV).reset(seed=3)
    env.close()
    code, out, err = finish(process, signal.SIGTERM)
    assert (code, err) == (0, "")
    assert f'gym.make("{ENV}", base_url="unix:{path}")' in out
    assert not path.exists()
    assert "absolute path" in refuses("serve", ENV, "--host", "unix:socket").err


def test_invalid_requests_print_one_line(refuses: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "address already in use" in (err := refuses("serve", ENV, "--port", port).err)
        assert f"port {port}" in err
    assert "did you mean AgentGym/TextCraft-v0 or" in refuses("serve", "TextKraft").err
    assert "of this suite" in refuses("serve", "CartPole-v1").err
    assert "'no.such' cannot be imported" in refuses("serve", "no.such:My/Env-v0").err
    assert "is not an address" in refuses("serve", ENV, "--host", "no such host").err
    assert "cannot be read" in refuses("serve", ENV, "--token-file", tmp_path / "none").err
    assert "one of them" in refuses("serve", ENV, "--token", "a", "--token-file", "b").err
    assert "agentgym, mcp, nemo, openenv, not 'morse'" in refuses("serve", ENV, "--dialect", "morse").err
    assert "above 0" in refuses("serve", ENV, "--idle-seconds", 0).err
    assert "--port" in refuses("serve", ENV, "--port", 65536).err
    assert "--workers" in refuses("serve", ENV, "--workers", 0).err


def test_a_module_in_the_current_folder_is_imported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registers = "from agentgym_envs import register; register('Toy/Mine-v0', 'tests.toy:CountEnv')"
    (tmp_path / "my_scenario.py").write_text(registers)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    outcome = run("solve", "my_scenario:Toy/Mine-v0")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_missing_extra_prints_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("agentgym_envs.http.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    outcome = run("serve", ENV)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "pip install 'agentgym-envs[serve]'" in outcome.err


def test_environments_without_their_package_are_left_out_unless_named(
    run: Run, toy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = missing_extra("Toy", "abacus", "toy")

    def lacks(env: CountEnv, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(CountEnv, "__init__", lacks)
    assert asyncio.run(serve.find_installed([toy, ENV], {})) == ([ENV], [f"{toy} is left out: {error}"])
    with pytest.raises(UsageError, match="nothing can be served"):
        asyncio.run(serve.find_installed([toy], {}))
    assert run("serve", toy, ENV, "--port", 0) == (1, "", f"agentgym: {error}\n")


def test_dialects_are_served(start: Start) -> None:
    process, url, _ = start("serve", ENV, "--dialect", "openenv", "--dialect", "agentgym", "--dialect", "openenv")
    assert httpx.get(f"{url}/openenv/{ENV}/metadata").status_code == 200
    assert isinstance(httpx.post(f"{url}/agentgym/textcraft/create").json()["id"], int)
    assert httpx.get(f"{url}/envs").status_code == 200
    # With one environment, the dialects are also at the root; the first one named has precedence.
    assert "system_prompt" in httpx.post(f"{url}/reset", json={}).json()["observation"]
    assert isinstance(httpx.post(f"{url}/create").json()["id"], int)
    out = finish(process, signal.SIGTERM)[1]
    assert out.count("also serves openenv's protocol") == out.count("also serves agentgym's protocol") == 1


def test_solve_play_demos_and_bench_reach_a_server(run: Run, server: str) -> None:
    remote = ("--env-arg", f"base_url={server}")
    words = ("solve", "textcraft", "--task", "textcraft/42", "--seed", 7)
    assert run(*words, *remote) == run(*words)
    assert run("demos", "textcraft", "--tasks", 3, *remote, "--out", "there.jsonl").code == 0
    assert run("demos", "textcraft", "--tasks", 3, "--out", "here.jsonl").code == 0
    assert Path("there.jsonl").read_bytes() == Path("here.jsonl").read_bytes()
    found = run("bench", "textcraft", "--seconds", 0.05, *remote, "--json").json
    assert found["steps_per_second"] > 10


def test_play_reaches_a_server(spawn: Run, server: str, tmp_path: Path) -> None:
    words = ("play", "textcraft", "--task", "textcraft/42", "--env-arg", f"base_url={server}", "--out", "game.jsonl")
    outcome = spawn(*words, stdin="get 3 brick\n:undo\n:solve\n")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Solved in 2 turns" in outcome.out
    (game,) = read_trajectories(tmp_path / "game.jsonl")
    assert dict(game.env_kwargs) == {}


def test_eval_gives_the_same_result_locally_and_remotely(
    run: Run, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTGYM_TOKEN", "secret-of-the-variable")
    remote = ("--env-arg", f"base_url={server}", "--env-arg", "token=secret-of-the-line", "--env-arg", "timeout=60")
    words = ("eval", "textcraft", "--policy", "random", "--tasks", 6, "--max-turns", 5)
    assert run(*words, *remote, "--out", "there").code == 0
    assert run(*words, "--out", "here").code == 0

    def episodes(folder: str) -> list[str]:
        return sorted(without_times(Path(folder, "trajectories.jsonl").read_text().splitlines()))

    assert episodes("there") == episodes("here")
    assert json.loads(Path("there/eval.json").read_text()) == json.loads(Path("here/eval.json").read_text())
    assert not any("secret" in path.read_text() or server in path.read_text() for path in Path("there").iterdir())
    assert run(*words, "--out", "there", "--resume").code == 0  # a run can be resumed elsewhere
    assert run("eval", "textcraft", "--policy", "replay:there/trajectories.jsonl", *remote).code == 0


def test_eval_without_tasks_plays_all_tasks_of_a_server(run: Run, refuses: Run, server: str) -> None:
    words = ("eval", "textcraft", "--policy", "random", "--split", "test", "--max-turns", 1)
    remote = ("--env-arg", f"base_url={server}")
    found = run(*words, *remote, "--json").json
    assert found["metrics"]["overall"]["episodes"] == 108
    assert found["metrics"] == run(*words, "--json").json["metrics"]
    assert "has an unlimited number of tasks" in refuses(*words, *remote, "--env-arg", "worlds=invented").err


def test_requests_that_a_server_refuses_print_one_line(refuses: Run, run: Run, server: str) -> None:
    remote = ("--env-arg", f"base_url={server}")
    assert "not ['colour']" in refuses("solve", "textcraft", *remote, "--env-arg", "colour=1").err
    assert "no task 'textcraft/9999'" in refuses("solve", "textcraft", *remote, "--task", "textcraft/9999").err
    assert "base_url must be" in refuses("solve", "textcraft", "--env-arg", "base_url=there").err
    closed = f"http://127.0.0.1:{free_port()}"
    outcome = run("solve", "textcraft", "--env-arg", f"base_url={closed}", "--env-arg", "connect_timeout=0")
    assert outcome.code == 1
    assert outcome.err.startswith("agentgym: no server took the environment: ")
    assert outcome.err.count("\n") == 1


def test_eval_uses_several_servers(run: Run, server: str) -> None:
    with background_server([ENV]) as other:
        urls = json.dumps([server, other])
        words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 4, "--split", "train")
        outcome = run(*words, "--env-arg", f"base_url={urls}", "--json")
    assert outcome.json["metrics"]["overall"]["success"]["mean"] == 1
    assert os.environ.get("AGENTGYM_TOKEN") is None
