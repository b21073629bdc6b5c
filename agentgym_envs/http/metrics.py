"""The counters and timings of `/metrics`, in Prometheus' text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from agentgym_envs.http.sessions import Sessions

_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class ServerMetrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._calls = Counter("agentgym_calls", "Calls carried out", ["method"], registry=registry)
        self._requests = Histogram(
            "agentgym_request_seconds", "Time to carry out a request", ["method"], buckets=_SECONDS, registry=registry
        )
        self._reaped = Counter(
            "agentgym_reaped_sessions",
            "Sessions closed because they were idle or their worker died",
            ["env"],
            registry=registry,
        )
        self._sessions = Gauge("agentgym_sessions", "Sessions that are open", ["env"], registry=registry)
        self._bound = Gauge("agentgym_max_sessions", "Sessions that may be open", registry=registry)
        self._workers = Gauge("agentgym_workers", "Live worker processes", registry=registry)
        self._counted: dict[str, tuple[Counter, Histogram]] = {}  # looking labels up is slower than counting

    def called(self, method: str, seconds: float, count: int = 1) -> None:
        """Count a request with `count` calls."""
        counted = self._counted.get(method)
        if counted is None:
            counted = self._counted[method] = (self._calls.labels(method), self._requests.labels(method))
        counted[0].inc(count)
        counted[1].observe(seconds)

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
