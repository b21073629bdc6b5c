"""Unix sockets: their addresses, and listening on a file that only the user who started the server can use."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from typing import Any

from agentgym_envs.errors import UsageError

UNIX = "unix:"
_PATH_BYTES = 107  # the limit of Linux, without the final zero byte
_BACKLOG = 2048
_OWNER_ONLY = 0o600


def socket_path(text: str) -> str:
    """The absolute path in `unix:/path` or `unix:///path`. Raises UsageError, also if it is too long for a socket."""
    path = text.removeprefix(UNIX)
    path = path.removeprefix("//") if path.startswith("///") else path
    valid = path.startswith("/") and not path.startswith("//") and not path.endswith("/") and "\0" not in path
    if not valid or len(os.fsencode(path)) > _PATH_BYTES:
        raise UsageError(f"a Unix socket is unix: and an absolute path of at most {_PATH_BYTES} bytes, got {text!r}")
    return path


class UnixListener(socket.socket):
    """A listening socket that removes its file when it is closed."""

    def __init__(self, path: str) -> None:
        """Listen at `path`. The file of a server that is gone is replaced.

        Raises:
            OSError: the path is in use by another server, is a file of another kind, or cannot be written.
        """
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._file: tuple[str, tuple[int, int]] | None = None
        try:
            _remove_stale(path)
            self.bind(path)
            os.chmod(path, _OWNER_ONLY)  # before `listen`, so that no other user can have connected
            self._file = path, _identity(path)
            self.listen(_BACKLOG)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening, and remove the file unless another server has replaced it."""
        super().close()
        path_and_identity, self._file = self._file, None
        if path_and_identity is not None:
            path, identity = path_and_identity
            with contextlib.suppress(OSError):
                if _identity(path) == identity:
                    os.unlink(path)

    def __exit__(self, *error: Any) -> None:
        self.close()


def _remove_stale(path: str) -> None:
    """Remove the socket file of a server that is gone. Raises OSError if the path is in use."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "a file that is no socket is there", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
