"""Training rows from labelled episodes: the loss is on the oracle's answers in the states that the policy visited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agentgym_envs.rollout import ChatCodec, OracleLabel, TokenTrajectory, encode_trajectory
from agentgym_envs.rollout.tokens import join_contexts, mask_of_spans
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_trl.collator import TrainingRow, rows_of


@dataclass(slots=True)
class ImitationRows:
    """Rows that imitate labels, the number of labels in them, and that of labels too long to train on."""

    rows: list[TrainingRow] = field(default_factory=list)
    labels: int = 0
    too_long: int = 0

    def add(self, trajectory: Trajectory, codec: ChatCodec, max_length: int | None = None) -> None:
        """Add the labels of an episode; one that makes its row longer than `max_length` tokens is left out."""
        for group in label_groups(trajectory):
            while group:
                rows = [row for context in labelled_contexts(trajectory, group, codec) for row in rows_of(context)]
                if max_length is None or max(len(row["input_ids"]) for row in rows) <= max_length:
                    self.rows += rows
                    self.labels += len(group)
                    break
                group = group[:-1]
                self.too_long += 1


def labels_of(episode: TokenTrajectory, codec: ChatCodec) -> TokenTrajectory:
    """The labels of an episode as its answers, in a context for each row; without an answer if it has no label.

    The record is that of the episode as it was played. Rewards and log-probabilities of its answers are left out.
    """
    played = episode.trajectory
    groups = label_groups(played) if played.usable else ()
    contexts = [context for group in groups for context in labelled_contexts(played, group, codec)]
    if not contexts:
        return TokenTrajectory(played, episode.prompt_ids, [], [], [], ())
    return replace(join_contexts(contexts), trajectory=played, bootstrap_ids=[])


def label_groups(trajectory: Trajectory) -> Iterator[list[int]]:
    """The turns (from 0) with a label, in groups that share a row.

    In all turns of a group but the last, the action is the label. So one row shows them all: the episode up to the last
    one, with its label in place of the action. Every labelled turn is in one group.
    """
    group: list[int] = []
    for number, turn in enumerate(trajectory.turns):
        label = OracleLabel.of(turn)
        if label is None or label.answer is None:
            continue
        group.append(number)
        if label.answer != turn.action or turn.info.get("finish") == "length":
            yield group
            group = []
    if group:
        yield group


def labelled_contexts(trajectory: Trajectory, group: Sequence[int], codec: ChatCodec) -> list[TokenTrajectory]:
    """The contexts of the labels of `group`, up to the last one: the episode as it was played, then this label.

    The answers of a context are the labels only; what the policy wrote is context, with mask 0.
    """
    last = trajectory.turns[group[-1]]
    label = OracleLabel.of(last)
    assert label is not None and label.answer is not None
    turns = (*trajectory.turns[: group[-1]], Turn(last.observation, label.answer, 0.0))
    contexts = encode_trajectory(replace(trajectory, turns=turns), codec).contexts()
    return [found for context in contexts if (found := _labels_only(context, group)) is not None]


def _labels_only(context: TokenTrajectory, group: Sequence[int]) -> TokenTrajectory | None:
    """The context with the answers of the turns in `group` only; None if it has none."""
    pairs = zip(context.turn_spans, context.turn_numbers, strict=True)
    labels = [(span, number) for span, number in pairs if number - 1 in group]
    if not labels:
        return None
    spans, numbers = tuple(span for span, _ in labels), tuple(number for _, number in labels)
    end = spans[-1][1]
    mask, rewards = mask_of_spans(spans, end), [0.0] * end
    fields = context.trajectory, context.prompt_ids, context.ids[:end], mask, rewards, spans
    return TokenTrajectory(*fields, answer_turns=numbers)


class StateCounts(NamedTuple):
    """Counts of visited states, by their label; `label_metrics` has their definitions."""

    states: int
    labelled: int
    out_of_reach: int
    unsolved: int
    unasked: int
    oracle_turns: int
    own: int
    agreed: int


def label_counts(trajectory: Trajectory) -> StateCounts:
    """The counts of an episode; all are 0 if it is not usable."""
    turns = trajectory.turns if trajectory.usable else ()
    asked = [label for turn in turns if (label := OracleLabel.of(turn)) is not None]
    own = [label for label in asked if label.answer is not None and not label.played]
    out_of_reach = sum(label.out_of_reach for label in asked)
    labelled = sum(label.answer is not None for label in asked)
    return StateCounts(
        states=len(turns),
        labelled=labelled,
        out_of_reach=out_of_reach,
        unsolved=len(asked) - labelled - out_of_reach,
        unasked=len(turns) - len(asked),
        oracle_turns=sum(label.played for label in asked),
        own=len(own),
        agreed=sum(label.agrees for label in own),
    )


def label_metrics(counts: Iterable[StateCounts]) -> dict[str, float]:
    """Sums of counts of visited states, and two shares.

    - `states`: all visited states, one per turn; `labelled`: those with an answer of the oracle.
    - `out_of_reach`: the goal is proven to be out of reach; `unsolved`: the oracle found no way; `unasked`: its seconds
      were used up.
    - `oracle_turns`: the share of turns that the oracle played.
    - `agreement`: the share of labelled turns of the policy in which it wrote the oracle's command; 0 without any.
    """
    total = StateCounts(*map(sum, zip(StateCounts(*[0] * 8), *counts, strict=True)))
    names = ("states", "labelled", "out_of_reach", "unsolved", "unasked")
    return {
        **{name: float(getattr(total, name)) for name in names},
        "oracle_turns": total.oracle_turns / max(total.states, 1),
        "agreement": total.agreed / max(total.own, 1),
    }
