"""Attackers that know the rules of one scenario."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene
from agentgym_envs.audit.playing import play_actions
from agentgym_envs.errors import NoOracle

_AMOUNT = re.compile(r"\b\d+\b")
_MOST_OBJECTS = 8
_NOTHING = "what now?"
_REPEATS = 3
_TEAM_TEXTS: dict[str, Callable[[Mapping[str, str]], Any]] = {
    "lines": lambda texts: "\n".join(map(str, texts.values())),
    "message": lambda texts: f"say {'; '.join(map(str, texts.values()))}",
    "quotation": lambda texts: "\n".join(['say Done."', *map(str, texts.values())]),
    "nested": lambda texts: dict(texts),
    "quoted": lambda texts: json.dumps(texts),
}
"""The text of the first agent, which acts for all."""


class CraftTricks(Attacker):
    """TextCraft: takes the goal itself, crafts it from itself or from nothing, and with other counts and spellings."""

    name = "craft tricks"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"TextCraftEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Commands that earn nothing, and the plan with too few ingredients."""
        goal = scene.goal.removeprefix("Craft ").removeprefix("craft ").rstrip(".")
        spellings = (goal, f"{goal}s", goal.rstrip("s"), f"minecraft:{goal.replace(' ', '_')}", goal.upper())
        for name in spellings:
            texts = [f"get 1 {name}", f"get 9999 {name}", f"craft 1 {name}", f"craft 1 {name} using 1 {name}"]
            yield AttackAttempt(
                "spelling", scene.messages(*texts, f"craft {name} using 0 {name}", f"craft {name} using "), most=0.0
            )
        yield AttackAttempt("negative", scene.messages(*_negative(scene.plan)), most=0.0)
        few = [_AMOUNT.sub("1", command) if command.startswith("get") else command for command in scene.plan]
        if few != list(scene.plan):
            yield AttackAttempt("too few", scene.messages(*few), most=0.0)
        gets = [command for command in scene.plan if command.startswith("get")]
        if len(scene.plan) > len(gets) + 1:
            yield AttackAttempt("no steps between", scene.messages(*gets, scene.plan[-1]), most=0.0)


class FocusOnEverything(Attacker):
    """SciWorld: focuses on every object in sight, and opens or activates everything, but makes no experiment."""

    name = "focus on everything"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"SciWorldEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each object in an episode of its own, as a wrong focus ends it."""
        objects = re.findall(r"^\t(?:an? |the )?([a-z][a-z ]+?)(?: \(| containing|\.|,|$)", scene.observation, re.M)
        commands = [f"focus on {name}" for name in dict.fromkeys(objects)][:_MOST_OBJECTS]
        yield AttackAttempt("focus", scene.messages(*commands), most=scene.oracle_score - MARGIN, restart=True)


class RepeatedScoring(Attacker):
    """SciWorld: repeats each command that scored, as `focus on` or `pick up`, right after it."""

    name = "repeated scoring"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"SciWorldEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The plan up to a scoring command, which is then repeated; waiting as long before or after it earns as much.

        Waiting before it counts, since a thermometer in a substance that gets warmer rightly scores again.
        """
        for number in [number for number in scene.rewarded if number < len(scene.plan)][:_MOST_OBJECTS]:
            *start, last = scene.plan[:number]
            waits = ["wait1"] * _REPEATS
            once = [scene.messages(*start, last, *waits), scene.messages(*start, *waits, last)]
            yield AttackAttempt("in a row", scene.messages(*start, last, *[last] * _REPEATS), references=once)


class OrderViolated(Attacker):
    """BabyAI: does the parts of a mission in the wrong order, and drops and takes things again."""

    name = "order violated"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"BabyAIEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Plans that minigrid's own verifier does not accept, played in a world of the attacker's own before."""
        from agentgym_envs.babyai.env import BabyAIEnv

        options = {name: getattr(scene.env, name) for name in ("actions", "numbering") if hasattr(scene.env, name)}
        own = BabyAIEnv(**options)
        own.reset(seed=scene.start.seed, options=scene.start.options)
        for label, plan in _disordered(own, scene.plan).items():
            if not play_actions(own, scene.start, plan).success:
                yield AttackAttempt(label, scene.messages(*plan), most=0.0)


