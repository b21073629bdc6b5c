"""`TokenTrajectory`: an episode as token ids, with the mask recorded while the tokens are appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import Generation
from agentgym_envs.trajectory import Message, Trajectory, Turn, prompt_messages


@dataclass(frozen=True, slots=True)
class TokenTrajectory:
    """An episode as a trainer reads it: P prompt tokens, then T tokens of answers and observations.

    `assistant_mask` is 1 exactly on the tokens that the policy sampled. `turn_spans` has the begin and end (exclusive)
    of each turn's answer, as indices into `ids`; the mask is 1 inside the spans and 0 outside. `rewards` holds the
    reward of a turn on the last token of its answer and 0 elsewhere. `logprobs` come from the engine: 0.0 where the
    mask is 0, or None if the engine gives none. The last token belongs to an answer. T is 0 for an episode without an
    answer. `bootstrap_ids` are the tokens that the policy would have read next if a limit truncated the episode, else
    empty. A critic uses them to estimate the value of the last state. `versions` has the version of the policy that
    sampled each token: 0 where the mask is 0, or None if the engine counts no versions.

    An episode of several contexts has them end to end in `ids`, the prompt of each further one included, with mask 0.
    `context_starts` are the indices where these prompts begin; tokens do not see those of an earlier context.
    `answer_turns` has the number of the turn, from 1, in which each answer of `turn_spans` was sampled: a plan or a
    summary belongs to the turn of the action that follows it. If empty, every answer is a turn.
    """

    trajectory: Trajectory
    prompt_ids: list[int]
    ids: list[int]
    assistant_mask: list[int]
    rewards: list[float]
    turn_spans: tuple[tuple[int, int], ...]
    logprobs: list[float] | None = None
    bootstrap_ids: list[int] = field(default_factory=list)
    context_starts: tuple[int, ...] = ()
    answer_turns: tuple[int, ...] = ()
    versions: list[int] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.ids), len(self.assistant_mask), len(self.rewards)}
        lengths |= {len(given) for given in (self.logprobs, self.versions) if given is not None}
        if len(lengths) != 1:
            raise ValueError(f"ids, mask, rewards, logprobs and versions differ in length: {sorted(lengths)}")
        if self.ids and not self.assistant_mask[-1]:
            raise ValueError("the last token of a trajectory must belong to an answer")
        if mask_of_spans(self.turn_spans, len(self.ids)) != self.assistant_mask:
            raise ValueError(f"the mask must be 1 exactly inside the spans of the turns, got {self.turn_spans}")
        if any(r and not m for r, m in zip(self.rewards, self.assistant_mask, strict=True)):
            raise ValueError("a reward may only lie on a token of an answer")
        if self.answer_turns and len(self.answer_turns) != len(self.turn_spans):
            raise ValueError("answer_turns must have one number per answer")
        if not all(self._ends_context(start) for start in self.context_starts):
            raise ValueError(f"a context must have a prompt and end with an answer, got {self.context_starts}")

    @property
    def turn_numbers(self) -> tuple[int, ...]:
        """The number of the turn of each answer, from 1."""
        return self.answer_turns or tuple(range(1, len(self.turn_spans) + 1))

    def contexts(self) -> list[TokenTrajectory]:
        """One trajectory per context, each with the same record of the episode; the bootstrap ids are the last one's.

        `replace(join_contexts(tokens.contexts()), trajectory=tokens.trajectory)` is equal to the tokens.
        """
        bounds = [0, *self.context_starts, len(self.ids)]
        return [self._context(begin, end) for begin, end in pairwise(bounds)] if self.context_starts else [self]

    def _ends_context(self, start: int) -> bool:
        return 0 < start < len(self.ids) and self.assistant_mask[start - 1] == 1 and self.assistant_mask[start] == 0

    def _context(self, begin: int, end: int) -> TokenTrajectory:
        """The context in `ids[begin:end]`, which begins with its prompt unless it is the first."""
        inside = [number for number, span in enumerate(self.turn_spans) if begin <= span[0] < end]
        spans = [self.turn_spans[number] for number in inside]
        first = spans[0][0] if begin else 0
        return TokenTrajectory(
            self.trajectory,
            self.ids[begin:first] if begin else self.prompt_ids,
            self.ids[first:end],
            self.assistant_mask[first:end],
            self.rewards[first:end],
            tuple((a - first, b - first) for a, b in spans),
            None if self.logprobs is None else self.logprobs[first:end],
            self.bootstrap_ids if end == len(self.ids) else [],
            answer_turns=tuple(self.turn_numbers[number] for number in inside),
            versions=None if self.versions is None else self.versions[first:end],
        )


@dataclass(slots=True)
class TokenBuilder:
    """Collects the tokens of answers and observations, with mask and turn spans.

    An observation is appended only when an answer follows, so that a trajectory always ends with an answer.
    """

    codec: ChatCodec
    prompt_ids: list[int]
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    turn_spans: list[tuple[int, int]] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    has_logprobs: bool = True
    answer_turns: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    has_versions: bool = True

    def add_answer(self, generation: Generation, turn: int | None = None) -> None:
        """Append the sampled tokens unchanged, as an answer in the next turn, or in the one with the number `turn`."""
        begin = len(self.ids)
        self._append(generation.ids, 1)
        self.turn_spans.append((begin, len(self.ids)))
        self.answer_turns.append(self.answer_turns[-1] + 1 if turn is None and self.answer_turns else turn or 1)
        if generation.logprobs is None:
            self.has_logprobs = False
        else:
            self.logprobs[-len(generation.ids) :] = generation.logprobs
        if generation.version is None:
            self.has_versions = False
        else:
            self.versions[-len(generation.ids) :] = [generation.version] * len(generation.ids)

    def add_reward(self, reward: float) -> None:
        """Add the reward of the turn to the last token of its answer."""
        self.rewards[-1] += reward

    def between(self, observation: str) -> list[int]:
        """The ids between the last answer and the next: the end token if the answer lacks it, then the observation.

        An answer lacks it if it was truncated, or if the model stopped with another token such as `<|endoftext|>`.
        """
        end = [] if self.ids and self.ids[-1] == self.codec.turn_end_id else [self.codec.turn_end_id]
        return end + self.codec.encode_observation(observation, self._last_answer() if self.codec.tools else "")

    def _last_answer(self) -> str:
        begin, end = self.turn_spans[-1] if self.turn_spans else (0, 0)
        return self.codec.decode(self.ids[begin:end])

    def add_between(self, ids: Sequence[int]) -> None:
        """Append the ids that `between` returned, with mask 0."""
        self._append(ids, 0)

    def build(self, trajectory: Trajectory) -> TokenTrajectory:
        """The finished record."""
        logprobs = self.logprobs if self.has_logprobs and self.ids else None
        versions = self.versions if self.has_versions and self.ids else None
        continues = trajectory.truncated and trajectory.usable
        after = self.between(trajectory.final_observation) if continues else []
        spans, turns = tuple(self.turn_spans), tuple(self.answer_turns)
        return TokenTrajectory(
            trajectory,
            self.prompt_ids,
            self.ids,
            self.mask,
            self.rewards,
            spans,
            logprobs,
            after,
            answer_turns=() if turns == tuple(range(1, len(turns) + 1)) else turns,
            versions=versions,
        )

    def _append(self, ids: Sequence[int], mask: int) -> None:
        self.ids += ids
        self.mask += [mask] * len(ids)
        self.rewards += [0.0] * len(ids)
        self.logprobs += [0.0] * len(ids)
        self.versions += [0] * len(ids)


class ContextDraft(NamedTuple):
    """The context of the next answer: `builder` with the ids `between`. `messages` are the conversation up to there."""

    builder: TokenBuilder
    between: list[int]
    messages: list[Message]

    @property
    def size(self) -> int:
        """The number of tokens before the answer."""
        return len(self.builder.prompt_ids) + len(self.builder.ids) + len(self.between)


class EpisodeBuilder:
    """Collects the contexts of a conversation: one, unless the chat template rewrites earlier messages."""

    def __init__(self, codec: ChatCodec, instructions: str) -> None:
        """`instructions` is the text of the system prompt."""
        self._codec, self._instructions = codec, instructions
        self._messages: list[Message] = []  # only kept where the template rewrites them
        self._contexts: list[TokenBuilder] = []
        self._answers = 0

    def draft(self, observation: str) -> ContextDraft:
        """The context for an answer to `observation`, and the ids that it still lacks; nothing is changed."""
        codec = self._codec
        if not self._contexts:
            prompt = prompt_messages(self._instructions, observation)
            return ContextDraft(TokenBuilder(codec, codec.encode_prompt(prompt)), [], prompt)
        messages = [*self._messages, {"role": "user", "content": observation}] if codec.rewrites else []
        if codec.rewrites and not codec.continues(messages):
            return ContextDraft(TokenBuilder(codec, codec.encode_prompt(messages)), [], messages)
        last = self._contexts[-1]
        return ContextDraft(last, last.between(observation), messages)

    def room(self, draft: ContextDraft, max_tokens: int) -> int:
        """The tokens that are left if a context may be `max_tokens` longer than the first prompt."""
        first = (self._contexts or [draft.builder])[0].prompt_ids
        return len(first) + max_tokens - draft.size

    def begin_answer(self, draft: ContextDraft) -> int:
        """Append the ids of a draft, and return the number of the turn."""
        if draft.between:
            draft.builder.add_between(draft.between)
        else:
            self._contexts.append(draft.builder)
        self._messages = draft.messages if self._codec.rewrites else []
        self._answers += 1
        return self._answers

    def end_answer(self, text: str) -> None:
        """Continue the conversation with the text of the answer."""
        if self._codec.rewrites:
            self._messages.append({"role": "assistant", "content": text})

    def add_reward(self, reward: float) -> None:
        """Add the reward of the last turn."""
        self._contexts[-1].add_reward(reward)

    def build(self, trajectory: Trajectory) -> TokenTrajectory:
        """The finished record; without an answer it has only a prompt."""
        contexts = self._contexts or [self.draft(trajectory.final_observation).builder]
        return join_contexts([context.build(trajectory) for context in contexts])


def join_contexts(contexts: Sequence[TokenTrajectory]) -> TokenTrajectory:
    """Join the contexts of an episode, in the order in which they began, into one trajectory.

    The record of the episode is that of the last context. Log-probabilities and versions are kept if every context has
    them.
    """
    if len(contexts) == 1:
        return contexts[0]
    first, ids, starts = contexts[0], list[int](), list[int]()
    mask, rewards, logprobs = list[int](), list[float](), list[float]()
    spans, turns, versions = list[tuple[int, int]](), list[int](), list[int]()
    for context in contexts:
        prompt = context.prompt_ids if context is not first else []
        starts += [len(ids)] if prompt else []
        at, empty = len(ids) + len(prompt), [0] * len(prompt)
        ids += [*prompt, *context.ids]
        mask += [*empty, *context.assistant_mask]
        rewards += [*empty, *context.rewards]
        logprobs += [*empty, *(context.logprobs or [0.0] * len(context.ids))]
        versions += [*empty, *(context.versions or [0] * len(context.ids))]
        spans += [(at + begin, at + end) for begin, end in context.turn_spans]
        turns += context.turn_numbers
    return TokenTrajectory(
        contexts[-1].trajectory,
        first.prompt_ids,
        ids,
        mask,
        rewards,
        tuple(spans),
        logprobs if all(context.logprobs is not None for context in contexts) else None,
        contexts[-1].bootstrap_ids,
        tuple(starts),
        () if turns == list(range(1, len(turns) + 1)) else tuple(turns),
        versions if all(context.versions is not None for context in contexts) else None,
    )


def spans_of_mask(mask: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield begin and end (exclusive) of each run of 1s. Only for masks recorded without their spans."""
    begin = None
    for index, sampled in enumerate([*mask, 0]):
        if sampled and begin is None:
            begin = index
        elif not sampled and begin is not None:
            yield begin, index
            begin = None


