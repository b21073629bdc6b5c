"""`agentgym serve`: environments over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import few_groups, stdout
from agentgym_envs.cli.envs import SHORT_NAMES, find_env, parse_env_args
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.errors import MissingExtra, UsageError, missing_extra
from agentgym_envs.registration import env_ids, load_object

if TYPE_CHECKING:
    from agentgym_envs.http.sessions import Sessions

_DIALECTS = {
    "agentgym": "agentgym_envs.http.dialects.agentgym.server:agentgym_routes",
    "mcp": "agentgym_envs.mcp:mcp_routes",
    "nemo": "agentgym_envs.http.dialects.nemo.routes:nemo_routes",
    "openenv": "agentgym_envs.http.dialects.openenv.routes:openenv_routes",
}
"""The function of each dialect, which returns the routes for an `EnvServer`."""
_TOKEN = "AGENTGYM_TOKEN"
_UNIX = "unix:"

EnvIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENV",
        help=f"Environment ids or short names: {', '.join(SHORT_NAMES)}; default: all that can be made here.",
        autocompletion=completion.envs,
    ),
]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on; 0.0.0.0 is every network of this machine, and unix:/path is a socket that only "
        "you can use."
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the server; 0 chooses a free port.")]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Maximum number of worker processes, for environments that need them; default: one per CPU."
    ),
]
Isolate = Annotated[
    bool, typer.Option("--isolate", help="Run every environment in a worker process, not only those that need one.")
]
MaxSessions = Annotated[int, typer.Option(min=1, help="Maximum number of open environments.")]
IdleSeconds = Annotated[float, typer.Option(help="Seconds without use after which an environment is closed.")]
CallSeconds = Annotated[
    float, typer.Option(help="Maximum seconds of a call in a worker process; a longer call ends its session.")
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        help=f"Token that clients must send. `ps` shows it to every user of this machine; --token-file or the "
        f"environment variable {_TOKEN} hides it. Clients read {_TOKEN} as well.",
    ),
]
TokenFile = Annotated[Path | None, typer.Option(help="File that contains the token.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Accept other machines without a token.")]
Dialect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help=f"Also serve the protocol of {', '.join(_DIALECTS)}. Can be repeated.",
        autocompletion=completion.choices(*_DIALECTS),
    ),
]


ServerEnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="KEY=VALUE",
        help="Argument of the environments that accept it; the value is JSON or text. Clients can override it unless "
        "it is a path or an address.",
    ),
]


class ListenAddress(NamedTuple):
    """The address that a server listens on, and the token that it requires. A Unix socket has a path and no port."""

    host: str
    family: socket.AddressFamily
    address: tuple[Any, ...]
    token: str | None

    @property
    def port(self) -> int:
        """The port; 0 for a Unix socket."""
        return 0 if self.host.startswith(_UNIX) else int(self.address[1])


def serve_command(
    env: EnvIds = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = None,
    isolate: Isolate = False,
    max_sessions: MaxSessions = 1024,
    idle_seconds: IdleSeconds = 900.0,
    call_seconds: CallSeconds = 300.0,
    token: Token = None,
    token_file: TokenFile = None,
    insecure: Insecure = False,
    dialect: Dialect = None,
    env_arg: ServerEnvArgs = None,
) -> None:
    """Serve environments over HTTP until Ctrl-C or SIGTERM.

    Clients use gym.make(ID, base_url=URL) instead of gym.make(ID), and --env-arg base_url=URL with the other commands.
    The page /docs of the server describes the protocol.
    """
    load_server()
    address = listen_address(host, port, token, token_file, insecure)
    settings: dict[str, Any] = {
        "workers": workers,
        "isolate": isolate,
        "max_sessions": max_sessions,
        "idle_seconds": idle_seconds,
        "call_seconds": call_seconds,
        "env_args": parse_env_args(env_arg),
    }
    ids, left_out = [_importable(name) for name in env or ()], list[str]()
    if not ids:
        ids, left_out = asyncio.run(find_installed(env_ids(), settings))
    run_server(ids, address, dialects=dialect or (), left_out=left_out, **settings)


def _importable(name: str) -> str:
    """The id for a name; MODULE:ID stays as it is, because worker processes must import the module, too."""
    env_id = find_env(name)
    return name if ":" in name else env_id


def run_server(
    ids: Sequence[str],
    address: ListenAddress,
    *,
    dialects: Iterable[str] = (),
    mounts: Sequence[Callable[..., Any]] = (),
    left_out: Sequence[str] = (),
    say: Callable[[str], str] | None = None,
    **settings: Any,
) -> None:
    """Serve until a signal. `say` returns a line about the mounts for the URL of the server."""
    make_app, make_server = load_server()
    names = list(dict.fromkeys(dialects))
    mounts = [*mounts, *(_routes_of(name) for name in names)]
    settings["workers"] = settings.get("workers") or _cpus()
    app = make_app(list(dict.fromkeys(ids)), token=address.token, mounts=mounts, **settings)
    server = make_server(app, address.host, address.port)
    sessions: Sessions = app.state.server.sessions
    with listen(address) as listener, _log_with_tracebacks():

        async def everything() -> None:
            url, described = url_of(address.host, listener), await _describe(sessions)
            stdout().print(f"[bold]Serving at {url}[/] until Ctrl-C", soft_wrap=True)
            if say is not None:
                stdout().print(say(url), markup=False, soft_wrap=True)
            _announce(url, sessions, described, left_out)
            stdout().print(f"[dim]{_terms(sessions, address.token, names)}[/]", soft_wrap=True)
            await server.serve(sockets=[listener])

        run(everything, server.config.get_loop_factory(), "every session is closed")


def listen_address(host: str, port: int, token: str | None, token_file: Path | None, insecure: bool) -> ListenAddress:
    """Resolve the address and the token.

    Raises:
        UsageError: the address or token is invalid, or other machines would have access without a token.
    """
    secret = find_token(token, token_file)
    if host.startswith(_UNIX):
        from agentgym_envs.http.unix_socket import socket_path

        return ListenAddress(host, socket.AF_UNIX, (socket_path(host),), secret)
    found = resolve_address(host, port, secret)
    _check_access(host, str(found.address[0]), secret, insecure)
    return found


def find_token(token: str | None, token_file: Path | None) -> str | None:
    """The token of --token, --token-file or AGENTGYM_TOKEN, in this order. Raises UsageError if it is invalid."""
    from agentgym_envs.http.wire import is_token

    if token is not None and token_file is not None:
        raise UsageError("--token and --token-file both set the token: give one of them")
    if token is not None:
        found, source = token, "--token"
    elif token_file is not None:
        found, source = _read(token_file), f"--token-file {token_file}"
    elif _TOKEN in os.environ:
        found, source = os.environ[_TOKEN], f"the environment variable {_TOKEN}"
    else:
        return None
    if not is_token(found):
        raise UsageError(f"{source} is not a token: it must be one word of ASCII letters, digits and signs")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def load_server() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Import `create_app` and `make_server`. Raises MissingExtra."""
    try:
        from agentgym_envs.http.app import create_app
        from agentgym_envs.http.run import make_server
    except ModuleNotFoundError as error:
        raise missing_extra("agentgym serve", error.name or "uvicorn", "serve") from None
    return create_app, make_server


