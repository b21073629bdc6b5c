"""The program that a worker process runs: `python -m agentgym_envs.hosting.worker_main`."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
from typing import IO

import gymnasium as gym

from agentgym_envs.hosting.frames import GRACE_SECONDS, NumberedCall, NumberedReply, receive, send
from agentgym_envs.hosting.json_forms import error_to_json
from agentgym_envs.hosting.session_host import FAILURES, SessionHost
from agentgym_envs.registration import register


class _Server:
    """The loop of a worker process."""

    def __init__(self, replies: IO[bytes]) -> None:
        self._host, self._replies, self._lock = SessionHost(), replies, threading.Lock()
        self._threads: dict[str, queue.SimpleQueue[NumberedCall]] = {}

    def run(self, frames: queue.SimpleQueue[list[NumberedCall] | None]) -> None:
        """Carry out calls until there are no more frames."""
        while (frame := frames.get()) is not None:
            replies: list[NumberedReply] = []
            for call in frame:
                if self._needs_thread(call):
                    self._run_in_thread(call)
                else:
                    replies.append(self._run(call))
            if replies:
                self._reply(replies)
        self._host.close_all()

    def _needs_thread(self, call: NumberedCall) -> bool:
        _, session, method, _ = call
        return method == "open" or session in self._threads

    def _run_in_thread(self, call: NumberedCall) -> None:
        """Run a call in its session's thread: opening is slow, and a blocking environment must not delay others."""
        session = call[1]
        if session not in self._threads:
            self._threads[session] = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(session, self._threads[session]), daemon=True).start()
        self._threads[session].put(call)

    def _serve(self, session: str, calls: queue.SimpleQueue[NumberedCall]) -> None:
        while True:
            call = calls.get()
            reply = self._run(call)
            over = call[2] == "close" or not self._host.blocks(session)
            if over:
                self._threads.pop(session, None)  # before the reply, so that no call arrives in between
            self._reply([reply])
            if over:
                return

    def _run(self, call: NumberedCall) -> NumberedReply:
        number, session, method, arguments = call
        try:
            if method == "open":
                env_id, entry_point = arguments["env_id"], arguments["entry_point"]
                if entry_point is not None and env_id not in gym.registry:
                    register(env_id, entry_point)  # registered by the parent in a module not imported here
                return number, self._host.open(session, env_id, arguments["options"]), None
            if method == "close":
                self._host.close(session)
                return number, None, None
            return number, self._host.call(session, method, arguments), None
        except FAILURES as error:
            return number, None, error_to_json(error)

    def _reply(self, replies: list[NumberedReply]) -> None:
        with self._lock:
            try:
                send(self._replies, replies)
            except OSError:
                raise
            except Exception:  # one reply that cannot be pickled must not cost the others
                for reply in replies:
                    send(self._replies, [_sendable(reply)])


def _sendable(reply: NumberedReply) -> NumberedReply:
    try:
        pickle.dumps(reply)
    except Exception as error:
        return reply[0], None, error_to_json(error)
    return reply


def _listen(pipe: IO[bytes], frames: queue.SimpleQueue[list[NumberedCall] | None]) -> None:
    """Queue frames until the parent is gone; then end the process, even if a call hangs."""
    try:
        while (frame := receive(pipe)) is not None:
            frames.put(frame)
    finally:  # also if a frame cannot be unpickled
        frames.put(None)
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)


def main() -> None:
    """Run a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    calls, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the output of libraries out of the frames
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # and frames out of the input of libraries
    frames: queue.SimpleQueue[list[NumberedCall] | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls, frames), daemon=True).start()
    _Server(replies).run(frames)


if __name__ == "__main__":
    main()
