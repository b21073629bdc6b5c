"""The benchmark of asynchronous training, and the shares of several processes in the runs by staleness."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentgym_trl.asynchronous.scheduler import Sizes
from agentgym_trl.asynchronous.settings import VirtualTimes
from benchmarks import asynchronous
from benchmarks.seed_runs import claimed

pytestmark = pytest.mark.slow


def test_asynchronous_training_plays_more_episodes_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "SIZES", Sizes(batch=2, group=2))
    monkeypatch.setattr(asynchronous, "WARM", 3)
    times = VirtualTimes(env=1.0, batch=0.01, token=0.001, train=5.0)
    found = asynchronous.compare(times, (2,), rollouts=3)
    assert found["lock-step, episodes/s"] < found["requests, episodes/s"] < found["staleness 2, episodes/s"]
    assert 0 < found["staleness 2, mean"] <= 2
    assert asynchronous.compare(times, (2,), rollouts=3) == found, "the clock is exact"


def test_a_run_is_claimed_once_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "seed-1" / "run.json"
    with claimed(path) as mine, claimed(path) as other:
        assert mine and not other
    with claimed(path) as again:
        assert again
        path.write_text("{}")
    with claimed(path) as done:
        assert not done
