"""The number of examples that hypothesis runs."""

from typing import Any

from hypothesis import settings

_ALL = 100
_LEAST = 5


def examples(count: int, **more: Any) -> settings:
    """Settings with `count` examples; without the slow tests, the share of the profile's examples per hundred."""
    part = min(1.0, settings().max_examples / _ALL)
    return settings(max_examples=max(min(count, _LEAST), int(count * part)), **more)
