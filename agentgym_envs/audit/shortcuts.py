"""Attackers that leave out work, repeat it, or break its order, in any scenario."""

from __future__ import annotations

import random
from collections.abc import Iterator

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene

_REPEATS = 4


class WithoutTheEnd(Attacker):
    """Plays the oracle's plan without its last command, and then waits."""

    name = "without the end"
    family = AttackFamily.SHORTCUT

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The plan without its end, and its first half."""
        if len(scene.plan) < 2:
            return
        most = scene.oracle_score - MARGIN
        for label, plan in (("all but one", scene.plan[:-1]), ("half", scene.plan[: len(scene.plan) // 2])):
            yield AttackAttempt(label, [*scene.messages(*plan), "", ""], most=most)


class RepeatReward(Attacker):
    """Repeats the commands that earn rewards, before the task is solved."""

    name = "repeat a reward"
    family = AttackFamily.SHORTCUT

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The commands up to the first reward, the last one several times; and the whole plan with each one twice."""
        if not scene.plan or not scene.oracle_score:
            return
        number = scene.rewarded[0] if scene.rewarded else len(scene.plan)
        first = scene.messages(*scene.plan[:number])
        if scene.plan[number - 1] not in scene.plan[number:] and number < len(scene.plan):
            yield AttackAttempt("first reward", [*first, *first[-1:] * _REPEATS], most=scene.oracle_score - MARGIN)
        yield AttackAttempt("every command twice", [m for m in scene.messages(*scene.plan) for _ in range(2)])


class Backwards(Attacker):
    """Plays the oracle's plan backwards, or shuffled."""

    name = "backwards"
    family = AttackFamily.SHORTCUT

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Both orders. In many worlds the order is free, so a success is no finding by itself."""
        if len(scene.plan) > 1:
            yield AttackAttempt("backwards", scene.messages(*reversed(scene.plan)))
            shuffled = random.Random(scene.start.seed).sample(scene.plan, len(scene.plan))
            yield AttackAttempt("shuffled", scene.messages(*shuffled))


class MoreThanAsked(Attacker):
    """Plays the plans of other tasks before the task's own."""

    name = "more than asked"
    family = AttackFamily.SHORTCUT

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The start of another plan, then the whole plan."""
        for other in scene.others[:1]:
            if scene.plan and len(other.plan) > 1:
                yield AttackAttempt("other work first", scene.messages(*other.plan[:-1], *scene.plan))