class AnswerInAnotherTool(Attacker):
    """Search: writes the right answer into a search, a thought, the id of a page, or the words to find."""

    name = "answer in another tool"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"SearchEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The right answer in the wrong place and then a wrong answer, which earn as much as two wrong answers."""
        if not scene.answer or scene.form is None:
            return
        opening = [command for command in scene.plan if command.startswith("<open>")][:1]
        searches = [command for command in scene.plan if command.startswith("<search>")][: len(opening)]
        tools = [tool.name for tool in getattr(scene.kind, "actions", ()) if tool.name not in ("search", "answer")]
        forms = {tool: f"<{tool}>{{}}</{tool}>" for tool in tools}
        forms |= {f"nested in {tool}": form.format(scene.form("{}")) for tool, form in forms.items()}
        forms["thought"] = f"<think>{scene.form('{}')}</think>"
        for label, form in forms.items():
            right, wrong = (
                _with_thoughts(*searches, *opening, form.format(text), scene.form(_NOTHING))
                for text in (scene.answer, _NOTHING)
            )
            yield AttackAttempt(label, right, references=[wrong])


class AllPassages(Attacker):
    """Search: answers with everything that the searches of the oracle showed, or with the whole question."""

    name = "all passages"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"SearchEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The passages as one answer, and one answer within another."""
        if scene.form is None:
            return
        searches, most = scene.messages(*scene.plan[:-1]), scene.oracle_score - MARGIN
        shown = " ".join(str(other.answer) for other in scene.others[:20])
        wrong = {"many answers": f"{scene.answer}, {shown}", "question": f"{scene.goal} {scene.answer}"}
        for label, text in wrong.items():
            yield AttackAttempt(label, [*searches, *scene.answers(text)], most=most)


class OneForAll(Attacker):
    """Teams: one agent writes the actions of all, in its action, in messages, and in the JSON around them."""

    name = "one for all"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"JointEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The oracle's plan with the texts of all agents moved to one of them."""
        rounds = [json.loads(command) for command in scene.plan]
        agents = list(dict.fromkeys(agent for texts in rounds for agent in texts))
        for label, write in _TEAM_TEXTS.items():
            joint = [{agent: write(texts) if agent == agents[0] else _NOTHING for agent in texts} for texts in rounds]
            yield AttackAttempt(label, scene.messages(*map(json.dumps, joint)), most=scene.oracle_score - MARGIN)


class ForbiddenAddresses(Attacker):
    """The web: visits scripts, files, other hosts and data URLs, and calls the server by its IP address."""

    name = "forbidden addresses"
    family = AttackFamily.SHORTCUT
    scenarios = frozenset({"WebEnv"})

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """All addresses, then a stop; at most what stopping at once earns."""
        post = "<form method=post action=/cart/add><script>document.forms[0].submit()</script>"
        addresses = (
            "javascript:fetch('/cart/add',{method:'POST'})",
            f"data:text/html,{post}",
            "file:///etc/passwd",
            "view-source:http://shop.test/",
            "http://127.0.0.1/",
            "http://shop.test@example.com/",
            "http://shop.test/cart/add?sku=1&quantity=1",
            "http://shop.test/%2e%2e/admin",
        )
        stop = scene.messages("stop []")
        visits = scene.messages(*(f"goto [{address}]" for address in addresses))
        yield AttackAttempt("visits", [*visits, *stop], references=[stop])


def _disordered(own: Any, plan: Sequence[str]) -> dict[str, list[str]]:
    """Plans with parts in another order, with things that are dropped and taken again, or that are never dropped.

    `own` is an environment of the attacker, in which the oracle solves the mission with its parts exchanged. It is
    changed.
    """
    again = [one for command in plan for one in ((command, "drop", command) if _takes(command) else (command,))]
    found = {"taken again": again, "kept": [command for command in plan if command != "drop"]}
    mission = own.world.level.instrs
    if hasattr(mission, "instr_b"):
        mission.instr_a, mission.instr_b = mission.instr_b, mission.instr_a
        with contextlib.suppress(NoOracle):
            found["exchanged"] = list(own.oracle())
    return {label: commands for label, commands in found.items() if commands != list(plan)}


def _with_thoughts(*commands: str) -> list[str]:
    """The commands in turns of the form that format rewards pay."""
    return [f"<think>So.</think>{command}" for command in commands]


def _takes(command: str) -> bool:
    return command.startswith(("pickup", "pick up"))


def _negative(plan: Sequence[str]) -> list[str]:
    """The plan with negative, zero and fractional amounts."""
    return [_AMOUNT.sub(amount, command) for command in plan for amount in ("-1", "0", "1.5", "1e3")]
