"""`agentgym webarena`: the embedded sites in your own browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from agentgym_envs.cli import completion, serve
from agentgym_envs.cli.common import stdout
from agentgym_envs.errors import UsageError

TaskId = Annotated[
    str | None, typer.Option(metavar="ID", help="Start with this task.", autocompletion=completion.tasks_of("webarena"))
]
WorldSeed = Annotated[
    int | None, typer.Option("--world", min=0, help="Seed of the world if there is no --task; default: 1.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the server; 0 chooses a free port.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address, do not open it.")]


def sites_command(
    task: TaskId = None, world: WorldSeed = None, port: Port = 8010, no_browser: NoBrowser = False
) -> None:
    """Open the sites in your browser until Ctrl-C, next to an inspector with the task and its current score.

    Everything runs on this machine: Chrome, Edge and Firefox resolve addresses that end in .localhost to it. Your
    actions change only this episode; Restart resets it. A task has an id such as webarena/shopping-compare/3/2.
    """
    if task is not None and world is not None:
        raise UsageError("a task has its own world: give either --task or --world")
    session = _open_session(task, 1 if world is None else world)
    with serve.listen(serve.listen_address("127.0.0.1", port, None, None, False)) as listener:
        from agentgym_envs.webarena.inspector.app import InspectorApp, make_server

        app = InspectorApp(session, listener.getsockname()[1])
        stdout().print(f"[bold]Inspector at {app.origin}[/] until Ctrl-C", soft_wrap=True)
        if not no_browser:
            webbrowser.open(app.origin)
        server = make_server(app)
        serve.run(lambda: server.serve(sockets=[listener]), server.config.get_loop_factory(), "the inspector is closed")


def _open_session(task_id: str | None, seed: int) -> Any:
    """Open an inspector session with a task, or only with a world. Raises UnknownTask, MissingExtra."""
    from agentgym_envs.webarena.browser.chromium import check_packages

    check_packages()
    from agentgym_envs.webarena.env import browser_options
    from agentgym_envs.webarena.inspector.session import InspectorSession
    from agentgym_envs.webarena.tasks.table import VERSIONS, load

    session = InspectorSession(load(VERSIONS[-1]), browser_options(None), seed)
    if task_id is not None:
        session.begin(load(VERSIONS[-1]).get(task_id))
    return session


COMMANDS: Mapping[str, Callable[..., None]] = {"sites": sites_command}
