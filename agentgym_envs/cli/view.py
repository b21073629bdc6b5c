"""`agentgym view`: recorded episodes in the browser, or exported to one HTML file or an animated GIF."""

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
from agentgym_envs.cli.common import check_writable, names_of, stderr, stdout
from agentgym_envs.cli.envs import SHORT_NAMES, find_env
from agentgym_envs.errors import UsageError, missing_extra

if TYPE_CHECKING:
    from agentgym_envs.viewer.api import Viewer
    from agentgym_envs.viewer.filters import PageQuery

_SEARCHED_FILES = (
    "trajectories (*.jsonl of `agentgym eval --out DIR`, or of a training run's output_dir/trajectories) and "
    "AgentGym-RL's step{N}/{rank}.json"
)
_LARGE_MB = 50

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", help="Files of trajectories, or folders with such files; default: this folder."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the server; 0 chooses a free port.")]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets every machine of the network read.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")]
Export = Annotated[
    Path | None, typer.Option(metavar="FILE.html", help="Write one HTML file that needs no server, and exit.")
]
Gif = Annotated[
    Path | None,
    typer.Option(metavar="FILE.gif", help="Write an animation of one episode (--episode N, else the first), and exit."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="--export: maximum number of episodes.")]
EnvName = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help=f"--export, --gif: only episodes of this environment: {', '.join(SHORT_NAMES)}, or an id. Repeatable.",
        autocompletion=completion.envs,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="--export, --gif: only episodes of these groups of tasks, separated by commas."),
]
Success = Annotated[
    bool | None,
    typer.Option("--success/--failure", help="--export, --gif: only solved episodes, or only unsolved ones."),
]
Episode = Annotated[
    list[int] | None, typer.Option(help="--export, --gif: only the episode with this number. Can be repeated.")
]


class ExportSelection(NamedTuple):
    """The episodes to export."""

    limit: int | None
    envs: Sequence[str]
    groups: Sequence[str]
    success: bool | None
    episodes: Sequence[int]

    def page(self) -> PageQuery:
        """The selection as a query; `limit` and `episodes` are not part of it."""
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
    gif: Gif = None,
    limit: Limit = None,
    env: EnvName = None,
    groups: Groups = None,
    success: Success = None,
    episode: Episode = None,
) -> None:
    """Show recorded episodes in the browser until Ctrl-C. New episodes appear while they are written.

    PATH is a file of trajectories or a folder: an evaluation, a training run, several runs, or logs of AgentGym-RL.
    With --export FILE.html, the episodes are written to one file that opens without a server. With --gif FILE.gif, one
    episode becomes an animation, with a frame per turn.
    """
    choice = ExportSelection(
        limit, [_env_id(name) for name in env or ()], names_of(groups) or (), success, episode or ()
    )
    if export is None and gif is None and any((limit, env, groups, success is not None, episode)):
        raise UsageError(
            "--limit, --env, --groups, --success and --episode select the episodes of --export FILE.html and --gif "
            "FILE.gif; give one of them, too"
        )
    for option, file in (("--export", export), ("--gif", gif)):
        if file is not None:
            check_writable(option, file)
    viewer = open_viewer(path or [Path()])
    if export is not None:
        _export(viewer, export, choice)
    if gif is not None:
        _animate(viewer, gif, choice)
    if export is None and gif is None:
        _serve(viewer, host, port, not no_browser)


def open_viewer(paths: Sequence[Path]) -> Viewer:
    """Make the viewer of these paths.

    Raises:
        UsageError: a path does not exist, or files were given and they hold no episode.
        MissingExtra: the packages of the viewer are not installed.
    """
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
            f"[yellow]There is no episode in {_named(paths)} yet; it was searched for {_SEARCHED_FILES}{why}[/]",
            soft_wrap=True,
        )
    return viewer


def _named(paths: Sequence[Path]) -> str:
    return ", ".join("this folder" if path == Path() else str(path) for path in paths)


def _env_id(name: str) -> str:
    """The id for a short name. Other names are kept: a record may be of an environment that is not installed."""
    return find_env(name) if name.lower() in SHORT_NAMES else name


def _export(viewer: Viewer, path: Path, choice: ExportSelection) -> None:
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
        stderr().print("[yellow]A browser needs long to open a file of this size; --limit makes a smaller one[/]")


def _animate(viewer: Viewer, path: Path, choice: ExportSelection) -> None:
    from agentgym_envs.image_observations import check_pillow

    check_pillow("agentgym view --gif", "images")
    from agentgym_envs.viewer.animation import animate
    from agentgym_envs.viewer.index import read_episode

    entry = _chosen(viewer, choice)[0]
    with stderr().status("drawing") as status:
        data = animate(
            read_episode(entry),
            entry.file.path.parent,
            lambda done, frames: status.update(f"{done} of {frames} frames"),
        )
    path.write_bytes(data)
    stdout().print(f"episode {entry.id}, {len(data) / 1e6:.1f} MB: {path}", markup=False, soft_wrap=True)


def _chosen(viewer: Viewer, choice: ExportSelection) -> list[Any]:
    entries = viewer.select(choice.page().query).entries
    if choice.episodes:
        known = {entry.id for entry in entries}
        if unknown := [number for number in choice.episodes if number not in known]:
            raise UsageError(f"there is no episode {unknown[0]} among the {len(known):,} selected ones")
        entries = [entry for entry in entries if entry.id in set(choice.episodes)]
    if not entries:
        raise UsageError("no episode is left to export; loosen --env, --groups or --success/--failure")
    return entries[: choice.limit]


def _serve(viewer: Viewer, host: str, port: int, browse: bool) -> None:
    from agentgym_envs.viewer.server import make_server

    address = serve.resolve_address(host, port)
    with serve.listen(address) as listener:
        server = make_server(viewer, host, address.address[1])
        url = serve.url_of(host, listener)

        async def everything() -> None:
            _announce(viewer, url, str(address.address[0]))
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
        stderr().print("[yellow]Everyone who can reach this port can read these episodes, without a password[/]")
    for problem in snapshot.problems:
        stderr().print(problem, style="yellow", markup=False, soft_wrap=True)


def _has_browser() -> bool:
    """True if there is a graphical display; without one, a text browser would take over the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
