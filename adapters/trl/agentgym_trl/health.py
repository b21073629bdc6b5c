"""`HealthWatch`: a warning before a run collapses, and a stop once it has.

The rules compare the mean of the last `WINDOW` logged steps with the first `WINDOW` of the run, or with the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import Console
from transformers import TrainerCallback

from agentgym_trl.distributed import anywhere

WINDOW = 10
Rows = Sequence[Mapping[str, Any]]
_SCORE = "rollout/score"
_WORTHLESS = 0.1
"""A score below this has not learned enough to collapse."""


class Sign(NamedTuple):
    """A sign that a run is about to collapse: its name, what is seen, and what to do."""

    name: str
    seen: str
    advice: str


def signs(rows: Rows) -> Iterator[Sign]:
    """The signs in the logged steps of a run, oldest first; none in the first `2 * WINDOW` steps."""
    if len(rows) < 2 * WINDOW:
        return
    first, last = _means(rows[:WINDOW]), _means(rows[-WINDOW:])
    yield from _entropy(first, last)
    yield from _answers(first, last)
    yield from _groups(last)
    if last.get("effective_sample_size", 1.0) < 0.5:
        share = f"{last['effective_sample_size']:.0%}"
        yield Sign("weights", f"the effective sample size is {share} of the tokens", "make fewer updates per rollout")
    if last.get("kl", 0.0) > 1.0:
        yield Sign("kl", f"the KL divergence is {last['kl']:.2f} nats per token", "set --kl-clip, or a larger --beta")
    if (best := _best_score(rows)) >= _WORTHLESS and last.get(_SCORE, best) < 0.75 * best:
        yield Sign("score", f"the score fell from {best:.2f} to {last[_SCORE]:.2f}", "lower the learning rate")


def collapse(rows: Rows) -> str | None:
    """The observation if the mean score of the last `WINDOW` steps is below half of the best such mean; or None.

    The best must be at least 0.1.
    """
    best = _best_score(rows)
    if len(rows) < 2 * WINDOW or best < _WORTHLESS:
        return None
    last = _means(rows[-WINDOW:])[_SCORE]
    return f"the score fell from {best:.2f} to {last:.2f}" if last < best / 2 else None


class HealthWatch(TrainerCallback):  # type: ignore[misc]
    """Prints each sign of a collapse once, and may stop the run when its score has collapsed."""

    def __init__(self, *, stops: bool, console: Console | None = None) -> None:
        """`stops`: stop the run, with a checkpoint, when its score has collapsed."""
        self._stops, self._console = stops, console or Console(stderr=True)
        self._warned = set[str]()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Check the steps so far, after each logged step."""
        if _SCORE not in (logs or {}):
            return
        rows = [row for row in state.log_history if _SCORE in row]
        for sign in signs(rows):
            if sign.name not in self._warned and state.is_world_process_zero:
                self._console.print(f"[yellow]Warning at step {state.global_step}:[/] {_text(sign)}", soft_wrap=True)
            self._warned.add(sign.name)
        found = collapse(rows) if self._stops else None
        if self._stops and anywhere(found is not None):
            stop_run(state, control, found or "the score collapsed", self._console)


def stop_run(state: Any, control: Any, reason: str, console: Console) -> None:
    """Stop after this step, with a checkpoint, and print the reason."""
    control.should_save = control.should_training_stop = True
    if state.is_world_process_zero:
        console.print(f"[red]Stopping at step {state.global_step}:[/] {reason} (--stop-on-collapse)", soft_wrap=True)


def _text(sign: Sign) -> str:
    return f"the run may be about to collapse: {sign.seen}; {sign.advice}"


def _entropy(first: Mapping[str, float], last: Mapping[str, float]) -> Iterator[Sign]:
    before, now = first.get("entropy"), last.get("entropy")
    if before is not None and now is not None and now > max(2 * before, before + 1):
        seen = f"the entropy of sampled tokens rose from {before:.2f} to {now:.2f} nats"
        yield Sign("entropy", seen, "with --loss_type grpo, use dapo; otherwise lower the learning rate")


def _answers(first: Mapping[str, float], last: Mapping[str, float]) -> Iterator[Sign]:
    before, now = (means.get("rollout/truncated_answers", 0.0) for means in (first, last))
    if now > max(2 * before, 0.2):
        seen = f"truncated answers rose from {before:.0%} to {now:.0%}"
        yield Sign("answers", seen, "with --loss_type grpo, use dapo; otherwise raise --max-turn-tokens")


def _groups(last: Mapping[str, float]) -> Iterator[Sign]:
    equal, success = last.get("rollout/zero_variance_groups", 0.0), last.get("rollout/success", 1.0)
    if equal > 0.9 and success < 0.9:
        seen = f"{equal:.0%} of the groups have equal scores, at a success of {success:.0%}"
        yield Sign("groups", seen, "choose easier or harder tasks, or set --dynamic-sampling-retries")


def _best_score(rows: Rows) -> float:
    scores = [row[_SCORE] for row in rows]
    return max((fmean(scores[end - WINDOW : end]) for end in range(WINDOW, len(scores) + 1)), default=0.0)


def _means(rows: Rows) -> dict[str, float]:
    """The means of the series that every row has."""
    names = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    return {name: fmean(row[name] for row in rows) for name in names if all(row.get(name) is not None for row in rows)}
