"""Measure a search, a request and a turn, with other engines and a server like Search-R1's as baselines.

    python -m benchmarks.search [--out benchmarks/results/search.json] [--repeats 3]

All measurements use the embedded corpus and its test questions, each as one query, verbatim; `top_k` is 3. Figures are
per second of CPU on one core, medians of several repeats in which the sides alternate. Baselines: bm25s as in its
documentation (numpy, one field), SQLite's FTS5 (stemmed, title and text as fields), and a server built like Search-R1's
(FastAPI, pydantic, one endpoint in a thread pool) over the same engines. A server's figure is the CPU of its process
alone. Start-up is the time from `gym.make` to the reply to the first search, in fresh processes with an empty and with
a filled cache folder, after `import gymnasium, agentgym_envs`. Steps are those of episodes of five turns (four searches
and an answer), resets included.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
from rich.console import Console
from rich.table import Table

import agentgym_envs  # noqa: F401 (registers the ids)
from agentgym_envs.search.corpus.embedded import embedded_passages
from agentgym_envs.search.questions.sets import open_questions
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.factory import open_retriever
from agentgym_envs.search.retrieval.words import STOP_WORDS
from benchmarks.common import machine, run, verdict
from benchmarks.serving import Served, serving

TOP_K = 3
QUESTIONS = 1_100
SLOW = 150
"""Number of queries for engines that take milliseconds."""
BATCH = 64
AT_LEAST = {
    "search: tantivy": 1_500.0,
    "search: bm25s": 10_000.0,
    "server: tantivy, 1 a request": 1_200.0,
    f"server: bm25s, {BATCH} a request": 5_000.0,
    "environment: steps": 1_400.0,
}
AT_MOST = {"ready: the first time, s": 2.0, "ready: afterwards, s": 0.2}
Search = Callable[[Sequence[str]], Any]
Note = Callable[[str, float], None]

SERVE = """
import sys
from agentgym_envs.http.app import create_app
from agentgym_envs.http.retrieve import retrieve_routes
from agentgym_envs.http.run import make_server
from agentgym_envs.search.retrieval.factory import open_retriever
routes = retrieve_routes(open_retriever({engine!r}, None))
make_server(create_app([], mounts=[routes]), "127.0.0.1", int(sys.argv[1])).run()
"""
SERVE_AS_SEARCH_R1 = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from agentgym_envs.search.retrieval.factory import open_retriever

class Request(BaseModel):
    queries: list[str]
    topk: int | None = None
    return_scores: bool = False

app, engine = FastAPI(), open_retriever({engine!r}, None)

@app.get("/health")
def health():
    return {{}}

@app.post("/retrieve")
def retrieve(request: Request):
    found = engine.search(request.queries, request.topk or 3)
    return {{"result": [[{{"document": hit.passage._asdict(), "score": hit.score}} for hit in hits] for hits in found]}}

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""
READY = """
import time
import gymnasium, agentgym_envs
begun = time.perf_counter()
env = gymnasium.make("AgentGym/Search-v0")
env.reset(seed=0)
env.step("<search>highest mountain of Peru</search>")
print(time.perf_counter() - begun)
"""


def measure(repeats: int) -> dict[str, Any]:
    samples: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    queries = [task.goal for task in open_questions("embedded").sample(QUESTIONS, split="test", seed=3)]
    engines = {name: open_retriever(name, None) for name in ("tantivy", "bm25s")}
    with other_engines() as others:
        for _ in range(repeats):
            measure_searches(engines, others, queries, note)
            measure_steps(queries, note)
            measure_servers(queries, note)
            measure_ready(note)
    figures = {name: statistics.median(values) for name, values in samples.items()}
    targets = {"at most": AT_MOST, "at least": AT_LEAST}
    return {"machine": machine(), "repeats": repeats, "median": figures, "targets": targets, "samples": samples}


def measure_searches(
    engines: dict[str, Retriever], others: dict[str, Search], queries: Sequence[str], note: Note
) -> None:
    for name, engine in engines.items():
        search = partial(engine.search, k=TOP_K)
        note(f"search: {name}", per_second(search, queries, 1))
        note(f"search: {name}, {BATCH} at a time", per_second(search, queries, BATCH))
    for name, other in others.items():
        note(f"search: {name}", per_second(other, queries[:SLOW], 1))


def per_second(search: Search, queries: Sequence[str], batch: int) -> float:
    """Queries for a second of CPU."""
    parts = [queries[begin : begin + batch] for begin in range(0, len(queries), batch)]
    search(parts[0])
    begun = time.process_time()
    for part in parts:
        search(part)
    return len(queries) / (time.process_time() - begun)


@contextmanager
def other_engines() -> Iterator[dict[str, Search]]:
    """Plain bm25s and SQLite's FTS5 over the same passages."""
    passages = list(embedded_passages())
    with tempfile.TemporaryDirectory() as folder:
        database = fts5(Path(folder) / "passages.db", [(passage.title, passage.text) for passage in passages])
        yield {
            "plain bm25s (numpy)": plain_bm25s([f"{passage.title}\n{passage.text}" for passage in passages]),
            "SQLite FTS5": lambda queries: [ask_fts5(database, query) for query in queries],
        }
        database.close()