def _routes_of(dialect: str) -> Callable[..., Any]:
    """The function that returns the routes of a dialect. Raises UsageError."""
    if dialect not in _DIALECTS:
        raise UsageError(f"--dialect takes {', '.join(_DIALECTS)}, not {dialect!r}")
    mount: Callable[..., Any] = load_object(_DIALECTS[dialect])
    return mount


def resolve_address(host: str, port: int, token: str | None = None) -> ListenAddress:
    """Resolve a host to its numeric address, which decides who can connect."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"--host {host!r} is not an address of this machine: {getattr(error, 'strerror', None) or error}"
        ) from None
    return ListenAddress(host, family, address, token)


def _check_access(host: str, address: str, token: str | None, insecure: bool) -> None:
    from agentgym_envs.http.run import is_loopback

    if token is None and not insecure and not is_loopback(address):
        raise UsageError(
            f"--host {host} accepts other machines, and there is no token: give --token-file FILE or set {_TOKEN}, or "
            "--insecure if everyone who can reach the port may use it"
        )


def listen(address: ListenAddress) -> socket.socket:
    """Open a listening socket. Raises UsageError."""
    if address.host.startswith(_UNIX):
        return _listen_on_socket(address)
    try:
        return socket.create_server(address.address, family=address.family)
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        hint = "; --port 0 chooses a free port" if error.errno == errno.EADDRINUSE else ""
        raise UsageError(f"cannot listen on {address.host} port {address.address[1]}: {why}{hint}") from None


def _listen_on_socket(address: ListenAddress) -> socket.socket:
    from agentgym_envs.http.unix_socket import UnixListener

    try:
        return UnixListener(address.address[0])
    except OSError as error:
        raise UsageError(f"cannot listen on {address.host}: {(error.strerror or str(error)).lower()}") from None


def url_of(host: str, listener: socket.socket) -> str:
    """The URL for clients on this machine."""
    if host.startswith(_UNIX):
        return host
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}"


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def find_installed(candidates: Sequence[str], settings: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids that can be made here, and a line about each of the others.

    An environment may lack a package or an argument: WebArena's official tasks need sites.

    Raises:
        UsageError: no environment can be made.
    """
    from agentgym_envs.http.sessions import Sessions

    sessions, found, left_out = Sessions(list(candidates), **settings), [], []
    try:
        for env_id in candidates:
            try:
                await sessions.describe(env_id)
                found.append(env_id)
            except (MissingExtra, UsageError) as error:
                left_out.append(f"{env_id} is left out: {error}")
    finally:
        await sessions.shut_down()
    if not found:
        raise UsageError(f"nothing can be served: {'; '.join(left_out)}")
    return found, left_out


