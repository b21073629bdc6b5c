"""The tokens of single answers, out of recorded segments and back into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentgym_envs.rollout.token_file import TokenRecord
from agentgym_envs.rollout.tokens import mask_of_spans
from agentgym_envs.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The tokens that the policy read before an answer, those that it sampled, and their log-probabilities."""

    prompt_ids: list[int]
    ids: list[int]
    logprobs: list[float | None] | None = None
    reward: float = 0.0


def answers_of(trajectory: Trajectory, segments: Sequence[TokenRecord]) -> list[AnswerTokens] | None:
    """The tokens of each turn; None unless the segments have exactly one answer per turn."""
    answers = [answer for segment in segments for answer in _answers(segment)]
    return answers if segments and len(answers) == len(trajectory.turns) else None


def segments_by_agent(
    views: Mapping[str, Trajectory], segments: Sequence[TokenRecord]
) -> dict[str, Sequence[TokenRecord]]:
    """The segments of each agent of a team, which are recorded in agent order; empty where they do not fit."""
    left, found = list(segments), dict[str, Sequence[TokenRecord]]()
    for agent, view in views.items():
        count, own = 0, list[TokenRecord]()
        while left and (count < len(view.turns) or not left[0].turn_spans):
            own.append(left.pop(0))
            count += len(own[-1].turn_spans)
        found[agent] = own if count == len(view.turns) else ()
    return found if not left else dict.fromkeys(views, ())


def to_segments(answers: Iterable[AnswerTokens]) -> list[TokenRecord]:
    """Join answers to segments: an answer continues a segment if its prompt begins with all tokens before.

    The texts of the tokens are not known; their ids take their place.
    """
    groups: list[list[AnswerTokens]] = []
    whole: list[int] = []
    for answer in answers:
        if groups and answer.prompt_ids[: len(whole)] == whole:
            groups[-1].append(answer)
        else:
            groups.append([answer])
        whole = [*answer.prompt_ids, *answer.ids]
    return [_joined(group) for group in groups]


def make_record(
    prompt_ids: list[int],
    ids: list[int],
    spans: list[tuple[int, int]],
    logprobs: list[float | None] | None,
    rewards: list[float],
) -> TokenRecord:
    """A record without the texts of its tokens."""
    prompt, pieces = _texts(prompt_ids), _texts(ids)
    return TokenRecord(prompt_ids, prompt, ids, pieces, mask_of_spans(spans, len(ids)), rewards, spans, logprobs)


def _answers(segment: TokenRecord) -> Iterable[AnswerTokens]:
    for begin, end in segment.turn_spans:
        logprobs = None if segment.logprobs is None else segment.logprobs[begin:end]
        yield AnswerTokens([*segment.prompt_ids, *segment.ids[:begin]], segment.ids[begin:end], logprobs)


def _joined(answers: Sequence[AnswerTokens]) -> TokenRecord:
    prompt = answers[0].prompt_ids
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    logprobs: list[float | None] = []
    rewards: list[float] = []
    for answer in answers:
        ids = [*answer.prompt_ids[len(prompt) :], *answer.ids]
        span = len(ids) - len(answer.ids), len(ids)
        spans.append(span)
        logprobs += [0.0] * (span[0] - len(logprobs)) + (answer.logprobs or [None] * len(answer.ids))
        rewards += [0.0] * (len(ids) - len(rewards))
        if answer.ids:
            rewards[-1] = answer.reward
    known = any(answer.logprobs is not None for answer in answers)
    return make_record(prompt, ids, spans, logprobs if known else None, rewards)


def _texts(ids: Sequence[int]) -> list[str]:
    return [f"⟨{number}⟩" for number in ids]
