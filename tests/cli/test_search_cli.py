"""`agentgym search`, and `agentgym serve --env-arg`."""

import contextlib
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
import pytest

from agentgym_envs.cli import search
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.factory import open_retriever
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.retrieval.manifest import MANIFEST, read_manifest
from agentgym_envs.search.web.cassette import Cassette
from agentgym_envs.search.web.vendors import WebResult
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn
from tests.waiting import SECONDS

from .conftest import Run, Start

CITIES = [Passage(f"c{i}", f'"City {i}"\nCity {i} lies on the [bold]river[/] {i % 7}.') for i in range(60)]


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTGYM_TOKEN", raising=False)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "cities.jsonl"
    path.write_text("".join(json.dumps(city._asdict()) + "\n" for city in CITIES))
    return path


@pytest.fixture
def made(run: Run, corpus: Path) -> Path:
    outcome = run("search", "index", corpus)
    assert outcome.code == 0, outcome
    return corpus.with_name("cities.index")


def finish(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


def test_an_index_is_written_beside_its_corpus_by_default(run: Run, corpus: Path) -> None:
    outcome = run("search", "index", corpus)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(r"\S+/cities\.index holds 60 passages of cities for tantivy \(.* MB; .* s\)\n", outcome.out)
    assert run("search", "index", corpus, "--out", "here/deep").code == 0
    assert read_manifest(Path("here/deep"))["sha256"] == read_manifest(corpus.with_name("cities.index"))["sha256"]


def test_query_shows_the_passages(run: Run, made: Path) -> None:
    outcome = run("search", "query", made, "city 17", "-k", 2)
    assert (outcome.code, outcome.err) == (0, "")
    assert "City 17 lies on the [bold]river[/] 3." in outcome.out
    assert outcome.out.index(" c17 ") < outcome.out.index("2 passages; tantivy")
    assert "nothing was found" in run("search", "query", made, "zzz").out


def test_an_engine_is_added_to_an_index(run: Run, made: Path) -> None:
    outcome = run("search", "index", made, "--engine", "dense", "--model", "hashing")
    assert (outcome.code, outcome.err) == (0, "")
    assert "for tantivy, dense" in outcome.out
    assert "c17" in run("search", "query", made, "city 17", "--engine", "dense").out
    assert "c17" in run("search", "query", made, "city 17", "--engine", "hybrid").out


def test_options_of_an_engine_are_passed_on(run: Run, refuses: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    Cassette(path).record("brave", "capital of Peru", 10, [WebResult("Lima", "https://x/lima", "Lima is the capital.")])
    options = ("--engine", "brave", "-o", f"cassette={path}", "-o", "replay=true")
    assert "Lima is the capital." in run("search", "query", "capital of Peru", *options).out
    assert "holds no search of brave" in run("search", "query", "capital of Chile", *options).err
    assert "--option takes KEY=VALUE" in refuses("search", "query", "x", "-o", "replay").err
    retriever, about = search.open_or_embedded(None, "brave", {"cassette": str(path), "replay": True})
    assert about == {"engine": "brave"} and retriever.search(["capital of Peru"], 1)[0]


@pytest.mark.slow
def test_invalid_requests_print_one_line(refuses: Run, made: Path, corpus: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": 1, "contents": "x"}\n{"id": 2}\n')
    assert f'{bad}:2: there is no "contents"' in refuses("search", "index", bad).err
    assert "cannot be read: No such file" in refuses("search", "index", tmp_path / "none.jsonl").err
    assert "exists and is not an index" in refuses("search", "index", corpus, "--out", tmp_path).err
    assert "--overwrite replaces it" in refuses("search", "index", bad, "--out", made).err
    assert "is an index" in refuses("search", "index", made, "--out", tmp_path / "other").err
    assert "is not an index" in refuses("search", "index", tmp_path).err
    assert "there is no engine 'lucene'" in refuses("search", "index", corpus, "--engine", "lucene").err
    assert "tantivy has none" in refuses("search", "index", corpus, "--model", "e5").err
    assert "--engine dense needs --model" in refuses("search", "index", corpus, "--engine", "dense").err
    assert "is an index; add a query" in refuses("search", "query", made).err
    assert "in quotes" in refuses("search", "query", made, "city", "seven").err
    assert "is not an index" in refuses("search", "query", tmp_path, "city").err
    assert "not built for the engine 'bm25s'" in refuses("search", "query", made, "city", "--engine", "bm25s").err
    assert "there is no engine 'lucene'" in refuses("search", "serve", made, "--engine", "lucene").err
    assert "there is no token" in refuses("search", "serve", made, "--host", "0.0.0.0").err
    (made / MANIFEST).write_text('{"format": 99}')
    assert "has the format 99" in refuses("search", "query", made, "city").err
    assert "has the format 99" in refuses("search", "serve", made).err


def test_a_damaged_index_prints_one_line(run: Run, made: Path) -> None:
    (made / "passages.bin").write_bytes(b"")
    outcome = run("search", "query", made, "city")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "is damaged: passages.bin has 0 bytes instead of" in outcome.err


def test_data_surveys_published_questions(run: Run, refuses: Run, tmp_path: Path) -> None:
    (tmp_path / "sets" / "nq").mkdir(parents=True)
    row = {"id": "test_0", "question": "who?", "golden_answers": ["me"]}
    (tmp_path / "sets" / "nq" / "test.jsonl").write_text(json.dumps(row) + "\n")
    shown = run("search", "data", "--source", "flashrag", "sets")
    assert (shown.code, shown.err) == (0, "")
    assert re.search(r"hotpotqa +train +hotpotqa/train\.jsonl +0 +90,447 +130881 to 221327", shown.out)
    assert "nq/test.jsonl has 3609 fewer rows than are published" in shown.out
    found = run("search", "data", "sets", "--json").json
    assert found["source"] == "flashrag" and len({row["name"] for row in found["files"]}) == 7
    assert (found["files"][0]["rows"], found["files"][0]["published"], found["files"][8]["first"]) == (1, 3610, 130881)
    assert "holds none of FlashRAG's files" in refuses("search", "data", tmp_path).err
    assert "--source takes flashrag, not 'beir'" in refuses("search", "data", "sets", "--source", "beir").err


def test_the_command_without_arguments_shows_its_help(run: Run) -> None:
    outcome = run("search")
    assert (outcome.code, outcome.err) == (0, "")
    assert all(name in outcome.out for name in search.COMMANDS)


@pytest.mark.slow
def test_serve_answers_like_search_r1(start: Start, made: Path) -> None:
    process, url, shown = start("search", "serve", made, "--env", "textcraft", says="/docs")
    body = {"queries": ["city 17", "river"], "topk": 2, "return_scores": True}
    result = httpx.post(f"{url}/retrieve", json=body, trust_env=False).json()["result"]
    wanted = open_index(made).search(["city 17", "river"], 2)
    assert [[(hit["document"]["id"], hit["score"]) for hit in hits] for hits in result] == [
        [(hit.passage.id, hit.score) for hit in hits] for hits in wanted
    ]
    health = httpx.get(f"{url}/health", trust_env=False).json()
    assert (health["engine"], health["corpus"], health["passages"]) == ("tantivy", "cities", 60)
    assert health["sha256"] == read_manifest(made)["sha256"]
    assert "AgentGym/TextCraft-v0" in shown.read_text()
    assert (
        f"POST {url}/retrieve searches" in shown.read_text() and "tantivy over cities, 60 passages" in shown.read_text()
    )
    assert gym.make("AgentGym/TextCraft-v0", base_url=url).reset(seed=3)[0]
    assert finish(process, signal.SIGTERM) == (0, "")


@pytest.mark.slow
def test_the_default_corpus_is_embedded_and_a_token_is_required(start: Start, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    process, url, shown = start("search", "serve", "--token-file", tmp_path / "token", says="/docs")
    assert "over embedded, 5" in shown.read_text()
    body = {"query": "capital of Norway"}
    assert httpx.post(f"{url}/retrieve", json=body, trust_env=False).status_code == 401
    given = {"Authorization": "Bearer secret"}
    (hits,) = httpx.post(f"{url}/retrieve", json=body, headers=given, trust_env=False).json()["result"]
    assert "Norway" in hits[0]["contents"]
    assert finish(process, signal.SIGINT)[0] == 130


# Arguments of served environments


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    task = {"id": "own/0", "split": "train", "group": "own", "goal": "Which river is at City 17?"}
    path.write_text(json.dumps({**task, "data": {"answers": ["3"], "passages": ["c17"], "queries": ["City 17"]}}))
    return path


def play(url: str) -> dict[str, Any]:
    env = gym.make("AgentGym/Search-v0", base_url=url)
    assert env.reset(seed=0)[0] == "Question: Which river is at City 17?"
    assert env.step("<search>City 17</search>")[4]["hits"][0] == "c17"
    info = env.step("<answer>3</answer>")[4]
    env.close()
    return info


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("isolate", [[], ["--isolate", "--workers", 1]])
def test_environments_search_a_custom_corpus(start: Start, made: Path, own: Path, isolate: list[object]) -> None:
    given = ["--env-arg", f"questions={own}", "--env-arg", f"index={made}"]
    process, url, shown = start("serve", "search", "textcraft", *given, *isolate, says="/docs")
    assert play(url)["success"]
    assert ("workers (at most 1)" in shown.read_text()) == bool(isolate)
    refused = httpx.post(
        f"{url}/v2/sessions", json={"env": "AgentGym/Search-v0", "options": {"index": "/etc"}}, trust_env=False
    )
    assert refused.status_code == 422 and "not ['index']" in refused.text
    assert finish(process, signal.SIGTERM) == (0, "")


@pytest.mark.slow
def test_environments_served_with_an_index_search_it(start: Start, made: Path) -> None:
    _, url, _ = start("search", "serve", made, "--env", "search", says="/docs")
    with contextlib.closing(gym.make("AgentGym/Search-v0", base_url=url)) as env:
        env.reset(seed=0)
        here = env.step("<search>city</search>")[4]["hits"]
    assert here == [hit.passage.id for hit in open_retriever("tantivy", made).search(["city"], 3)[0]]


@pytest.mark.slow
def test_environments_with_an_engine_on_a_server_run_in_workers(
    start: Start, made: Path, own: Path, tmp_path: Path
) -> None:
    _, engine, _ = start("search", "serve", made, says="/docs")
    given = ["--env-arg", f"questions={own}", "--env-arg", f"retriever={engine}"]
    _, url, shown = start("serve", "search", *given, "--workers", 1, says="/docs")
    assert "workers (at most 1)" in shown.read_text()
    assert play(url)["success"]


@pytest.mark.slow
def test_invalid_arguments_print_one_line(refuses: Run, tmp_path: Path) -> None:
    assert "no served environment has an argument base_url: AgentGym/TextCraft-v0 has" in (
        refuses("serve", "textcraft", "--env-arg", "base_url=http://x").err
    )
    assert "KEY=VALUE" in refuses("serve", "textcraft", "--env-arg", "index").err
    assert "max_distractors" in refuses("serve", "textcraft", "--port", 0, "--env-arg", "max_distractors=-1").err
    assert "there are no questions" in refuses("serve", "search", "--port", 0, "--env-arg", "questions=nowhere").err
    assert "is not an index" in refuses("serve", "search", "--port", 0, "--env-arg", f"index={tmp_path}").err


def test_demos_leave_out_questions_whose_answer_the_corpus_does_not_show(run: Run, made: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    rows = [{"question": "Which river is at City 8?", "golden_answers": [answer]} for answer in ("City 8", "Rhine")]
    mine.write_text("\n".join(map(json.dumps, rows)))
    words = ("--env-arg", f"index={made}", "--env-arg", f"questions={mine}", "--split", "test", "--out", "d.jsonl")
    assert run("demos", "search", *words).out == "1 demonstrations in d.jsonl\nleft out: 1 tasks have no oracle\n"


def judged(task: str, correct: bool, em: float) -> Trajectory:
    record = {"correct": correct, "model": "m", "version": "v1", "prompt": []}
    turn = Turn("Question", "<answer>x</answer>", float(correct), {"judge": record, "em": em})
    row = Task(task, "test", "g", "Q?", {"answers": ["a"]})
    return Trajectory(
        env_id="AgentGym/Search-v0",
        env_kwargs={},
        task=row,
        seed=0,
        instructions="",
        turns=(turn,),
        final_observation="",
        score=float(correct),
        success=correct,
        stop_reason="success" if correct else "failure",
    )


def test_agreement_counts_the_verdicts_of_the_judge(run: Run, refuses: Run, tmp_path: Path) -> None:
    verdicts = [(True, 1.0)] * 4 + [(False, 0.0)] * 3 + [(True, 0.0)] * 2 + [(False, 1.0)]
    path = tmp_path / "trajectories.jsonl"
    with TrajectoryWriter(path) as writer:
        for number, (correct, em) in enumerate(verdicts):
            writer.write(judged(f"t/{number}", correct, em))
    found = run("search", "agreement", tmp_path, "--json").json
    assert (found["episodes"], found["agreement"], found["judges"]) == (10, 0.7, ["m with v1"])
    assert found["kappa"] == pytest.approx((0.7 - 0.5) / (1 - 0.5))  # the judge accepts 6 of 10, exact match 5
    assert found["interval"][0] < 0.7 < found["interval"][1]
    assert "only the judge accepts 2, only exact match accepts 1" in run("search", "agreement", path).out
    path.write_text("")
    assert "no answer of these episodes was judged" in refuses("search", "agreement", path).err
    assert "there are no trajectories in" in refuses("search", "agreement", tmp_path / "x").err
