"""The table of remote methods: a new method is one function and its row.

The test adds a method to a copy of `hosting/methods.py` and calls it everywhere.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

import agentgym_envs
from agentgym_envs.hosting.methods import METHODS, Argument, Env, Method
from agentgym_envs.http.protocol import BatchCall, CallBody

FUNCTION = """
def _shout(env: Env, words: Annotated[str, Argument("The words to shout.", maximum=20)], times: Count = 1) -> list[str]:
    return [words.upper()] * times
"""
ROW = """
    "shout": Method(
        _shout, "Words in capitals", (EpisodeOver,), effect="starts", batched=True, example={"words": "hello"}
    ),
"""
PROGRAM = """
import contextlib, json
from agentgym_envs.errors import AgentGymError
from agentgym_envs.hosting import WorkerPool
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.http import ServerConnection
from agentgym_envs.http.openapi import openapi
from agentgym_envs.http.run import background_server

ENV = "AgentGym/TextCraft-v0"
CALL = "shout", {"words": "hello", "times": 2}


def both(connection, session):
    return [connection.call(session, *CALL), connection.submit_and_wait(session, *CALL)]


if __name__ == "__main__":
    found = {}
    host = SessionHost()
    host.open("s", ENV, {})
    found["local"] = host.call("s", *CALL)
    with contextlib.closing(WorkerPool(1)) as pool:
        connection, session, _ = pool.open(ENV, {})
        found["worker"] = both(connection, session)
    with background_server([ENV]) as url:
        connection = ServerConnection(url)
        (_, session, _), _ = connection.open(ENV, {})
        found["http"] = both(connection, session)
        found["number"] = connection._numbers[session]
        found["errors"] = []
        for arguments in ({}, {"words": 21 * "x"}):
            try:
                connection.call(session, "shout", arguments)
            except AgentGymError as error:
                found["errors"].append(str(error))
    found["openapi"] = openapi()["paths"]["/v2/sessions/{session}/shout"]["post"]
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The output of PROGRAM with a package whose table of methods has one more row."""
    root = tmp_path_factory.mktemp("package")
    source = Path(agentgym_envs.__file__).parent
    link_all(source, root / "agentgym_envs", but="hosting")
    link_all(source / "hosting", root / "agentgym_envs" / "hosting", but="methods.py")
    text = (source / "hosting" / "methods.py").read_text(encoding="utf-8")
    extended, count = re.subn(r"^METHODS: .*= \{\n", lambda match: FUNCTION + match[0] + ROW, text, flags=re.MULTILINE)
    assert count == 1
    (root / "agentgym_envs" / "hosting" / "methods.py").write_text(extended, encoding="utf-8")
    (root / "program.py").write_text(PROGRAM, encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(root / "program.py")]
    run = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def link_all(source: Path, target: Path, but: str) -> None:
    """Make a folder with links to everything in another, except one name."""
    target.mkdir()
    for each in source.iterdir():
        if each.name not in (but, "__pycache__"):
            (target / each.name).symlink_to(each)


@pytest.mark.slow
def test_a_new_method_works_locally_over_a_worker_and_over_http(found: dict[str, Any]) -> None:
    assert found["local"] == ["HELLO", "HELLO"]
    assert found["worker"] == found["http"] == [["HELLO", "HELLO"]] * 2


@pytest.mark.slow
def test_a_new_method_that_changes_the_episode_is_numbered_by_the_client(found: dict[str, Any]) -> None:
    assert found["number"] == 2


@pytest.mark.slow
def test_the_server_checks_the_arguments_of_a_new_method(found: dict[str, Any]) -> None:
    missing, too_long = found["errors"]
    assert missing == "'shout' needs 'words'"
    assert "length <= 20" in too_long and "words" in too_long


@pytest.mark.slow
def test_a_new_method_is_in_the_openapi_document(found: dict[str, Any]) -> None:
    operation = found["openapi"]
    assert operation["summary"] == "Words in capitals"
    content = operation["requestBody"]["content"]["application/json"]
    assert list(content["schema"]["properties"]) == ["seq", "words", "times"]
    assert content["schema"]["properties"]["words"] == {
        "type": "string",
        "maxLength": 20,
        "description": "The words to shout.",
    }
    assert content["schema"]["required"] == ["words"]
    assert content["example"] == {"seq": 1, "words": "hello"}
    reply = operation["responses"]["200"]["content"]["application/json"]
    assert (reply["schema"], reply["example"]) == ({"type": "array", "items": {"type": "string"}}, ["HELLO"])
    assert {"EpisodeOver", "OutOfOrder"} == set(
        operation["responses"]["409"]["content"]["application/json"]["examples"]
    )


def test_bodies_have_a_field_for_each_argument() -> None:
    names = {each.name for method in METHODS.values() for each in method.parameters}
    assert set(CallBody.__struct_fields__) == names | {"seq"}
    assert set(BatchCall.__struct_fields__) == names | {"seq", "session", "method"}


def test_a_parameter_without_an_argument_is_refused() -> None:
    def odd(env: Env, words: str) -> None: ...

    def even(env: Env, words: Annotated[str, Argument("Words.")] | None = None) -> None: ...

    with pytest.raises(TypeError, match="'words' of a remote method needs Annotated"):
        _ = Method(odd, "Odd").parameters
    assert Method(even, "Even").parameters[0][:2] == ("words", str) and Method(even, "Even").required == ()
