"""`TokenTrajectory`: an episode as token ids, with the mask recorded while the tokens are appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import Generation
from agentgym_envs.trajectory import Trajectory, Turn, prompt_messages


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
    """

    trajectory: Trajectory
    prompt_ids: list[int]
    ids: list[int]
    assistant_mask: list[int]
    rewards: list[float]
    turn_spans: tuple[tuple[int, int], ...]
    logprobs: list[float] | None = None
    bootstrap_ids: list[int] = field(default_factory=list)
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
    versions: list[int] = field(default_factory=list)
    has_versions: bool = True

    def add_answer(self, generation: Generation) -> None:
        """Append the sampled tokens unchanged, as one turn."""
        begin = len(self.ids)
        self._append(generation.ids, 1)
        self.turn_spans.append((begin, len(self.ids)))
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
        return end + self.codec.encode_observation(observation)

    def add_between(self, ids: Sequence[int]) -> None:
        """Append the ids that `between` returned, with mask 0."""
        self._append(ids, 0)

    def build(self, trajectory: Trajectory) -> TokenTrajectory:
        """The finished record."""
        logprobs = self.logprobs if self.has_logprobs and self.ids else None
        versions = self.versions if self.has_versions and self.ids else None
        continues = trajectory.truncated and trajectory.usable
        after = self.between(trajectory.final_observation) if continues else []
        spans = tuple(self.turn_spans)
        return TokenTrajectory(
            trajectory, self.prompt_ids, self.ids, self.mask, self.rewards, spans, logprobs, after, versions
        )

    def _append(self, ids: Sequence[int], mask: int) -> None:
        self.ids += ids
        self.mask += [mask] * len(ids)
        self.rewards += [0.0] * len(ids)
        self.logprobs += [0.0] * len(ids)
        self.versions += [0] * len(ids)


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
    info of its turn) had no end token, so none is trained on.
    """
    first = trajectory.turns[0].observation if trajectory.turns else trajectory.final_observation
    builder = TokenBuilder(codec, codec.encode_prompt(prompt_messages(trajectory.instructions, first)))
    for number, turn in enumerate(trajectory.turns):
        if number:
            builder.add_between(builder.between(turn.observation))
        builder.add_answer(_answer(turn, codec))
        builder.add_reward(turn.reward)
    return builder.build(trajectory)


def _answer(turn: Turn, codec: ChatCodec) -> Generation:
    ids = codec.encode_answer(turn.action)
    if turn.info.get("finish") == "length" and len(ids) > 1:
        return Generation(ids[:-1], "length")
    return Generation(ids, "stop")
