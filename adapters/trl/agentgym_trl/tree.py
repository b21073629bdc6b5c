"""Trees of episodes for `--tree WxD`: at each of D levels, every path is forked into W paths (Tree-GRPO).

The episodes of a tree are the paths from its root to its leaves. Each is a row with all its tokens, and a turn that
several rows share is trained on in the row that sampled it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from agentgym_envs.rollout import EpisodeSpec, Fork, TokenTrajectory
from agentgym_trl.credit_methods import TreeShape
from agentgym_trl.distributed import gathered
from agentgym_trl.episode_player import PlaySession


@dataclass(slots=True)
class Path:
    """An episode of a tree. `owners` has the row that sampled each turn, and `forked_at` is its latest fork."""

    episode: TokenTrajectory | None = None
    owners: list[int] = field(default_factory=list)
    forked_at: int = 1


async def grow_trees(
    session: PlaySession, specs: Sequence[EpisodeSpec], shape: TreeShape, seed: Sequence[int]
) -> tuple[list[TokenTrajectory], list[list[int]]]:
    """Play trees of `shape.leaves` consecutive rows, and return the episodes and the row that sampled each turn.

    A level forks a path before a random turn behind its latest fork; before its last turn if none is left. A path that
    failed cannot fork, and the new row is an episode of its own. Every process must call it.
    """
    first = int(session.trainer.accelerator.process_index) * len(specs)
    rng = np.random.default_rng([*seed, first])
    paths = [Path() for _ in specs]
    await _play(session, specs, paths, range(0, len(specs), shape.leaves))
    for level in range(shape.depth):
        stride = shape.width ** (shape.depth - level)
        forks: dict[int, Fork] = {}
        for parent in range(0, len(specs), stride):
            rows = range(parent + stride // shape.width, parent + stride, stride // shape.width)
            forks |= _fork(specs[parent], paths, parent, rows, rng)
        missing = [row for row in range(0, len(specs), stride // shape.width) if paths[row].episode is None]
        played = await session.play_tree(list(forks.values()))
        for (row, fork), episode in zip(forks.items(), played, strict=True):
            turns = len(episode.trajectory.turns)
            paths[row].episode = episode
            paths[row].owners = [*paths[row].owners, *[row] * (turns - fork.turn + 1)]
        await _play(session, specs, paths, [row for row in missing if row not in forks])
    episodes = [path.episode for path in paths if path.episode is not None]
    return episodes, [path.owners for path in paths]


def _fork(
    spec: EpisodeSpec, paths: Sequence[Path], parent: int, rows: Sequence[int], rng: np.random.Generator
) -> dict[int, Fork]:
    """The forks of a path for some rows; none if it cannot fork."""
    path = paths[parent]
    assert path.episode is not None
    turns = len(path.owners)
    if not path.episode.trajectory.usable or not turns:
        return {}
    turn = int(rng.integers(min(path.forked_at + 1, turns), turns + 1))
    path.forked_at = turn
    for row in rows:
        paths[row].owners, paths[row].forked_at = path.owners[: turn - 1], turn
    return {row: Fork.of(spec, path.episode, turn) for row in rows}


async def _play(session: PlaySession, specs: Sequence[EpisodeSpec], paths: Sequence[Path], rows: Sequence[int]) -> None:
    """Play whole episodes for some rows."""
    for row, episode in zip(rows, await session.play([specs[row] for row in rows]), strict=True):
        assert isinstance(episode, TokenTrajectory)
        paths[row].episode, paths[row].owners = episode, [row] * len(episode.trajectory.turns)


def tree_metrics(episodes: Sequence[TokenTrajectory], owners: Sequence[Sequence[int]]) -> dict[str, float]:
    """Tokens and turns that rows share with the row that sampled them. Every process must call it."""
    turns = tokens = 0
    for row, (episode, own) in enumerate(zip(episodes, owners, strict=True)):
        shared = {turn for turn, owner in enumerate(own, 1) if owner != row}
        turns += len(shared)
        spans = zip(episode.turn_spans, episode.turn_numbers, strict=True)
        tokens += sum(end - begin for (begin, end), number in spans if number in shared)
    sums = [sum(column) for column in zip(*gathered([(turns, tokens)]), strict=True)]
    return {"tree/shared_turns": float(sums[0]), "tree/shared_tokens": float(sums[1])}
