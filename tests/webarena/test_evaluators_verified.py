import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.evaluators import verified
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.verified import UNSOLVABLE, Verified, complete, find_python
from tests.plugins.rotation import part
from tests.webarena.test_evaluators_answers import no_pages
from tests.webarena.verified_tasks import URLS, entry, expected_answer, expected_requests

PYTHON = os.environ.get("AGENTGYM_WEBARENA_VERIFIED_PYTHON")
installed = pytest.mark.skipif(
    PYTHON is None, reason="AGENTGYM_WEBARENA_VERIFIED_PYTHON names no Python with webarena-verified"
)


async def score(task: int, answer: str, requests: list[dict[str, Any]], urls: dict[str, str] = URLS) -> Verdict:
    return await Verified(task)(FinishedEpisode("", answer, "", no_pages, requests, urls=urls))


@pytest.fixture(scope="module")
def tasks() -> list[dict[str, Any]]:
    assert PYTHON is not None
    where = "import webarena_verified as w; print(w.__path__[0] + '/assets/dataset/webarena-verified.json')"
    path = subprocess.run([PYTHON, "-I", "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    found: list[dict[str, Any]] = json.loads(Path(path).read_text())
    return found


@installed
@pytest.mark.slow
def test_expected_answers_score_1_and_others_0(tasks: list[dict[str, Any]]) -> None:
    async def check() -> None:
        assert len(tasks) == 812
        regular, unsolvable = ([t for t in tasks if (t["task_id"] in UNSOLVABLE) == rare] for rare in (False, True))
        chosen = [*unsolvable, *part(regular, "verified tasks")]
        right, failed = set(), set()
        for task in chosen:
            answer, requests = expected_answer(task), expected_requests(task)
            try:
                verdict = await score(task["task_id"], answer, requests)
            except EnvError:
                failed.add(task["task_id"])
                continue
            right |= {task["task_id"]} if verdict == Verdict(1.0) else set()
            assert (await score(task["task_id"], _wrong(answer), requests)).score == 0.0, task["task_id"]
            if len(requests) > 1:
                assert (await score(task["task_id"], answer, requests[:1])).score == 0.0, task["task_id"]
        assert {task["task_id"] for task in chosen} - right == UNSOLVABLE
        assert failed == {699, 700, 811}

    asyncio.run(check())


def _wrong(answer: str) -> str:
    """The response with another value, or with another task type if it has no value."""
    response = json.loads(answer)
    if not response["retrieved_data"]:
        return json.dumps({**response, "status": "UNKNOWN_ERROR"})
    other = (
        {"name": "nothing of the kind"} if isinstance(response["retrieved_data"][0], dict) else "nothing of the kind"
    )
    return json.dumps({**response, "retrieved_data": [other, *response["retrieved_data"][1:]]})


@installed
@pytest.mark.slow
def test_malformed_answers_score_0_without_an_error(tasks: list[dict[str, Any]]) -> None:
    answers = [
        "",
        "5",
        "N/A",
        "[]",
        "{}",
        "null",
        '{"task_type": 5, "status": [3]}',
        '{"task_type": "RETRIEVE"',
        "\x00",
    ]
    for answer in answers:
        verdict = asyncio.run(score(0, answer, []))
        assert verdict.score == 0.0 and verdict.reason, answer
    fenced = f"Here it is:\n```json\n{expected_answer(tasks[0])}\n```"
    assert asyncio.run(score(0, fenced, [])) == Verdict(1.0)


@installed
@pytest.mark.slow
def test_requests_to_other_hosts_are_ignored(tasks: list[dict[str, Any]]) -> None:
    task = tasks[44]
    others = [
        entry("GET", "data:text/plain,x"),
        entry("GET", "blob:http://code.test/1"),
        {**entry("GET", "http://x.test/")},
    ]
    del others[-1]["response"]
    verdict = asyncio.run(score(44, expected_answer(task), [*others, *expected_requests(task)]))
    assert verdict == Verdict(1.0)


@installed
@pytest.mark.slow
def test_a_crashed_worker_is_replaced_after_one_error(tasks: list[dict[str, Any]]) -> None:
    right = expected_answer(tasks[0])

    async def check() -> None:
        assert await score(0, right, []) == Verdict(1.0)
        assert PYTHON is not None
        worker = verified._worker(PYTHON)
        worker.close()
        with pytest.raises(EnvError, match="stopped with"):
            worker.ask("{}")
        many = await asyncio.gather(*(score(0, answer, []) for answer in [right, "5"] * 10))
        assert [verdict.score for verdict in many] == [1.0, 0.0] * 10

    asyncio.run(check())


@installed
@pytest.mark.slow
def test_a_missing_site_address_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="task 0 needs the address of: shopping_admin"):
        asyncio.run(score(0, "{}", [], {"shopping": "http://shop.test"}))


def test_a_python_without_the_package_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "find_python", lambda python: sys.executable)
    with pytest.raises(
        UsageError, match="cannot score tasks of WebArena Verified: No module named 'webarena_verified'"
    ):
        asyncio.run(score(0, "{}", []))


def test_find_python_checks_the_argument_and_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTGYM_WEBARENA_VERIFIED_PYTHON", raising=False)
    assert find_python(sys.executable) == sys.executable
    with pytest.raises(UsageError, match="there is no Python at '/no/python'"):
        find_python("/no/python")
    with pytest.raises(UsageError, match="set AGENTGYM_WEBARENA_VERIFIED_PYTHON to its Python"):
        find_python()
    monkeypatch.setenv("AGENTGYM_WEBARENA_VERIFIED_PYTHON", sys.executable)
    assert find_python() == sys.executable


def test_entries_are_completed_from_their_headers() -> None:
    headers = [{"name": "location", "value": "/new"}, {"name": "Set-Cookie", "value": "a=1; path=/\nb=x=y"}]
    bare = {"request": {"method": "GET", "url": "http://a.test/"}, "response": {"status": 302, "headers": headers}}
    response = complete(bare)["response"]
    assert response["redirectURL"] == "/new"
    assert response["cookies"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "x=y"}]
    assert complete({"request": bare["request"]})["response"]["status"] == 0