def plain_bm25s(texts: list[str]) -> Search:
    import bm25s

    def words(of: list[str]) -> Any:
        return bm25s.tokenize(of, stopwords="en", show_progress=False)

    engine = bm25s.BM25(method="lucene")
    engine.index(words(texts), show_progress=False)
    return lambda queries: engine.retrieve(words(list(queries)), k=TOP_K, show_progress=False)


def fts5(path: Path, rows: Sequence[tuple[str, str]]) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    tokens = "porter unicode61 remove_diacritics 2"
    database.execute(f"create virtual table passages using fts5(title, body, tokenize='{tokens}', detail=column)")
    database.executemany("insert into passages values (?, ?)", rows)
    database.execute("insert into passages(passages) values ('optimize')")
    database.commit()
    return database


def ask_fts5(database: sqlite3.Connection, query: str) -> list[Any]:
    words = [word for word in dict.fromkeys(re.findall(r"\w+", query.lower())) if word not in STOP_WORDS]
    match = " OR ".join(f'"{word}"' for word in words)
    order = f"order by bm25(passages, 1.5, 1.0) limit {TOP_K}"
    return database.execute(f"select rowid from passages where passages match ? {order}", (match,)).fetchall()


def measure_steps(queries: Sequence[str], note: Note) -> None:
    """Turns of an environment as a policy would write them, a thought and a search or an answer."""
    env = gym.make("AgentGym/Search-v0")
    env.reset(seed=0)
    actions = [f"<think>What do I know of this?</think>\n<search>{query}</search>" for query in queries]
    env.step(actions[0])
    begun, steps = time.process_time(), 0
    for seed, first in enumerate(range(0, len(actions), 4)):
        env.reset(seed=seed)
        for action in (*actions[first : first + 4], "<think>So.</think>\n<answer>42</answer>"):
            env.step(action)
            steps += 1
    note("environment: steps", steps / (time.process_time() - begun))
    env.close()


def measure_servers(queries: Sequence[str], note: Note) -> None:
    for engine, batch in (("tantivy", 1), ("tantivy", BATCH), ("bm25s", 1), ("bm25s", BATCH)):
        for name, code in (("", SERVE), ("Search-R1's shape, ", SERVE_AS_SEARCH_R1)):
            with serving(code.format(engine=engine)) as server:
                figure = asyncio.run(ask_server(server, queries, batch))
            note(f"server: {name}{engine}, {batch} a request", figure)


async def ask_server(server: Served, queries: Sequence[str], batch: int, rounds: int = 3) -> float:
    """Queries for a second of the server's CPU."""
    many = list(queries) * (rounds if batch == 1 else 4 * rounds)
    parts = [many[begin : begin + batch] for begin in range(0, len(many), batch)]
    gate = asyncio.Semaphore(16 if batch == 1 else 4)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:

        async def ask(part: list[str]) -> None:
            async with gate:
                body = {"queries": part, "topk": TOP_K, "return_scores": True}
                (await client.post("/retrieve", json=body)).raise_for_status()

        await asyncio.gather(*(ask(part) for part in parts[:20]))
        begun = server.cpu()
        await asyncio.gather(*(ask(part) for part in parts))
        return len(many) / (server.cpu() - begun)


def measure_ready(note: Note) -> None:
    with tempfile.TemporaryDirectory() as cache:
        for name in ("the first time", "afterwards"):
            environ = {**os.environ, "AGENTGYM_CACHE": cache}
            environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as after the installation
            done = subprocess.run(
                [sys.executable, "-c", READY], env=environ, capture_output=True, text=True, check=True
            )
            note(f"ready: {name}, s", float(done.stdout))


def show(result: dict[str, Any]) -> None:
    table = Table(title=f"Search: median of {result['repeats']} repeats; queries or turns a second of CPU on one core")
    for column in ("figure", "measured", "target", "met"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, value in sorted(result["median"].items()):
        table.add_row(name, f"{value:.2f}" if value < 10 else f"{value:,.0f}", *verdict(name, value, AT_LEAST, AT_MOST))
    Console().print(table)


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=3)
