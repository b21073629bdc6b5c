"""Output of an episode in a terminal, shared by `play` and `solve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_envs.task import Task

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLES = {
    r"(?m)^(?:craft|get|inventory)\b": "cyan",
    r"\busing\b": "dim",
    r"(?<![\w-])\d+(?![\w-])": "magenta",
    r"(?m)^Goal:.*$": "bold yellow",
    r"(?m)^[A-Z][\w ]*:$": "bold",
}


def opening(console: Console, env_id: str, task: Task, observation: str, note: str) -> None:
    """Print the first observation in a frame with the environment and the task."""
    from rich.panel import Panel

    title = f"[bold]{env_id}[/] · {task.id} · {task.group}"
    console.print(Panel(coloured(observation), title=title, title_align="left", subtitle=note, border_style="blue"))


def readable(observation: str, *, team: bool) -> str:
    """Format an observation for people: of a team, the text of each agent below its name."""
    from agentgym_envs.multiagent.joint_format import read_texts

    seen = read_texts(observation) if team else None
    return observation if seen is None else "\n\n".join(f"[{agent}]\n{text}" for agent, text in seen.items())


def coloured(text: str) -> Text:
    """Colour the verbs, amounts and the goal in the text of an environment. Markup in it is not interpreted."""
    from rich.text import Text

    shown = Text(text)
    for pattern, style in _STYLES.items():
        shown.highlight_regex(pattern, style)
    return shown


def reply(console: Console, observation: str, info: Mapping[str, Any], reward: float) -> None:
    """Print the reply to an action: green with a positive reward, red after an invalid action."""
    from rich.text import Text

    style = "bold green" if reward > 0 else "red" if info.get("invalid_action") else "default"
    console.print(Text(readable(observation, team="agents" in info), style))
    if isinstance(holding := info.get("inventory"), Mapping) and holding:
        held = Text("  you carry ", "dim")
        held.append(" · ".join(f"{amount} {name}" for name, amount in holding.items()), "blue")
        console.print(held)


def closing(console: Console, info: Mapping[str, Any], stop: str | None) -> None:
    """Print the outcome of the episode."""
    from rich.text import Text

    turns = f"{info['turn']} turn{'' if info['turn'] == 1 else 's'}"
    if info["success"]:
        console.print(f"[bold green]★ Solved in {turns}.[/] Score {info['score']:g}.")
    elif "error" in info:
        console.print(f"[red]The environment failed after {turns}:[/]", Text(str(info["error"])))
    elif stop == "closed":
        console.print(f"You quit after {turns}. Score {info['score']:g}.")
    elif stop:
        console.print(f"[yellow]The episode is over after {turns} ({stop}).[/] Score {info['score']:g}.")
