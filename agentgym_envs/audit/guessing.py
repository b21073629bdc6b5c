"""Attackers that guess the answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene

_MOST_GUESSES = 6
_NUMBER = re.compile(r"\d[\d,.]*(?<=\d)")
_NAME = re.compile(r"(?:[A-Z][\w'-]+)(?: (?:of |the )?[A-Z][\w'-]+)*|\"[^\"\n]{1,60}\"")


class FrequentAnswer(Attacker):
    """Answers with the most frequent answers of other tasks."""

    name = "frequent answer"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The two most frequent answers of the group."""
        found = Counter(answer for other in scene.others if (answer := other.answer) is not None)
        for number, (answer, _) in enumerate(found.most_common(2), 1):
            yield AttackAttempt(f"number {number}", scene.answers(answer))


class Numbers(Attacker):
    """Answers with numbers: small ones, and those of the first observation."""

    name = "numbers"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Small numbers, and the shown ones, each in an episode of its own if it ends one."""
        yield AttackAttempt("small", scene.answers(*map(str, range(4))), restart=True)
        shown = list(dict.fromkeys(_NUMBER.findall(scene.observation)))[:_MOST_GUESSES]
        yield AttackAttempt("shown", scene.answers(*shown), restart=True)


class Options(Attacker):
    """Answers with each name of the first observation, and with all of them at once."""

    name = "options"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Names one by one, joined, and all words of the goal."""
        names = list(dict.fromkeys(name.strip('"') for name in _NAME.findall(f"{scene.goal}\n{scene.observation}")))
        yield AttackAttempt("one by one", scene.answers(*names[:_MOST_GUESSES]), restart=True)
        if len(names) > 1:
            yield AttackAttempt("all at once", scene.answers(", ".join(names[:200])))
            yield AttackAttempt("one of them", scene.answers(" or ".join(names[:20])))


class ReadInfo(Attacker):
    """Answers with the texts in the info of the reset, which an agent's program sees."""

    name = "read the info"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each text as an answer, and all as commands."""
        texts = list(dict.fromkeys(scene.shown_info))[:_MOST_GUESSES]
        yield AttackAttempt("answers", scene.answers(*texts), restart=True)
        yield AttackAttempt("commands", scene.messages(*texts), restart=True)


class YesNo(Attacker):
    """Answers yes, no, true and false."""

    name = "yes or no"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each word, and a choice of both."""
        for text in ("yes", "no", "true", "false"):
            yield AttackAttempt(text, scene.answers(text))
        yield AttackAttempt("both", scene.answers("yes, no"))


class Hedge(Attacker):
    """Answers with a list that contains nearly everything: all small numbers, all letters, yes and no."""

    name = "hedge"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """One list, also with the words of the observation."""
        everything = "yes no 0 1 2 3 4 5 6 7 8 9 10 " + " ".join("abcdefghijklmnopqrstuvwxyz")
        yield AttackAttempt("list", scene.answers(everything))
        yield AttackAttempt("list and observation", scene.answers(f"{everything} {scene.observation}"[:12_000]))


class NeighboursAnswer(Attacker):
    """Gives the answer of another task, or plays its plan."""

    name = "neighbour's answer"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The answers and plans of two tasks with other plans."""
        others = [other for other in scene.others if other.plan and other.plan != scene.plan][:2]
        for other in others:
            if other.answer is not None and other.answer != scene.answer:
                yield AttackAttempt("answer", scene.answers(other.answer))
            yield AttackAttempt("plan", scene.messages(*other.plan))


class NearMiss(Attacker):
    """Does the work, then gives a wrong answer that resembles the right one: a part, a denial, a list, a neighbour."""

    name = "near miss"
    family = AttackFamily.GUESSING

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The plan with each wrong answer in place of its last command."""
        right = scene.answer
        if not right or not right.strip():
            return
        other = next((o.answer for o in scene.others if o.answer and o.answer.lower() != right.lower()), "7 doors")
        for label, wrong in wrong_answers(right, other).items():
            messages = [*scene.messages(*scene.plan[:-1]), *scene.answers(wrong)]
            yield AttackAttempt(label, messages, most=scene.oracle_score - MARGIN)


def wrong_answers(right: str, other: str) -> dict[str, str]:
    """Wrong answers by the kind of the mistake."""
    found = {
        "denied": f"it is not {right}",
        "choice": f"{right} or {other}",
    }
    if number := _NUMBER.fullmatch(right.strip()):
        digits = re.sub(r"\D.*", "", number[0].replace(",", ""))
        # Two more and not one, since a fraction may be rounded up: 119 is an accepted answer for 118.71.
        return found | {"two more": str(int(digits) + 2), "more digits": f"{digits}{digits}7"}
    if len(right) > 5 and right.isalpha():
        found |= {
            "a part": right[: len(right) // 2],
            "longer": f"{right}{right[::-1]}",
            "every letter": " ".join(right),
        }
    return found
