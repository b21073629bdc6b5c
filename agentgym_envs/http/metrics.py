"""The counters and timings of `/metrics`, in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

if TYPE_CHECKING:
    from agentgym_envs.http.sessions import Sessions

_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class _MethodCounts:
    """The calls of a method, and the requests that carried them by duration."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0
        self.buckets = [0] * (len(_SECONDS) + 1)


class _CallMetrics:
    """Counts calls faster than a Counter and a Histogram, which lock: all calls come from one event loop."""

    def __init__(self) -> None:
        self.methods: dict[str, _MethodCounts] = {}

    def collect(self) -> Iterator[Metric]:
        """The metrics in the form of prometheus_client."""
        calls = CounterMetricFamily("agentgym_calls", "Calls carried out", labels=["method"])
        requests = HistogramMetricFamily("agentgym_request_seconds", "Time to carry out a request", labels=["method"])
        bounds = [*map(str, _SECONDS), "+Inf"]
        for method, counts in self.methods.items():
            calls.add_metric([method], counts.calls)
            buckets = list(zip(bounds, map(float, accumulate(counts.buckets)), strict=True))
            requests.add_metric([method], buckets, counts.seconds)
        yield from (calls, requests)


class ServerMetrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._calls = _CallMetrics()
        registry.register(self._calls)
        self._reaped = Counter(
            "agentgym_reaped_sessions",
            "Sessions closed because they were idle or their worker died",
            ["env"],
            registry=registry,
        )
        self._sessions = Gauge("agentgym_sessions", "Sessions that are open", ["env"], registry=registry)
        self._bound = Gauge("agentgym_max_sessions", "Sessions that may be open", registry=registry)
        self._workers = Gauge("agentgym_workers", "Live worker processes", registry=registry)

    def called(self, method: str, seconds: float, count: int = 1) -> None:
        """Count a request with `count` calls."""
        counts = self._calls.methods.get(method)
        if counts is None:
            counts = self._calls.methods[method] = _MethodCounts()
        counts.calls += count
        counts.seconds += seconds
        counts.buckets[bisect_left(_SECONDS, seconds)] += 1

    def reaped(self, env_id: str) -> None:
        """Count a session that was closed because it was idle or lost."""
        self._reaped.labels(env_id).inc()

    def text(self, sessions: Sessions) -> tuple[bytes, str]:
        """The text of all metrics, and its media type."""
        for env_id in sessions.classes:
            self._sessions.labels(env_id).set(sessions.count(env_id))
        self._bound.set(sessions.max_sessions)
        self._workers.set(len(sessions.pids))
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
