"""How many examples hypothesis tries."""

from typing import Any

from hypothesis import settings

_ALL = 100
_LEAST = 5


def examples(count: int, **more: Any) -> settings:
    """As many, and in a run without the slow tests the part of them that its profile takes of a hundred."""
    part = min(1.0, settings().max_examples / _ALL)
    return settings(max_examples=max(min(count, _LEAST), int(count * part)), **more)
