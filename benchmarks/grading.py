"""Grading of answers in `AgentGym/WebArena-v0`: right answers in many wordings, and near misses.

    python -m benchmarks.grading [--out benchmarks/results/grading.json] [--instances 4] [--show]

Takes all templates that expect an answer, in several worlds, and grades generated answers to some of their instances.
A right answer that fails is a false negative, a near miss that passes is a false positive. `--show` prints them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode
from agentgym_envs.webarena.tasks.answers import NotAchievable, Says, says
from agentgym_envs.webarena.tasks.table import instances_of, templates, world_for
from agentgym_envs.webarena.tasks.template import Template, intent_of
from benchmarks import wordings
from benchmarks.wordings import Question

WORLDS = (1, 21)
_MAX_SHOWN = 400


async def _no_pages(url: str | None, script: str = "") -> str:
    raise AssertionError("answers are graded without pages")


def questions(
    names: Iterable[str] | None = None, instances: int = 4, worlds: Sequence[int] = WORLDS
) -> Iterator[tuple[Question, Evaluator]]:
    """Yield the questions of all templates that expect an answer, or of some, with their evaluators."""
    for name in templates() if names is None else names:
        for seed in worlds:
            yield from _of_template(templates()[name], seed, instances)
    if names is None:
        yield from _yes_or_no()


def answered() -> list[str]:
    """Return the names of all templates that expect an answer."""
    return [name for name in templates() if any(_of_template(templates()[name], WORLDS[0], 1))]


def _of_template(template: Template, seed: int, instances: int) -> Iterator[tuple[Question, Evaluator]]:
    first = [
        (params, _evaluator(template, seed, params))
        for params in instances_of(template, world_for(template, seed))[:instances]
    ]
    wanted = [set(one.wanted) for _, one in first if isinstance(one, Says)]
    for number, (params, evaluator) in enumerate(first):
        intent = intent_of(template, number + seed, params)
        if isinstance(evaluator, NotAchievable):
            yield Question(template.name, intent, "N/A"), evaluator
        elif evaluator is not None:
            elsewhere = tuple(", ".join(sorted(other)) for other in wanted if not other & set(evaluator.wanted))
            yield question_of(template.name, intent, evaluator, elsewhere), evaluator


def _evaluator(template: Template, seed: int, params: Any) -> Says | NotAchievable | None:
    found = template.evaluators(world_for(template, seed), params)
    return next((one for one in found if isinstance(one, Says | NotAchievable)), None)


def question_of(name: str, intent: str, evaluator: Says, elsewhere: tuple[str, ...] = ()) -> Question:
    """Return the question that an evaluator grades."""
    wanted = tuple(tuple(reference.split(" |OR| ")) for reference in evaluator.wanted)
    named = {text.lower() for part in wanted for text in part}
    others = [text for reference in evaluator.others for text in reference.split(" |OR| ")[:1]]
    others = [text for text in others if text.lower() not in named]
    kind = wordings.kind_of(wanted, intent)
    elsewhere = tuple(text for one in elsewhere if wordings.kind_of([[text := one.split(" |OR| ")[0]]], intent) == kind)
    return Question(name, intent, kind, wanted, tuple(others), elsewhere)


def _yes_or_no() -> Iterator[tuple[Question, Evaluator]]:
    for answer in ("yes", "no"):
        for intent in ("Is the café open now?", "Does the shop sell lamps? Answer yes or no."):
            yield question_of("(invented)", intent, says(answer)), says(answer)


def score_of(evaluator: Evaluator, question: Question, answer: str) -> float:
    """Return the score of an answer, without an event loop: the evaluators of answers await nothing."""
    call: Any = evaluator(FinishedEpisode(question.intent, answer, "about:blank", _no_pages))
    try:
        call.send(None)
    except StopIteration as end:
        return float(end.value.score)
    raise AssertionError("the evaluator waits for something")


def failures(question: Question, evaluator: Evaluator) -> tuple[int, list[str], int, list[str]]:
    """Return the numbers of right answers and near misses, and of both those that were graded wrongly."""
    rng = random.Random(f"{question.template}/{question.intent}")
    right, wrong = (list(dict.fromkeys(make(question, rng))) for make in (wordings.right, wordings.wrong))
    rejected = [answer for answer in right if score_of(evaluator, question, answer) < 1.0]
    return len(right), rejected, len(wrong), [one for one in wrong if score_of(evaluator, question, one) > 0.0]


def measure(instances: int, show: bool) -> dict[str, Any]:
    totals: dict[str, Counter[str]] = {kind: Counter() for kind in wordings.KINDS}
    names: dict[str, set[str]] = {kind: set() for kind in wordings.KINDS}
    for question, evaluator in questions(instances=instances):
        right, rejected, wrong, accepted = failures(question, evaluator)
        totals[question.kind].update(right=right, rejected=len(rejected), wrong=wrong, accepted=len(accepted))
        names[question.kind].add(question.template)
        for sort, answers in (("FN", rejected), ("FP", accepted)) if show else ():
            for answer in answers:
                print(f"{sort} {question.template} {question.wanted} {answer[:_MAX_SHOWN]!r} | {question.intent[:150]}")
    rows = {kind: {"templates": len(names[kind]), **counted} for kind, counted in totals.items()}
    total = {key: sum(row.get(key, 0) for row in rows.values()) for key in ("right", "rejected", "wrong", "accepted")}
    return {
        "worlds": WORLDS,
        "instances": instances,
        "kinds": rows,
        "all": {"templates": len(set().union(*names.values())), **total},
    }


def table(result: dict[str, Any]) -> str:
    """Return the table of the docs."""
    lines = [
        "| kind of answer | templates | right answers | rejected | near misses | accepted |",
        "|---|---|---|---|---|---|",
    ]
    for kind, row in (*result["kinds"].items(), ("all", result["all"])):
        row = {"right": 0, "rejected": 0, "wrong": 0, "accepted": 0, **row}
        share = f"{100 * row['rejected'] / row['right']:.2f} %" if row["right"] else ""
        lines.append(
            f"| {kind} | {row['templates']} | {row['right']:,} | {share} | {row['wrong']:,} | {row['accepted']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--instances", type=int, default=4, help="instances per template and world (default: 4)")
    parser.add_argument("--show", action="store_true", help="print the answers that were graded wrongly")
    arguments = parser.parse_args()
    result = measure(arguments.instances, arguments.show)
    print(table(result))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