def mask_of_spans(spans: Sequence[tuple[int, int]], length: int) -> list[int]:
    """The mask of `length` tokens that is 1 inside the spans. Raises ValueError for spans out of order or range."""
    mask: list[int] = []
    for begin, end in spans:
        if not len(mask) <= begin < end <= length:
            raise ValueError(f"turn spans must be in order, not empty, and within {length} tokens; got {spans}")
        mask += [0] * (begin - len(mask)) + [1] * (end - begin)
    return mask + [0] * (length - len(mask))


def encode_trajectory(trajectory: Trajectory, codec: ChatCodec) -> TokenTrajectory:
    """Encode a recorded trajectory, such as a demonstration, by the same rules as a rollout.

    The answers are encoded from text, as their sampled ids are unknown. A truncated answer (`finish` is "length" in the
    info of its turn) had no end token, so none is trained on. Native tools are those in the record's `meta`.
    """
    codec = codec.with_tools(trajectory.meta.get("tools", ()))
    episode = EpisodeBuilder(codec, trajectory.instructions)
    for turn in trajectory.turns:
        draft = episode.draft(turn.observation)
        number = episode.begin_answer(draft)
        draft.builder.add_answer(_answer(turn, codec), number)
        episode.end_answer(turn.action)
        episode.add_reward(turn.reward)
    return episode.build(trajectory)


def _answer(turn: Turn, codec: ChatCodec) -> Generation:
    ids = codec.encode_answer(turn.action)
    if turn.info.get("finish") == "length" and len(ids) > 1:
        return Generation(ids[:-1], "length")
    return Generation(ids, "stop")
