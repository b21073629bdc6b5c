"""Pictures."""

from __future__ import annotations

from agentgym_envs.babyai.scene import Scene
from agentgym_envs.babyai.world import World


def draw_text(world: World, scene: Scene) -> str:
    """Stub."""
    return ""


def draw_svg(world: World, scene: Scene) -> str:
    """Stub."""
    return ""
