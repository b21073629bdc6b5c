"""How an episode looks in a terminal: `play` and `solve` share it."""

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
    """The first observation in a frame that names environment and task."""
    from rich.panel import Panel

    title = f"[bold]{env_id}[/] · {task.id} · {task.group}"
    console.print(Panel(coloured(observation), title=title, title_align="left", subtitle=note, border_style="blue"))


def readable(observation: str, *, team: bool) -> str:
    """An observation as a person reads it: of a team, what each agent sees under its name."""
    from agentgym_envs.multiagent.joint_format import read_texts

    seen = read_texts(observation) if team else None
    return observation if seen is None else "\n\n".join(f"[{agent}]\n{text}" for agent, text in seen.items())


def coloured(text: str) -> Text:
    """Text of an environment with its verbs, amounts and goal in colour; nothing in it is taken as markup."""
    from rich.text import Text

    shown = Text(text)
    for pattern, style in _STYLES.items():
        shown.highlight_regex(pattern, style)
    return shown


def reply(console: Console, observation: str, info: Mapping[str, Any], reward: float) -> None:
    """The answer to an action: green if it was worth something, red if it was no valid action."""
    from rich.text import Text

    style = "bold green" if reward > 0 else "red" if info.get("invalid_action") else "default"
    console.print(Text(readable(observation, team="agents" in info), style))
    if isinstance(holding := info.get("inventory"), Mapping) and holding:
        held = Text("  you carry ", "dim")
        held.append(" · ".join(f"{amount} {name}" for name, amount in holding.items()), "blue")
        console.print(held)


def closing(console: Console, info: Mapping[str, Any], stop: str | None) -> None:
    """How the episode went."""
    from rich.text import Text

    turns = f"{info['turn']} turn{'' if info['turn'] == 1 else 's'}"
    if info["success"]:
        console.print(f"[bold green]★ Solved in {turns}.[/] Score {info['score']:g}.")
    elif "error" in info:
        console.print(f"[red]The environment failed after {turns}:[/]", Text(str(info["error"])))
    elif stop == "closed":
        console.print(f"You left after {turns}. Score {info['score']:g}.")
    elif stop:
        console.print(f"[yellow]The episode is over after {turns} ({stop}).[/] Score {info['score']:g}.")
