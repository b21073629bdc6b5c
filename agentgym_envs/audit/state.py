"""Attackers that use other episodes, copies of the state, the clock, and the time after the end."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.audit.attempts import (
    Attacker,
    AttackFamily,
    Attempt,
    AuditScene,
    Prelude,
    PreludeKind,
)

_DAY = 86_400.0


class Leftovers(Attacker):
    """Solves nearly all of a task, resets within the episode, and plays only the end in the new one."""

    name = "leftovers"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """The end earns what it earns in a new environment; so does doing nothing after a solved episode."""
        plan = scene.messages(*scene.plan)
        if not plan:
            return
        whole = [Prelude(PreludeKind.EPISODE, scene.start, plan)]
        yield Attempt("nothing after a success", ["", ""], references=[["", ""]], before=whole)
        for label, cut in (("the last command", len(plan) - 1), ("the second half", len(plan) // 2)):
            if 0 < cut < len(plan):
                before = [Prelude(PreludeKind.EPISODE, scene.start, plan[:cut])]
                yield Attempt(label, plan[cut:], references=[plan[cut:]], before=before)


class RivalEpisode(Attacker):
    """Lets another environment do the work at the same time, and plays only the end."""

    name = "rival episode"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """The end earns what it earns alone."""
        plan = scene.messages(*scene.plan)
        if len(plan) > 1:
            before = [Prelude(PreludeKind.RIVAL, scene.start, plan[:-1])]
            yield Attempt("work of another", plan[-1:], references=[plan[-1:]], before=before)


class RestoredElsewhere(Attacker):
    """Restores the snapshot of a nearly solved episode, resets, and plays the end."""

    name = "restored elsewhere"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """The snapshot is of the same task, or of another one."""
        for label, source in (("same task", scene), *(("other task", other) for other in scene.others[:1])):
            plan = source.messages(*source.plan)
            if len(plan) > 1:
                before = [Prelude(PreludeKind.RESTORED, source.start, plan[:-1])]
                yield Attempt(label, plan[-1:], references=[plan[-1:]], before=before)


class OtherEpisode(Attacker):
    """Replays the actions of another episode, after that episode."""

    name = "other episode"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """The actions earn what they earn in a new environment."""
        for other in scene.others[:1]:
            if plan := other.messages(*other.plan):
                before = [Prelude(PreludeKind.EPISODE, other.start, plan)]
                yield Attempt("replay", plan, references=[plan], before=before)


class AfterTheEnd(Attacker):
    """Steps on after the end of the episode."""

    name = "after the end"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """The last command again, and nothing."""
        if plan := scene.messages(*scene.plan):
            yield Attempt("further steps", plan, beyond=[plan[-1], ""])


class OtherClock(Attacker):
    """Moves the wall clock of this process, by a day and by years."""

    name = "other clock"
    family = AttackFamily.STATE

    def attempts(self, scene: AuditScene) -> Iterator[Attempt]:
        """Nothing, and a part of the plan, earn what they earn today."""
        some = scene.messages(*scene.plan[:-1])
        for label, days in (("tomorrow", 1), ("in ten years", 3_650), ("yesterday", -1)):
            actions = [*some, "", ""]
            yield Attempt(label, actions, references=[actions], clock_shift=days * _DAY)
