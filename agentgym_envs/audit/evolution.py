"""An attacker that searches for rewards by mutating sequences of actions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from agentgym_envs.audit.attempts import AttackAttempt, Attacker, AttackFamily, AuditScene
from agentgym_envs.core import text_env
from agentgym_envs.validate.episodes import NextAction, RecordedEpisode

POPULATION = 8
_GENERATIONS = 6


class Evolution(Attacker):
    """Mutates random sequences of commands towards reward, and then shortens what succeeded. It knows no oracle."""

    name = "evolution"
    family = AttackFamily.SEARCH

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Episodes of the first generation are random; later ones change, join and shorten the best ones."""
        rng = random.Random(scene.start.seed)
        found: list[Genome] = []
        slow = scene.env.blocking or scene.env.heavy
        for number in range(POPULATION if slow else POPULATION * _GENERATIONS):
            parents = sorted(found, key=lambda genome: genome.fitness)[-3:] if number >= POPULATION // 2 else []
            genome = Genome(mutated(parents, rng), random.Random(rng.random()))
            yield AttackAttempt("mutation", policy=genome.play, turns=scene.turns)
            found.append(genome)


class Genome:
    """A sequence of actions. Where it ends, random commands continue it, and become a part of it."""

    def __init__(self, actions: Sequence[str], rng: random.Random) -> None:
        self.actions = list(actions)
        self._rng = rng
        self._episode: RecordedEpisode | None = None
        self.play: NextAction = self._next

    @property
    def fitness(self) -> tuple[bool, float, int, int]:
        """The larger, the better: success, score, few refused actions, few turns."""
        played = self._episode
        if played is None:
            return False, 0.0, 0, 0
        refused = sum(step.info.get("invalid_action") is not None for step in played.steps)
        return played.success, played.score, -refused, -len(played.steps)

    def _next(self, env: Any, episode: RecordedEpisode) -> str | None:
        self._episode = episode
        turn = len(episode.steps)
        if turn == len(self.actions):
            base = text_env(env)
            self.actions.append(base.grammar.format(base.random_command(self._rng)))
        return self.actions[turn]


def mutated(parents: Sequence[Genome], rng: random.Random) -> list[str]:
    """A new sequence from those of the parents; empty without parents."""
    if not parents:
        return []
    actions = list(rng.choice(parents).actions)
    other = list(rng.choice(parents).actions)
    place = rng.randrange(len(actions) + 1)
    match rng.randrange(5):
        case 0:
            return actions[:place]
        case 1:
            return actions[:place] + other[rng.randrange(len(other) + 1) :]
        case 2:
            return actions[: max(place - 1, 0)] + actions[place:]
        case 3:
            return [*actions[:place], *actions[place - 1 : place], *actions[place:]]
        case _:
            return rng.sample(actions, len(actions))