async def _describe(sessions: Sessions) -> dict[str, Any]:
    """Make one environment of each id, so that errors are reported before the first request."""
    try:
        return {env_id: await sessions.describe(env_id) for env_id in sessions.classes}
    except BaseException:
        await sessions.shut_down()
        raise


def _announce(url: str, sessions: Sessions, described: Mapping[str, Any], left_out: Sequence[str]) -> None:
    console = stdout()
    if described:
        console.print(_table(sessions, described))
    for line in left_out:
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    for first in [sessions.full_ids[env_id] for env_id in described][:1]:
        console.print(f'gym.make("{first}", base_url="{url}")', markup=False, soft_wrap=True)


def _terms(sessions: Sessions, token: str | None, dialects: Iterable[str]) -> str:
    """One line with the limits of the server, its token and its dialects."""
    limits = f"at most {sessions.max_sessions} sessions, each closed after {sessions.idle_seconds:g} s without use"
    access = "no token needed" if token is None else f"clients need the token ({_TOKEN}, or token=...)"
    return " · ".join([limits, access, *(f"also serves {name}'s protocol" for name in dialects), "more at /docs"])


def _table(sessions: Sessions, described: Mapping[str, Any]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("environment", "runs in", "groups", "tasks sha256"):
        table.add_column(name, no_wrap=name == "environment")
    for env_id, description in described.items():
        process = "the server" if sessions.hosted(env_id) == "server" else f"workers (at most {sessions.workers})"
        tasks = description["tasks"]
        groups, digest = ", ".join(few_groups(tasks["groups"])), tasks["digest"][:12]
        table.add_row(f"[bold]{env_id}[/]", process, groups, f"[dim]{digest}[/]")
    return table


@contextlib.contextmanager
def _log_with_tracebacks() -> Iterator[None]:
    """Log warnings to stderr with time and traceback, as clients do not receive the details."""
    logger, handler = logging.getLogger("agentgym_envs"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before, logger.handlers = logger.handlers, [handler]
    try:
        yield
    finally:
        logger.handlers = before


def run(everything: Callable[[], Any], loop_factory: Any, done: str) -> None:
    """Run until a signal. SIGTERM exits with 0; Ctrl-C raises `Interrupted` with the text `done`.

    uvicorn shuts down after either signal, then passes it to the previous handler.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(everything())
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {done}") from None
    finally:
        signal.signal(signal.SIGTERM, before)
