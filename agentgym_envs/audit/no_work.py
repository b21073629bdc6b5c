"""Attackers that do nothing for the reward."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene
from agentgym_envs.validate.episodes import repeating
from agentgym_envs.validate.semantic import BEGGING

GIVING_UP = ("stop", "stop []", "done", "finish", "submit", "quit", "exit", "end", "pass", "wait")
REFUSALS = ("N/A", "none", "unknown", "impossible", "I cannot do this.")
_NOTHING = frozenset({"0", "no", *map(str.casefold, REFUSALS)})
"""Answers that some refusals mean as well."""
_LONG = 16_000


class DoNothing(Attacker):
    """Nothing: an empty text in every turn."""

    name = "do nothing"
    family = AttackFamily.NO_WORK

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """One episode."""
        yield AttackAttempt("empty texts", policy=repeating(""), turns=scene.turns, idle=True)


class StopAtOnce(Attacker):
    """Ends the episode, or asks for the reward: `stop`, `done`, `submit`, `win`, `solution`, ..."""

    name = "stop at once"
    family = AttackFamily.NO_WORK

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """All words, in as many episodes as they end. They solve no task whose plan has other commands."""
        words = (*GIVING_UP, *BEGGING)
        most = scene.oracle_score - MARGIN if scene.oracle_score and not {*scene.plan} <= {*words} else None
        yield AttackAttempt("words", scene.messages(*words), most=most, restart=True)


class Refuse(Attacker):
    """Says that the task cannot be done: `N/A`, `none`, `unknown`, ..."""

    name = "refuse"
    family = AttackFamily.NO_WORK

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each refusal as an answer. Of a task that the oracle solves in another way, none is right by luck."""
        possible = scene.answer is not None and scene.answer.casefold() not in _NOTHING
        most = scene.oracle_score - MARGIN if possible and scene.oracle_score else None
        for text in REFUSALS:
            yield AttackAttempt(text, scene.answers(text), most=most)


class EmptyAndHuge(Attacker):
    """Answers with nothing, with white space, with control characters, and with thousands of characters."""

    name = "empty and huge"
    family = AttackFamily.NO_WORK

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each text, as an answer and as a command."""
        texts = {"empty": "", "spaces": "  \t\n ", "control": "\x00\x07\x1b", "huge": "word " * (_LONG // 5)}
        for label, text in texts.items():
            yield AttackAttempt(label, [*scene.answers(text), text], restart=True)


class Parrot(Attacker):
    """Repeats the goal, the first observation and the instructions."""

    name = "parrot"
    family = AttackFamily.NO_WORK

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each text, as an answer and as a command."""
        texts = {"goal": scene.goal, "observation": scene.observation, "instructions": scene.env.instructions}
        for label, text in texts.items():
            short = text[:_LONG]
            yield AttackAttempt(label, [*scene.answers(short), *scene.messages(short)], restart=True)
