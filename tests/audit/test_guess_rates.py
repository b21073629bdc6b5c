"""The stated chances of a guess follow from the answers of the tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean

import pytest

from agentgym_envs.registration import env_class
from agentgym_envs.search.questions.embedded import KINDS, EmbeddedQuestions
from agentgym_envs.task import Task
from agentgym_envs.webarena.tasks.answers import NotAchievable, Says
from agentgym_envs.webarena.tasks.scoring import evaluators_for
from agentgym_envs.webarena.tasks.table import VERSIONS, load
from agentgym_envs.webarena.tasks.template import GROUPS

MOST_QUESTIONS = 4_000


@pytest.mark.slow
@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_answer_to_a_kind_of_question_is_more_frequent(kind: str) -> None:
    questions = EmbeddedQuestions([kind])
    count = min(MOST_QUESTIONS, sum(questions.counts()[kind].values()))
    answers = Counter(task.data["answers"][0] for task in questions.sample(count))
    share = answers.most_common(1)[0][1] / count
    rates = env_class("AgentGym/Search-v0").guess_rates or {}
    assert share <= rates.get(kind, rates[""])
    assert kind != "count" or share > 0.9 * rates[kind]


def answer_of(task: Task) -> str | None:
    """The answer that a web task expects; None if it expects none."""
    for evaluator in evaluators_for(task):
        if isinstance(evaluator, NotAchievable):
            return "N/A"
        if isinstance(evaluator, Says):
            return " and ".join(evaluator.wanted)
    return None


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("group", GROUPS)
def test_no_answer_to_the_web_templates_is_more_frequent(group: str, version: int) -> None:
    answers: dict[str, list[str | None]] = defaultdict(list)
    for task in sorted(load(version).sample(groups=(group,)), key=lambda task: int(task.data["world"])):
        answers[task.data["template"]].append(answer_of(task))
    shares = [
        max([found.count(one) for one in set(found) - {None}], default=0) / len(found) for found in answers.values()
    ]
    rate = (env_class("AgentGym/WebArena-v0").guess_rates or {})[group]
    assert fmean(shares) <= rate
    assert version > 1 or fmean(shares) > 0.9 * rate
