"""`agentgym view`: recorded episodes in the browser, or as one file to send to somebody."""

from __future__ import annotations

import importlib
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agentgym_envs.cli import completion, serve
from agentgym_envs.cli.common import SHORT, check_writable, find_env, stderr, stdout
from agentgym_envs.errors import UsageError, missing_extra

if TYPE_CHECKING:
    from agentgym_envs.viewer.api import Viewer
    from agentgym_envs.viewer.filters import Page

_LOOKED_FOR = (
    "files of trajectories (*.jsonl, as `agentgym eval --out DIR` and a training run's output_dir/trajectories have "
    "them) and AgentGym-RL's step{N}/{rank}.json"
)
_LARGE_MB = 50

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Files of trajectories, or folders that hold some; by default this folder."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")]
Host = Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 lets every machine of the network read.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")]
Export = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write one file that needs no server, and end.")]
Limit = Annotated[int | None, typer.Option(min=1, help="--export: the first so many episodes.")]
EnvName = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help=f"--export: episodes of this environment: {', '.join(SHORT)}, or an id.",
        autocompletion=completion.envs,
    ),
]
Group = Annotated[list[str] | None, typer.Option("--group", help="--export: episodes of this group of tasks.")]
Success = Annotated[
    bool | None, typer.Option("--success/--failure", help="--export: only those that succeeded, or did not.")
]
Episode = Annotated[list[int] | None, typer.Option(help="--export: the episodes of these numbers.")]


class Choice(NamedTuple):
    """Which episodes go into an exported file."""

    limit: int | None
    envs: Sequence[str]
    groups: Sequence[str]
    success: bool | None
    episodes: Sequence[int]

    def page(self) -> Page:
        """The same as a query."""
        from agentgym_envs.viewer.filters import parse_page

        success = [] if self.success is None else [("success", "01"[self.success])]
        return parse_page(
            [*(("env", name) for name in self.envs), *(("group", name) for name in self.groups), *success]
        )


def view_command(
    path: Paths = None,
    port: Port = 0,
    host: Host = "127.0.0.1",
    no_browser: NoBrowser = False,
    export: Export = None,
    limit: Limit = None,
    env: EnvName = None,
    group: Group = None,
    success: Success = None,
    episode: Episode = None,
) -> None:
    """Look at recorded episodes in the browser, until Ctrl-C; what is written meanwhile shows up by itself.

    PATH is a file of trajectories or a folder: of an evaluation, of a training run, of many of them, or of
    AgentGym-RL's logs. With --export FILE.html it is one file to send to somebody, which opens without a server.
    """
    choice = Choice(limit, [_env_id(name) for name in env or ()], group or (), success, episode or ())
    if export is None and any((limit, env, group, success is not None, episode)):
        raise UsageError(
            "--limit, --env, --group, --success and --episode choose what --export FILE.html writes; give it"
        )
    if export is not None:
        check_writable("--export", export)
    viewer = open_viewer(path or [Path()])
    if export is not None:
        _export(viewer, export, choice)
    else:
        _serve(viewer, host, port, not no_browser)


def open_viewer(paths: Sequence[Path]) -> Viewer:
    """The viewer over these paths. Raises UsageError if there is nothing to see, and MissingExtra."""
    try:
        importlib.import_module("agentgym_envs.viewer.server")
        from agentgym_envs.viewer.api import Viewer
    except ModuleNotFoundError as error:
        raise missing_extra("agentgym view", error.name or "starlette", "view") from None
    if missing := [str(path) for path in paths if not path.exists()]:
        raise UsageError(f"there is no file or folder {', '.join(missing)}")
    viewer = Viewer([path.resolve() for path in paths])
    with stderr().status("reading"):
        snapshot = viewer.index.refresh()
    if not snapshot.entries and not snapshot.runs:
        why = f"; {snapshot.problems[0]}" if snapshot.problems else ""
        if not any(path.is_dir() for path in paths):
            raise UsageError(f"there is no episode in {_named(paths)}{why}")
        stderr().print(
            f"[yellow]There is no episode below {_named(paths)} yet; I looked for {_LOOKED_FOR}{why}[/]", soft_wrap=True
        )
    return viewer


def _named(paths: Sequence[Path]) -> str:
    return ", ".join("this folder" if path == Path() else str(path) for path in paths)


def _env_id(name: str) -> str:
    """An id of ours by its short name; another as it is, since a record may be of an environment that is not here."""
    return find_env(name) if name.lower() in SHORT else name


def _export(viewer: Viewer, path: Path, choice: Choice) -> None:
    from agentgym_envs.viewer.export import export_html

    entries = _chosen(viewer, choice)
    problems = list[str]()
    with stderr().status(f"writing {len(entries):,} episodes") as status:
        page = export_html(
            viewer, entries, lambda done: status.update(f"{done:,} of {len(entries):,} episodes"), problems.extend
        )
    for problem in problems:
        stderr().print(problem, style="yellow", markup=False, soft_wrap=True)
    data = page.encode()
    path.write_bytes(data)
    size = len(data) / 1e6
    stdout().print(f"{len(entries) - len(problems):,} episodes, {size:.1f} MB: {path}", markup=False, soft_wrap=True)
    if size > _LARGE_MB:
        stderr().print("[yellow]A browser takes its time with a file of this size; --limit makes a smaller one[/]")


def _chosen(viewer: Viewer, choice: Choice) -> list[Any]:
    entries = viewer.select(choice.page().query).entries
    if choice.episodes:
        known = {entry.id for entry in entries}
        if unknown := [number for number in choice.episodes if number not in known]:
            raise UsageError(f"there is no episode {unknown[0]} among the {len(known):,} that were asked for")
        entries = [entry for entry in entries if entry.id in set(choice.episodes)]
    if not entries:
        raise UsageError("no episode is left to export; --env, --group and --success/--failure leave some out")
    return entries[: choice.limit]


def _serve(viewer: Viewer, host: str, port: int, browse: bool) -> None:
    from agentgym_envs.viewer.server import make_server

    place = serve.place_at(host, port)
    with serve.listen(place) as listener:
        server = make_server(viewer, host, place.address[1])
        url = serve.url_of(host, listener)

        async def everything() -> None:
            _announce(viewer, url, str(place.address[0]))
            if browse and _has_browser():
                webbrowser.open(url)
            await server.serve(sockets=[listener])

        serve.run(everything, server.config.get_loop_factory(), "the viewer is closed")


def _announce(viewer: Viewer, url: str, address: str) -> None:
    from agentgym_envs.viewer.server import is_loopback

    snapshot = viewer.index.snapshot
    files = sum(bool(file.ids) for file in snapshot.files)
    what = f"{len(snapshot.entries):,} episodes in {files:,} file{'s' * (files != 1)}"
    stdout().print(f"[bold]Viewing at {url}[/] until Ctrl-C · {what}", soft_wrap=True)
    if not is_loopback(address):
        stderr().print("[yellow]Everybody who reaches this port can read these episodes: nothing is asked for[/]")
    for problem in snapshot.problems:
        stderr().print(problem, style="yellow", markup=False, soft_wrap=True)


def _has_browser() -> bool:
    """Whether there is a screen for one; in a terminal alone, a text browser would take it over."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
