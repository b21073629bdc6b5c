"""`agentgym webarena`: the embedded sites for people."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from agentgym_envs.cli import completion, serve
from agentgym_envs.cli.common import stdout
from agentgym_envs.errors import UsageError

TaskId = Annotated[
    str | None, typer.Option(metavar="ID", help="Begin with this task.", autocompletion=completion.tasks_of("webarena"))
]
WorldSeed = Annotated[
    int | None, typer.Option("--world", min=0, help="Without a task: the seed of the world; by default 1.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the page, only say where it is.")]


def sites_command(
    task: TaskId = None, world: WorldSeed = None, port: Port = 8010, no_browser: NoBrowser = False
) -> None:
    """Open the five sites in your browser, with a task beside them and what it would score now, until Ctrl-C.

    Everything happens on this machine: the addresses end in .localhost, which Chrome, Edge and Firefox know to be it.
    What you do changes only this episode; Restart brings everything back. A task has an id such as
    webarena/shopping-compare/3/2.
    """
    if task is not None and world is not None:
        raise UsageError("--task says which world it is in: give --task or --world")
    made = _desk(task, 1 if world is None else world)
    with serve.listen(serve.find_place("127.0.0.1", port, None, None, False)) as listener:
        from agentgym_envs.webarena.inspector.app import DeskApp, make_server

        app = DeskApp(made, listener.getsockname()[1])
        stdout().print(f"[bold]The desk is at {app.origin}[/] until Ctrl-C", soft_wrap=True)
        if not no_browser:
            webbrowser.open(app.origin)
        server = make_server(app)
        serve.run(lambda: server.serve(sockets=[listener]), server.config.get_loop_factory(), "the desk is closed")


def _desk(task_id: str | None, seed: int) -> Any:
    """A desk with a task, or only a world. Raises UnknownTask, MissingExtra."""
    from agentgym_envs.webarena.browser.chromium import check_packages

    check_packages()
    from agentgym_envs.webarena.env import browser_options
    from agentgym_envs.webarena.inspector.session import InspectorSession
    from agentgym_envs.webarena.tasks.table import load

    made = InspectorSession(load(), browser_options(None), seed)
    if task_id is not None:
        made.begin(load().get(task_id))
    return made


COMMANDS: Mapping[str, Callable[..., None]] = {"sites": sites_command}
