"""The table of attackers. To add one, add a class and a row."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.audit import evolution, forging, guessing, hosted, no_work, shortcuts, state, web, worlds
from agentgym_envs.audit.attempts import Attacker, AttackFamily
from agentgym_envs.errors import UsageError

ATTACKERS: tuple[Attacker, ...] = (
    no_work.DoNothing(),
    no_work.StopAtOnce(),
    no_work.Refuse(),
    no_work.EmptyAndHuge(),
    no_work.Parrot(),
    guessing.FrequentAnswer(),
    guessing.Numbers(),
    guessing.Options(),
    guessing.ReadInfo(),
    guessing.YesNo(),
    guessing.Hedge(),
    guessing.NeighboursAnswer(),
    guessing.NearMiss(),
    forging.FakeResults(),
    forging.SeveralActions(),
    forging.Disguise(),
    forging.Markers(),
    forging.Longest(),
    shortcuts.WithoutTheEnd(),
    shortcuts.RepeatReward(),
    shortcuts.Backwards(),
    shortcuts.MoreThanAsked(),
    worlds.CraftTricks(),
    worlds.FocusOnEverything(),
    worlds.RepeatedScoring(),
    worlds.OrderViolated(),
    worlds.AnswerInAnotherTool(),
    worlds.AllPassages(),
    worlds.OneForAll(),
    worlds.ForbiddenAddresses(),
    web.PostWithoutForm(),
    web.AnotherPage(),
    web.ChangesMore(),
    web.DoAndUndo(),
    state.Leftovers(),
    state.RivalEpisode(),
    state.RestoredElsewhere(),
    state.OtherEpisode(),
    state.AfterTheEnd(),
    state.OtherClock(),
    hosted.TwoClients(),
    hosted.KilledWorker(),
    evolution.Evolution(),
)
"""All attackers, in the order in which they play."""


def select_attackers(names: Sequence[str] | None) -> list[Attacker]:
    """The attackers with these names or families; all without names. Raises UsageError for another name."""
    if names is None:
        return list(ATTACKERS)
    known = {attacker.name for attacker in ATTACKERS} | {family.value for family in AttackFamily}
    if unknown := [name for name in names if name not in known]:
        families = ", ".join(family.value for family in AttackFamily)
        raise UsageError(f"there is no attacker {', '.join(unknown)}; use a name from docs/audit.md, or {families}")
    return [attacker for attacker in ATTACKERS if {attacker.name, attacker.family.value} & set(names)]


def attacker_table() -> str:
    """All attackers as a table in Markdown."""
    rows = ["| attacker | family | scenarios | |", "|---|---|---|---|"]
    for attacker in ATTACKERS:
        where = ", ".join(sorted(name.removesuffix("Env") for name in attacker.scenarios)) or "all"
        rows.append(f"| {attacker.name} | {attacker.family} | {where} | {(attacker.__doc__ or '').strip()} |")
    return "\n".join(rows)
