"""Properties of grading: right answers pass in every wording, near misses fail, and no text breaks it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.webarena.evaluators.wording import GAP, MARK, denies, hedges, normal, without_repeats
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.table import templates
from benchmarks import wordings
from benchmarks.grading import failures, question_of, questions, score_of
from benchmarks.wordings import Question
from tests.plugins.rotation import part

PEOPLE = ("Ida Holm", "Eva Holm", "Cem L.", "harper_98", "kim.codes")
TITLES = ("Is it worth a try, or not?", "One project or five", "Love it", "Lamp, 12 m", "v1.4.0", "63 Mill Avenue")


def _date(rng: random.Random) -> str:
    return f"20{rng.randint(10, 39)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _names(rng: random.Random, count: int, intent: str) -> tuple[Question, object]:
    names = rng.sample(PEOPLE + TITLES, count + 2)
    evaluator = says(*names[:count], others=names[count:])
    return question_of("(invented)", intent, evaluator), evaluator


def _valued(rng: random.Random, kind: str) -> tuple[Question, object]:
    """An invented question of a kind, and its evaluator."""
    makers: dict[str, tuple[str, Callable[[], str]]] = {
        "number": ("How many lamps are there in the shop?", lambda: str(rng.choice((rng.randint(0, 30), 4321)))),
        "money": ("What does the lamp cost?", lambda: f"${rng.randint(1, 3000):,}.{rng.randint(0, 99):02}"),
        "duration": ("How long does it take on foot?", lambda: f"{rng.randint(1, 200)} min"),
        "distance": ("How far is it?", lambda: f"{rng.randint(1, 300)}.{rng.randint(0, 9)} km"),
        "date": ("When is the issue due?", lambda: _date(rng)),
        "time": ("When does the library close?", lambda: f"{rng.randint(13, 23)}:{rng.choice(('00', '30'))}"),
        "code": ("What is its phone number?", lambda: f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"),
        "yes/no": ("Is the library open?", lambda: rng.choice(("yes", "no"))),
    }
    intent, make = makers[kind]
    evaluator = says(make())
    return question_of("(invented)", intent, evaluator), evaluator


def _invented(kind: str, rng: random.Random) -> tuple[Question, object]:
    if kind == "N/A":
        return Question("(invented)", "What does the green lamp cost?", "N/A"), NotAchievable()
    if kind == "name":
        return _names(rng, 1, "What is the title of the newest post?")
    if kind == "list":
        return _names(rng, 3, "Who are the moderators? Name all of them.")
    if kind == "name and number":
        evaluator = says(rng.choice(PEOPLE), rng.randint(2, 40), others=["Ada Moss"])
        return question_of("(invented)", "Who has most followers, and how many?", evaluator), evaluator
    return _valued(rng, kind)


@pytest.mark.parametrize("kind", wordings.KINDS)
def test_invented_answers_are_graded_by_their_meaning(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(2):
        question, evaluator = _invented(kind, rng)
        assert question.kind == kind
        right, rejected, wrong, accepted = failures(question, evaluator)  # type: ignore[arg-type]
        assert right > 20 and wrong > 20
        assert (rejected, accepted) == ([], []), question


@pytest.mark.slow
def test_answers_to_the_tasks_are_graded_by_their_meaning() -> None:
    """Each run takes some of the templates. Two instances of each give it names that other instances want."""
    for seed in (1, 21):
        for question, evaluator in questions(part(sorted(templates()), "graded templates"), 2, [seed]):
            _, rejected, _, accepted = failures(question, evaluator)
            assert (rejected, accepted) == ([], []), question


@pytest.mark.slow
@given(st.text() | st.text("0123456789 .,:/-$%aé*_`\n"), st.text(), st.text(min_size=1))
def test_any_answer_to_any_intent_can_be_graded(answer: str, intent: str, wanted: str) -> None:
    several = says(26, "Ida", "$1.50"), says("Mar 4, 2025", "18:00")
    for evaluator in (says(wanted, others=[intent]), *several, NotAchievable()):
        assert score_of(evaluator, Question("", intent, ""), answer) in (0.0, 1.0)


@pytest.mark.slow
@given(st.text("ab*_`- \n|#>0123456789.,()"), st.text("ab 12"))
def test_repeats_and_the_rest_are_parts_of_the_answer(text: str, question: str) -> None:
    rest, repeated = without_repeats(normal(text), normal(question))
    words = set(normal(text).split()) | {GAP}
    assert all(any(word in whole for whole in words) for word in (rest + " " + repeated).split())


@pytest.mark.parametrize(
    ("text", "hedged", "denied"),
    [
        (f"it is {MARK}", False, False),
        (f"it is {MARK} or 5", True, False),
        (f"it is not {MARK}", False, True),
        (f"{MARK} not counting canceled ones", False, False),
        (f"{MARK}. the order was not shipped by the owner.", False, False),
        (f"{MARK}. that is not right.", False, True),
        (f"it is not by car: {MARK} by bicycle: {MARK}", False, True),
        (f"i do not think that it is the first: {MARK} the second: {MARK}", False, True),
        (f"anything but the first: {MARK}", False, True),
        (f"it is not far: {MARK} by car {MARK} by bicycle", False, False),
        (f"not counting canceled ones: {MARK}", False, False),
    ],
)
def test_hedges_and_denials_concern_the_answer(text: str, hedged: bool, denied: bool) -> None:
    assert (hedges(text), denies(text)) == (hedged, denied)
