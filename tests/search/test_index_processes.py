"""Building an index in processes that are killed, interrupted, out of disk space or concurrent."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.search.retrieval import building, tantivy_engine
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.building import index_corpus, partial_of
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.retrieval.manifest import read_manifest
from agentgym_envs.search.retrieval.passages import OFFSETS, TEXTS
from tests.search.cities import line, stop_at_engine, write
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from agentgym_envs.search.retrieval import building, tantivy_engine
building.STATE_EVERY, tantivy_engine.COMMIT_EVERY = 5_000, 10_000
from agentgym_envs.cli import main
{meanwhile}
sys.exit(main(sys.argv[1:]))
"""
WAITS_AFTER_A_STEP = """
import time
keep = building._save_state
def keep_and_wait(*arguments):
    keep(*arguments)
    time.sleep(600)
building._save_state = keep_and_wait
"""
_WORDS = "amber basalt cedar delta ember fjord garnet harbor iris jade kelp lagoon marsh nectar onyx pearl"
WORDS = _WORDS.split()


def many(count: int) -> list[Passage]:
    pick: Callable[[int, int], str] = lambda i, j: WORDS[(i * 31 + j * j * (i % 13 + 1)) % len(WORDS)]  # noqa: E731
    return [Passage(f"p{i}", f'"{pick(i, 1)} {i}"\n{" ".join(pick(i, j) for j in range(20))}') for i in range(count)]


def start(corpus: Path, folder: Path, meanwhile: str = "", **options: Any) -> subprocess.Popen[str]:
    words = ["search", "index", str(corpus), "--out", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM.format(meanwhile=meanwhile), *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **options)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, shown = process.communicate(timeout=SECONDS)
    return process.returncode, shown


def progress(folder: Path) -> tuple[int, int]:
    """Return the number of passages that were saved, and of those that were indexed."""
    partial = partial_of(folder)
    try:
        read = json.loads((partial / building.STATE).read_text())["passages"]
    except FileNotFoundError:
        read = 0
    return read, tantivy_engine.committed(partial / "tantivy.partial")


def same(one: Path, other: Path, queries: Sequence[str]) -> None:
    for name in (TEXTS, OFFSETS):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert read_manifest(one)["sha256"] == read_manifest(other)["sha256"]
    assert open_index(one).search(queries, 10) == open_index(other).search(queries, 10)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus, and its index from an uninterrupted build."""
    folder = tmp_path_factory.mktemp("large")
    corpus = write(folder / "large.jsonl", map(line, many(30_000)))
    index_corpus(corpus, folder / "whole")
    return corpus, folder / "whole"


QUERIES = [f"{one} {other} {number}" for number, (one, other) in enumerate(zip(WORDS, WORDS[3:], strict=False))]


@pytest.mark.rotating
def test_a_build_killed_repeatedly_gives_the_same_index(large: tuple[Path, Path], tmp_path: Path) -> None:
    corpus, whole = large
    folder, kills, last = tmp_path / "out", 0, (0, 0)
    while not folder.exists():
        process = start(corpus, folder)
        until(lambda: progress(folder) > last or folder.exists() or process.poll() is not None)  # noqa: B023
        process.kill()
        code, shown = ended(process)
        assert shown == ""
        kills += code == -signal.SIGKILL
        if not folder.exists():
            assert progress(folder) >= last, "committed passages were lost"
            last = progress(folder)
    assert kills >= 3
    same(folder, whole, QUERIES)


def test_ctrl_c_prints_how_to_resume(large: tuple[Path, Path], tmp_path: Path) -> None:
    corpus, whole = large
    folder = tmp_path / "out"
    process = start(corpus, folder, WAITS_AFTER_A_STEP)
    until(lambda: progress(folder) > (0, 0) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    code, shown = ended(process)
    assert (code, shown.count("\n")) == (130, 1)
    assert f"saved in {partial_of(folder)}; run the same command again to resume" in shown
    assert ended(start(corpus, folder)) == (0, "")
    same(folder, whole, QUERIES)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("read_before", [False, True])
def test_a_build_resumes_after_a_full_disk(large: tuple[Path, Path], tmp_path: Path, read_before: bool) -> None:
    """Files may not grow beyond 20 kB: too little for the passages, or for the engine if the passages exist."""
    resource = pytest.importorskip("resource")
    corpus, whole = large
    folder = tmp_path / "out"
    if read_before:
        with pytest.raises(KeyboardInterrupt):
            index_corpus(corpus, folder, report=stop_at_engine)

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    code, shown = ended(start(corpus, folder, preexec_fn=small))
    assert (code, shown.count("\n")) == (1, 1), shown
    assert "too large" in shown and "run the same command again" in shown
    assert not folder.exists()
    assert ended(start(corpus, folder)) == (0, "")
    same(folder, whole, QUERIES)


def test_processes_may_build_the_same_index_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from agentgym_envs.search.retrieval.base import Passage\n"
        "from agentgym_envs.search.retrieval.index import build_index, open_index\n"
        "build_index([Passage(str(i), f'number {i}') for i in range(3000)], Path(sys.argv[1]), corpus='c')\n"
        "print(open_index(sys.argv[1]).search(['number 7'], 1)[0][0].passage.id)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, str(tmp_path / "made")]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=SECONDS)[0] for process in processes] == ["7\n"] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
