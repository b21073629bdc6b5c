"""The audit itself: its rates, its forms of answers, remote environments, and the mutations."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.audit import audit, select_attackers
from agentgym_envs.audit.attempts import AnswerForm, answer_form
from agentgym_envs.audit.evolution import Genome, mutated
from agentgym_envs.audit.guessing import wrong_answers
from agentgym_envs.audit.judging import chance_of
from agentgym_envs.audit.scenes import kind_of, sample_tasks
from agentgym_envs.core import text_env
from agentgym_envs.validate import load_subject
from agentgym_envs.webarena.tasks.table import load


@given(st.lists(st.floats(0, 1), max_size=7), st.integers(0, 8))
def test_the_chance_of_wins_is_that_of_all_outcomes(rates: list[float], wins: int) -> None:
    outcomes = product((False, True), repeat=len(rates))
    exact = sum(
        prod(p if won else 1 - p for won, p in zip(one, rates, strict=True)) for one in outcomes if sum(one) >= wins
    )
    assert chance_of(wins, rates) == pytest.approx(exact, abs=1e-9)


@given(st.sets(st.text("abc 12", min_size=1, max_size=6), min_size=2, max_size=5))
def test_answers_are_read_from_their_form(answers: set[str]) -> None:
    form = answer_form([["look", f"<answer>{answer}</answer>"] for answer in answers])
    assert form is not None and form.before.startswith("<answer>") and form.after.endswith("</answer>")
    for command in (f"<answer>{answer}</answer>" for answer in answers):
        assert form(str(form.answer_in(command))) == command


def test_commands_without_a_common_form_have_none() -> None:
    assert answer_form([["go to red ball"], ["pickup key"]]) is None
    assert answer_form([["up"], ["up"]]) is None
    assert AnswerForm("blame ", "").answer_in("build 3") is None


@given(st.decimals(0, 10**6, places=2))
def test_no_wrong_answer_is_a_rounded_one(right: Decimal) -> None:
    accepted = {f"{right}", f"{right:.1f}", f"{right:.0f}", str(int(right)), str(int(right) + 1)}
    assert not accepted & set(wrong_answers(str(right), "7 doors").values())


def test_mutations_use_only_the_actions_of_the_parents() -> None:
    rng = random.Random(0)
    parents = [Genome("abc", rng), Genome("de", rng)]
    children = ["".join(mutated(parents, rng)) for _ in range(200)]
    assert len(set(children)) > 20 and set("".join(children)) == set("abcde")
    assert mutated([], rng) == []


@pytest.mark.slow
def test_a_remote_environment_is_attacked_alike() -> None:
    run = pytest.importorskip("agentgym_envs.http.run", reason="the extra serve is not installed")
    attackers = [one for one in select_attackers(["no work", "state"]) if not one.once_per_group]
    with run.background_server(["AgentGym/TextCraft-v0"]) as url:
        remote = audit(load_subject("AgentGym/TextCraft-v0", {"base_url": url}), attackers, tasks=1)
    local = audit(load_subject("AgentGym/TextCraft-v0"), attackers, tasks=1)
    assert remote.findings == local.findings == [] and remote.episodes == local.episodes > 0
    counts = [[(result.attacker, result.episodes) for result in report.attackers] for report in (remote, local)]
    assert counts[0] == counts[1]


def test_every_template_comes_before_a_second_task_of_one() -> None:
    tasks = load()
    env: Any = SimpleNamespace(tasks=tasks)
    templates = {task.data["template"] for task in tasks.sample(groups=("maps",))}
    some = [sample_tasks(env, ["maps"], 31, 0, skip)["maps"] for skip in (0, 31)]
    assert {task.data["template"] for task in [*some[0], *some[1]]} == templates and len(templates) == 62
    assert {kind_of(task) for task in some[0]} == {task.data["template"] for task in some[0]}


def test_every_third_attacker_attacks_a_task_and_the_others_the_next_ones() -> None:
    subject = load_subject("tests.validate.toy:CorridorEnv")
    attackers = select_attackers(["no work"])
    parts = [audit(subject, attackers, tasks=1, skip=skip, every=3, groups=subject_groups()[:1]) for skip in range(3)]
    names = [{result.attacker for result in part.attackers if result.episodes} for part in parts]
    assert set.union(*names) == {attacker.name for attacker in attackers}
    assert sum(map(len, names)) == len(attackers)


def subject_groups() -> list[str]:
    with load_subject("tests.validate.toy:CorridorEnv").fresh() as env:
        return list(text_env(env).tasks.groups)


@pytest.mark.parametrize(("env", "found"), [("CountEnv", set()), ("ClaimBelieved", {"fake results"})])
def test_a_forged_answer_may_contain_the_right_number(env: str, found: set[str]) -> None:
    """Forged results contain the number 1, the answer of one of five tasks, and no other number."""
    report = audit(load_subject(f"tests.audit.counting:{env}"), select_attackers(["forging"]), tasks=5)
    assert {finding.attacker for finding in report.findings} == found


def test_attacks_beyond_the_budget_are_counted() -> None:
    short = audit(load_subject("tests.validate.toy:CorridorEnv", seconds=0.02), tasks=36)
    assert short.unplayed > 0
    assert audit(load_subject("tests.validate.toy:CorridorEnv"), tasks=1).unplayed == 0
