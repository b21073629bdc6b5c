"""The requests, tokens and cost of a model behind an API, from the recorded episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentgym_envs.cli.evaluating.model_server import Price
from agentgym_envs.trajectory import Trajectory


def usage_row(episodes: Iterable[Trajectory], price: Price | None) -> dict[str, Any]:
    """The usage as a row of `eval.json`; a number is None if the server did not count all tokens.

    Episodes that were played again, because the environment had failed, count once.
    """
    answers = [answer for episode in episodes for answer in _answers(episode)]
    row: dict[str, Any] = {"requests": sum(_number(answer.get("calls", 1)) or 0 for answer in answers)}
    for name, key in (("prompt_tokens", "prompt_tokens"), ("answer_tokens", "tokens")):
        counts = [_number(answer.get(key)) for answer in answers]
        row[name] = None if None in counts else sum(count for count in counts if count is not None)
    if price is None:
        return row
    known = row["prompt_tokens"] is not None and row["answer_tokens"] is not None
    cost = price.cost(row["prompt_tokens"], row["answer_tokens"]) if known else None
    return row | {"dollars_per_million_tokens": price._asdict(), "dollars": cost}


def usage_note(usage: Mapping[str, Any]) -> str:
    """The usage as a sentence."""
    found = f"The model answered {usage.get('requests', 0):,} requests"
    read, wrote = usage.get("prompt_tokens"), usage.get("answer_tokens")
    if read is None or wrote is None:
        return f"{found}; the server did not count the tokens."
    found += f"; it read {read:,} tokens and wrote {wrote:,}"
    price, dollars = usage.get("dollars_per_million_tokens"), usage.get("dollars")
    if price is None or dollars is None:
        return f"{found}. For the cost, give --price INPUT,OUTPUT (dollars per million tokens)."
    return (
        f"{found}: ${dollars:,.4f} at ${price['input']:g} and ${price['output']:g} per million, without discounts for "
        "cached input."
    )


def _answers(episode: Trajectory) -> Iterator[Mapping[str, Any]]:
    """The counts of each answer, or of all answers of an agent; those of a team's members one by one."""
    agent = episode.meta.get("agent")
    if isinstance(agent, Mapping) and "calls" in agent:
        yield {**agent, "tokens": agent.get("answer_tokens")}
        return
    for turn in episode.turns:
        members = turn.info.get("answers")
        yield from members.values() if isinstance(members, Mapping) else [turn.info]


def _number(value: object) -> int | None:
    return value if type(value) is int else None
