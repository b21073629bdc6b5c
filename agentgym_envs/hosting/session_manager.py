"""`SessionManager`: the session of one remote environment, replaced when it is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.errors import SessionLost
from agentgym_envs.hosting.connection import EnvProvider, RemoteSession


class SessionManager:
    """Opens sessions of one environment and calls methods on the current one."""

    def __init__(self, env_id: str, provider: EnvProvider, options: Mapping[str, Any]) -> None:
        """`options` are the constructor arguments of the environment. No session is opened yet."""
        self._env_id, self._provider, self._options = env_id, provider, dict(options)
        self.current: RemoteSession | None = None
        self.generation = 0
        """The number of abandoned sessions; a result that started in an earlier generation is obsolete."""
        self._closed = False

    def require(self) -> RemoteSession:
        """The current session. Raises SessionLost without one."""
        if self.current is None:
            raise SessionLost("the session was lost; call reset() to begin on another")
        return self.current

    def open(self) -> RemoteSession:
        """Open a session and make it the current one. Raises what `EnvProvider.open` raises."""
        generation = self.generation
        opened = self._provider.open(self._env_id, self._options)
        if self._closed or generation != self.generation:  # meanwhile; no other code would ever close this session
            opened.connection.close_session(opened.session)
            raise call_abandoned()
        self.current = opened
        return opened

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a remote method on the current session. Raises SessionLost and what the method raises."""
        session = self.require()
        try:
            return session.connection.call(session.session, method, arguments)
        except SessionLost:
            self.forget(session)
            raise

    def call_or_reopen(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method that does not need the running episode; a lost session is replaced first."""
        if self.current is not None:
            try:
                return self.call(method, arguments)
            except SessionLost:
                pass
        self.open()
        return self.call(method, arguments)

    def forget(self, session: RemoteSession) -> None:
        """Drop a lost session, unless another has already replaced it."""
        if self.current is session:
            self.current = None

    def abandon(self) -> None:
        """Give up a call that hangs: close its session by force. The next call opens another."""
        self.generation += 1
        session, self.current = self.current, None
        if session:
            session.connection.abandon(session.session)

    def close(self) -> None:
        """Close the current session and any that is still being opened."""
        self._closed = True
        session, self.current = self.current, None
        if session:
            session.connection.close_session(session.session)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "current": None}


def call_abandoned() -> SessionLost:
    """The error of a call whose caller gave it up."""
    return SessionLost("this call was given up")
