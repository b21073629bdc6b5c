"""Measure building and searching an index of a million passages.

    python -m benchmarks.search_scale [--passages 1000000] [--engine tantivy] [--folder DIR] [--out FILE.json]

The corpus is synthetic: passages of 100 words that follow Zipf's law over a million words, in Search-R1's format. It is
indexed by `agentgym search index` in a process of its own, and searched in another, by questions of nine words: four
stop words, two middling words of a passage and three rare ones, each question's passage being known. The folder needs
some 3 kB a passage; what is written there is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.common import machine

_ONSETS = "b c d f g h j k l m n p r s t v w z br st tr pl sh ch gr"
SYLLABLES = [onset + vowel for onset in _ONSETS.split() for vowel in "aeiou"]
_COMMON = (
    "the of and in to a was is for on as by with he that at from his it an were are which this also be has had or its "
    "new first who one after their but not she have her been they two other when there all during into school time"
)
COMMON = _COMMON.split()
WORDS, LENGTH, AT_ONCE = 1_000_000, 100, 20_000
QUESTIONS, EVERY = 2_000, 100
MB = 1e6

ASK = """
import json, os, sys, time
began, cpu = time.perf_counter(), time.process_time()
from agentgym_envs.search.retrieval.index import open_index
retriever = open_index(sys.argv[1], sys.argv[2])
ready = time.perf_counter() - began
questions = json.load(open(sys.argv[3]))
result = {"ready_seconds": ready}
for batch in (1, 64):
    hits, times = 0, []
    retriever.search([questions[-1][1]], 3)
    for place in range(0, len(questions), batch):
        some = questions[place : place + batch]
        began = time.process_time()
        found = retriever.search([text for _, text in some], 3)
        times.append(time.process_time() - began)
        hits += sum(any(hit.passage.id == wanted for hit in one) for (wanted, _), one in zip(some, found))
    times.sort()
    result[f"batch {batch}"] = {
        "queries_per_cpu_second": len(questions) / sum(times),
        "p95_ms": 1000 * times[int(0.95 * len(times))],
        "hit@3": hits / len(questions),
    }
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
result["anonymous_mb"] = int(status["RssAnon"].split()[0]) / 1000
print(json.dumps(result))
"""


def word(number: int) -> str:
    number, text = number + len(SYLLABLES), ""
    while number:
        text, number = text + SYLLABLES[number % len(SYLLABLES)], number // len(SYLLABLES)
    return text


def rows_of_words(count: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    share = np.cumsum(1 / (np.arange(1, WORDS + 1) + 2.7) ** 1.05)
    share /= share[-1]
    for begin in range(0, count, AT_ONCE):
        yield from np.searchsorted(share, rng.random((min(AT_ONCE, count - begin), LENGTH + 2)))


def make_corpus(path: Path, count: int) -> list[tuple[str, str]]:
    """Write the corpus; returns questions with the ids of their passages."""
    vocabulary = [*COMMON, *(word(number) for number in range(WORDS - len(COMMON)))]
    questions: list[tuple[str, str]] = []
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows_of_words(count)):
            words = [vocabulary[each] for each in row.tolist()]
            title, text = " ".join(words[:2]).title(), " ".join(words[2:])
            file.write(json.dumps({"id": str(number), "contents": f'"{title}"\n{text}'}) + "\n")
            if number % max(1, min(EVERY, count // QUESTIONS)) == 0 and len(questions) < QUESTIONS:
                questions.append((str(number), question(row, vocabulary, number)))
    return questions


def question(row: np.ndarray, vocabulary: list[str], number: int) -> str:
    rng = random.Random(number)
    rare = [each for each in row[2:].tolist() if each > 3_000]
    middling = [each for each in row[2:].tolist() if 100 < each <= 3_000]
    chosen = [
        vocabulary[each]
        for each in (*rng.sample(middling, min(2, len(middling))), *rng.sample(rare, min(3, len(rare))))
    ]
    chosen += rng.sample(COMMON, 4)
    rng.shuffle(chosen)
    return " ".join(chosen)


def peak_anonymous(process: subprocess.Popen[bytes]) -> float:
    """The most memory (MB) of its own that a process had until its end; mapped files are the system's."""
    peak, watched = 0, psutil.Process(process.pid)
    while process.poll() is None:
        try:
            memory = watched.memory_info()
            peak = max(peak, memory.rss - getattr(memory, "shared", 0))
        except psutil.Error:
            break
        time.sleep(0.1)
    return peak / MB


def make_index(corpus: Path, folder: Path, engine: str) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "agentgym_envs", "search", "index", str(corpus), "--out", str(folder)]
    process = subprocess.Popen([*command, "--engine", engine], stdout=subprocess.DEVNULL)
    anonymous = peak_anonymous(process)
    if process.wait():
        raise SystemExit("the index was not made")
    after, taken = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    size = {path.name: size_of(path) / MB for path in folder.iterdir()}
    return {
        "seconds": taken,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_rss_mb": after.ru_maxrss / 1000,
        "peak_anonymous_mb": anonymous,
        "corpus_mb": corpus.stat().st_size / MB,
        "passages_mb": size["passages.bin"] + size["passages.idx"],
        "engine_mb": size[engine],
    }


def size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(part.stat().st_size for part in path.rglob("*"))


def measure(count: int, engine: str, folder: Path) -> dict[str, Any]:
    corpus, index, asked = folder / "corpus.jsonl", folder / "index", folder / "questions.json"
    asked.write_text(json.dumps(make_corpus(corpus, count)), encoding="utf-8")
    made = make_index(corpus, index, engine)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ASK, str(index), engine, str(asked)]
    found = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return {"machine": machine(), "passages": count, "engine": engine, "index": made, "search": found}


def show(result: dict[str, Any]) -> None:
    table = Table("figure", "value", title=f"{result['engine']}, {result['passages']:,} passages of {LENGTH} words")
    for part in ("index", "search"):
        for name, value in result[part].items():
            for key, number in value.items() if isinstance(value, dict) else [("", value)]:
                table.add_row(f"{part}: {name} {key}".rstrip(), f"{number:,.2f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=1_000_000, help="how many passages there are")
    parser.add_argument("--engine", default="tantivy", help="which engine indexes and searches them")
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's temporary folder)")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        result = measure(arguments.passages, arguments.engine, Path(folder))
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
