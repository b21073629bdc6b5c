"""Planted flaws in the five scenarios: the expected attacker finds each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from agentgym_envs.audit import ATTACKERS, AuditReport, audit, select_attackers
from agentgym_envs.core import TextEnv
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.http.sessions import HttpSession
from agentgym_envs.registration import env_class
from agentgym_envs.task import TaskTable
from agentgym_envs.validate import ValidationSubject, load_subject
from tests.audit import flaws
from tests.audit.flaws import COMMON
from tests.audit.scenario_flaws import SPECIFIC, SpecificFlaw

OPTIONS: Mapping[str, dict[str, Any]] = {
    "TextCraft": {"groups": ["depth-2", "depth-3"]},
    "BabyAI": {"groups": ["PutNext"], "levels": "PutNextLocal"},
    "Search": {"groups": ["2hop-city", "sum"]},
    "SciWorld": {"groups": ["find-plant"]},
    "WebArena": {"groups": ["shopping"]},
}
LEAVES_OUT: Mapping[str, set[Any]] = {
    "BabyAI": {flaws.SubstringGrader, flaws.SameForAll, flaws.AnswerInInfo, flaws.LinesCarriedOut},
    "Search": {flaws.LinesCarriedOut, flaws.SameForAll, flaws.DetourFails, flaws.SubstringGrader},
}
"""Flaws that cannot exist there: a text may be a thought, and the last command of a solution may be a solution."""
QUICK = [
    (name, flaw)
    for name in ("TextCraft", "BabyAI", "Search")
    for flaw in COMMON
    if flaw not in LEAVES_OUT.get(name, ())
]
HEAVY: Mapping[str, tuple[Any, ...]] = {
    "SciWorld": (flaws.EmptyAccepted, flaws.ResultParsed, flaws.RewardTwice, flaws.Endless),
    "WebArena": (flaws.StopRewarded, flaws.RefusalAccepted, flaws.ResultParsed, flaws.InvisibleAccepted),
}
"""Flaws of scenarios that start a Java process or a browser, where a few prove that the audit reaches them."""
NEEDS = {
    "SciWorld": "scienceworld",
    "WebArena": "playwright",
    "Search": "tantivy",
    "SearchPages": "tantivy",
    "BabyAI": "minigrid",
}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Empty what flaws keep in their classes."""
    yield
    flaws.WorkShared.counts.clear()
    flaws.SameForAll.accepted.clear()


def subject_of(name: str, *mixins: Any) -> ValidationSubject:
    """The scenario with flaws."""
    base = env_class(f"AgentGym/{name}-v0")
    kind: Any = type(f"Flawed{base.__name__}", (*mixins, base), {}) if mixins else base
    return ValidationSubject(lambda: kind(split=None, **OPTIONS[name]), name, seconds=1_200)


def found(name: str, flaw: Any, attacker: str) -> bool:
    """True if the attacker, or the detours, find the flaw."""
    if attacker == "detours":
        report = audit(subject_of(name, flaw), [], tasks=2)
        return any(group.detour_successes < group.detours for group in report.groups)
    report = audit(subject_of(name, flaw), select_attackers([attacker]), tasks=2)
    return any(finding.attacker in (attacker, "honest policy") for finding in report.findings)


@pytest.mark.slow
@pytest.mark.rotating(always=4)
@pytest.mark.parametrize(("name", "flaw"), QUICK)
def test_the_expected_attacker_finds_the_flaw(name: str, flaw: Any) -> None:
    pytest.importorskip(NEEDS.get(name, "numpy"))
    assert found(name, flaw, COMMON[flaw])


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize(("name", "flaw"), [(name, flaw) for name, several in HEAVY.items() for flaw in several])
def test_a_flaw_of_a_heavy_scenario_is_found(name: str, flaw: Any) -> None:
    pytest.importorskip(NEEDS[name])
    assert found(name, flaw, COMMON[flaw])


def made_for(planted: SpecificFlaw, *mixins: Any) -> TextEnv:
    """The scenario with these flaws and only the tasks where they are looked for."""
    base = env_class(f"AgentGym/{planted.scenario}-v0")
    env: TextEnv = type("Chosen", (*mixins, base), {})(split=None, **planted.options)
    if planted.tasks:
        env.tasks = TaskTable("chosen", 1, [env.tasks.get(task) for task in planted.tasks])
    return env


@pytest.mark.slow
@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("planted", SPECIFIC, ids=lambda planted: planted.flaw.__name__)
def test_a_flaw_of_one_scenario_is_found_by_its_attacker(planted: SpecificFlaw) -> None:
    pytest.importorskip(NEEDS[planted.scenario])
    attackers = select_attackers([planted.attacker])
    for mixins, found in (((), False), ((planted.flaw,), True)):
        subject = ValidationSubject(partial(made_for, planted, *mixins), planted.scenario, seconds=1_200)
        report = audit(subject, attackers, tasks=3)
        names = {finding.attacker for finding in report.findings}
        assert names == ({planted.attacker} if found else set()) and report.episodes


@pytest.mark.slow
@pytest.mark.rotating
def test_a_task_that_cannot_be_done_is_attacked() -> None:
    """Its plan has only the end."""
    pytest.importorskip("playwright")
    task = ("webarena/forum-edit-others-here/21/1",)
    planted = SpecificFlaw("WebArena", object, "do and undo", {"table_version": 2}, task)
    subject = ValidationSubject(partial(made_for, planted), planted.scenario, seconds=1_200)
    report = audit(subject, select_attackers([planted.attacker]), tasks=1)
    assert report.findings == [] and report.episodes


HOSTED = {
    "two clients": (HttpSession, "remembered", lambda *call: False),
    "killed worker": (
        RemoteEnv,
        "_failed_step",
        lambda env, error: ("", 1.0, True, False, env._info({"success": True})),
    ),
}
"""Flaws of hosted environments: a repeated call is carried out again, and a step that was lost is rewarded."""


@pytest.mark.slow
@pytest.mark.parametrize("attacker", HOSTED)
def test_flaws_of_hosting_are_found(attacker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attackers = select_attackers([attacker])
    report = audit(load_subject("AgentGym/TextCraft-v0", {"groups": ["depth-2"]}), attackers, tasks=1)
    assert report.findings == [] and report.episodes
    monkeypatch.setattr(*HOSTED[attacker])
    report = audit(load_subject("AgentGym/TextCraft-v0", {"groups": ["depth-2"]}), attackers, tasks=1)
    assert report.findings


def clean(name: str) -> AuditReport:
    return audit(subject_of(name), ATTACKERS, tasks=2)


def test_there_are_forty_flaws_over_five_scenarios() -> None:
    assert len(QUICK) + sum(map(len, HEAVY.values())) >= 40
    assert {name for name, _ in QUICK} | set(HEAVY) == set(OPTIONS)
    assert {attacker.name for attacker in ATTACKERS} | {"detours"} >= set(COMMON.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TextCraft", "BabyAI", "Search"])
def test_without_a_flaw_nothing_is_found(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "numpy"))
    report = clean(name)
    assert [finding.to_json() for finding in report.findings] == [] and report.episodes > 100
