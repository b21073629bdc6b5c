"""The counts of calls, compared with prometheus_client's own counter and histogram."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from agentgym_envs.http.metrics import _SECONDS, ServerMetrics
from agentgym_envs.http.sessions import Sessions
from tests.trying import examples

METHODS = ("step", "batch", 'odd "name"\n')
CALLS = st.lists(
    st.tuples(st.sampled_from(METHODS), st.sampled_from(_SECONDS) | st.floats(0, 60), st.integers(0, 300)), max_size=8
)
NO_SESSIONS = Sessions([])


@examples(40)
@given(CALLS)
def test_calls_are_counted_as_by_prometheus(calls):
    registry, ours = CollectorRegistry(), ServerMetrics()
    counter = Counter("agentgym_calls", "Calls carried out", ["method"], registry=registry)
    histogram = Histogram(
        "agentgym_request_seconds", "Time to carry out a request", ["method"], buckets=_SECONDS, registry=registry
    )
    for method, seconds, count in calls:
        ours.called(method, seconds, count)
        counter.labels(method).inc(count)
        histogram.labels(method).observe(seconds)
    theirs = [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
    assert ours.text(NO_SESSIONS)[0].decode().splitlines()[: len(theirs)] == theirs
