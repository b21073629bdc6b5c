"""Harmless detours: the oracle's plan must succeed with looks, waits and wrong commands between its commands."""

from __future__ import annotations

import random
from collections.abc import Sequence

from agentgym_envs.audit.attempts import AuditScene

_SHARE = 0.5
WRONG = ("", "what now?", "hint", "{}")
"""Texts that no scenario carries out."""
HARMLESS: dict[str, tuple[str, ...]] = {
    "TextCraftEnv": ("inventory",),
    "BabyAIEnv": ("check available actions",),
    "SciWorldEnv": ("look around", "inventory", "task"),
    "WebArenaEnv": ("wait", "scroll [down]", "scroll [up]", "goto [http://example.com]"),
    "MiniWoBEnv": ("wait",),
}
"""Commands by the class of the environment that change nothing that a task asks for."""
CANCELS = frozenset({"SciWorldEnv"})
"""Environments in which a wrong command is an action: it lets time pass, or cancels a question."""


def detour(scene: AuditScene, seed: int) -> list[str]:
    """The messages of the oracle's plan, with harmless ones between them."""
    rng = random.Random(seed)
    choices = detour_commands(scene)
    messages: list[str] = []
    for command in scene.messages(*scene.plan):
        while choices and rng.random() < _SHARE:
            messages.append(rng.choice(choices))
        messages.append(command)
    return messages


def detour_commands(scene: AuditScene) -> Sequence[str]:
    """The harmless messages of a scenario."""
    known = [command for name in sorted(scene.scenarios & HARMLESS.keys()) for command in HARMLESS[name]]
    wrong = () if scene.scenarios & CANCELS else WRONG
    return scene.messages(*known, *wrong)
