"""A progress line with a small plot of the learning curve above it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.text import Text

from agentgym_trl.callbacks import ProgressLine

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEIGHT, _MAX_WIDTH = 8, 60


class LiveCurve(ProgressLine):
    """Shows success in training as an area chart that grows with every step."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        """`title` is the text before the bar."""
        super().__init__(title, console)
        self._success: list[float] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Add the step to the curve."""
        if logs and "rollout/success" in logs:
            self._success.append(float(logs["rollout/success"]))
        super().on_log(args, state, control, logs, **kwargs)

    def _make_progress(self, columns: Sequence[Any]) -> Progress:
        return _ProgressUnderCurve(*columns, console=self._console, curve=self._success)


class _ProgressUnderCurve(Progress):
    def __init__(self, *columns: Any, console: Console, curve: list[float]) -> None:
        self._curve = curve
        super().__init__(*columns, console=console)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The chart and the bar."""
        if self._curve:
            yield Text.from_markup(chart(self._curve))
        yield from super().get_renderables()


def chart(values: Sequence[float]) -> str:
    """Draw values between 0 and 1 as an area chart, with console markup; the latest 60 values fit in a line."""
    shown = list(values)[-_MAX_WIDTH:]
    labels = {_HEIGHT - 1: "success 100 %", 0: "0 %"}
    rows = [
        f"{labels.get(row, ''):>13} ┤[blue]{''.join(_cell(value, row) for value in shown)}[/]"
        for row in reversed(range(_HEIGHT))
    ]
    return "\n".join(rows)


def _cell(value: float, row: int) -> str:
    """The block of one value in a row of the chart, counted from below."""
    eighths = round(8 * (value * _HEIGHT - row))
    return _BLOCKS[max(0, min(8, eighths))]
