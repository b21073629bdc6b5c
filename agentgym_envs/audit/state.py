"""Attackers that use other episodes, copies of the state, the clock, and the time after the end."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.audit.attempts import (
    AttackAttempt,
    Attacker,
    AttackFamily,
    AuditScene,
    Prelude,
    PreludeKind,
)

_DAY = 86_400.0


class Leftovers(Attacker):
    """Solves nearly all of a task, resets within the episode, and plays only a part in the new one."""

    name = "leftovers"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """A part earns what it earns in a new environment; so does doing nothing after a solved episode."""
        plan = scene.messages(*scene.plan)
        if not plan:
            return
        whole = [Prelude(PreludeKind.EPISODE, scene.start, plan)]
        yield AttackAttempt("nothing after a success", ["", ""], references=[["", ""]], before=whole)
        yield from _parts_after(PreludeKind.EPISODE, scene)


class RivalEpisode(Attacker):
    """Lets another environment do the work at the same time, and plays only a part."""

    name = "rival episode"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The part earns what it earns alone."""
        yield from _parts_after(PreludeKind.RIVAL, scene)


class RestoredElsewhere(Attacker):
    """Restores the snapshot of a nearly solved episode, resets, and plays a part."""

    name = "restored elsewhere"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The snapshot is of the same task, or of another one."""
        for source in (scene, *scene.others[:1]):
            yield from _parts_after(PreludeKind.RESTORED, source)


class OtherEpisode(Attacker):
    """Replays the actions of another episode, after that episode."""

    name = "other episode"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The actions earn what they earn in a new environment."""
        for other in scene.others[:1]:
            if plan := other.messages(*other.plan):
                before = [Prelude(PreludeKind.EPISODE, other.start, plan)]
                yield AttackAttempt("replay", plan, references=[plan], before=before)


class AfterTheEnd(Attacker):
    """Steps on after the end of the episode."""

    name = "after the end"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The last command again, and nothing."""
        if plan := scene.messages(*scene.plan):
            yield AttackAttempt("further steps", plan, beyond=[plan[-1], ""])


class OtherClock(Attacker):
    """Moves the wall clock of this process, by a day and by years."""

    name = "other clock"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Nothing, and a part of the plan, earn what they earn today."""
        some = scene.messages(*scene.plan[:-1])
        for label, days in (("tomorrow", 1), ("in ten years", 3_650), ("yesterday", -1)):
            actions = [*some, "", ""]
            yield AttackAttempt(label, actions, references=[actions], clock_shift=days * _DAY)


def _parts_after(kind: PreludeKind, source: AuditScene) -> Iterator[AttackAttempt]:
    """Parts of a plan, played after all but its last command was done elsewhere; none of a plan of one command.

    Each part earns what it earns in a new environment.
    """
    plan = source.messages(*source.plan)
    if len(plan) < 2:
        return
    before = [Prelude(kind, source.start, plan[:-1])]
    parts = {"the end": plan[-1:], "the second half": plan[len(plan) // 2 :], "the beginning": plan[:-1]}
    for label, rest in parts.items():
        yield AttackAttempt(label, rest, references=[rest], before=before)
