"""`WebEnv`: what every environment in a browser is."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.core import StopReason, TextEnv, Transition
from agentgym_envs.errors import EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import FORMS, NAMES, Action, Click, Form, GoBack, Scroll, Stop, Type, read, write
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS, Backend
from agentgym_envs.webarena.browser.chromium import check_packages
from agentgym_envs.webarena.browser.pool import BrowserOptions, pool_for
from agentgym_envs.webarena.browser.session import Session, SessionOptions
from agentgym_envs.webarena.browser.view import ViewOptions, elements
from agentgym_envs.webarena.evaluators.base import Verdict
from agentgym_envs.webarena.grammars import rules_for, web_grammars

MOST_CHARS = 200_000
_FIELDS = ("textbox", "searchbox", "combobox")
_TARGETS = ("link", "button", "checkbox", "radio", "option")
_LONGEST_PLAN = 200
_ENDED = "The task has ended."
_MOST_ADDRESS = 2_000


class WebEnv(TextEnv):
    """Base class of the environments whose world is web pages in Chromium.

    All episodes of a process share one browser (of the same hosts), each in a context of its own. A scenario writes
    `_browser_options`, `_open` and `_judge`, and `_after`, `_solve` if it can: coroutines on the browsers' loop, which
    keep what they must remember of an episode in `session.kept`, since an oracle plays a second session ahead.
    """

    blocking = True
    native_async = True
    remote_options = TextEnv.remote_options | {"viewport", "max_chars", "obs_backend"}
    forms: ClassVar[Mapping[str, Form]] = FORMS
    """The actions that there are; others are refused. `grammars` are for them."""
    grammars: Mapping[str, Callable[[], ActionGrammar]] = web_grammars(FORMS)
    about: ClassVar[str] = ""
    """What `rules` say of the environment's pages, beside the actions."""

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        viewport: bool = False,
        max_chars: int = 10_000,
        obs_backend: str = "js",
        chromium: str | None = None,
        call_seconds: float = 30.0,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """See `MiniWoBEnv` for the arguments that all have. No browser is started before the first reset.

        Raises UsageError for an argument that cannot be, MissingExtra without the packages.
        """
        self._check_packages()
        super().__init__(
            grammar=grammar, split=split, groups=groups, instructions=instructions, render_mode=render_mode
        )
        self.rules = "\n\n".join(filter(None, [rules_for(self.grammar, self.forms), self.about]))
        if type(max_chars) is not int or not 200 <= max_chars <= MOST_CHARS:
            raise UsageError(f"max_chars is a whole number from 200 to {MOST_CHARS}, got {max_chars!r}")
        if obs_backend not in BACKENDS:
            raise UsageError(f"obs_backend is one of {', '.join(BACKENDS)}, got {obs_backend!r}")
        if isinstance(call_seconds, bool) or not isinstance(call_seconds, int | float) or not call_seconds > 0:
            raise UsageError(f"call_seconds is a number above 0, got {call_seconds!r}")
        if not isinstance(viewport, bool):
            raise UsageError(f"viewport is True or False, got {viewport!r}")
        self.view_options = ViewOptions(viewport=viewport, max_chars=max_chars)
        self.call_seconds = float(call_seconds)
        self._backend: Backend = BACKENDS[obs_backend]()
        self._chromium = chromium
        self._done: list[Action] = []
        self._ended = ""
        self._open_sessions: list[Session] = []
        weakref.finalize(self, _close_sessions, self._open_sessions)

    @property
    def session(self) -> Session:
        """The episode's browser context. Raises UsageError before the first reset."""
        if not self._open_sessions:
            raise UsageError("there is no page before the first reset")
        return self._open_sessions[0]

    def prepare(self) -> None:
        """Start the browser."""
        loop.wait_for(self._warm())

    def screenshot(self) -> bytes:
        """The window as a PNG. Raises EnvError, and UsageError before the first reset."""
        return loop.wait_for(self.session.screenshot())

    def random_command(self, rng: random.Random) -> str:
        """A click, or a word typed, where that can be done; now and then a scroll or a step back."""
        seen = elements(self.session.view.tree) if self._open_sessions else []
        fields = [e.id for e in seen if e.id is not None and e.role in _FIELDS]
        targets = [e.id for e in seen if e.id is not None and e.role in _TARGETS]
        if fields and rng.random() < 0.2:
            words = self.session.kept["objective"].split() or ["?"]
            return write(Type(rng.choice(fields), rng.choice(words), rng.random() < 0.5))
        if targets and rng.random() < 0.8:
            return write(Click(rng.choice(targets)))
        others: list[Action] = [Scroll("down"), Scroll("up"), GoBack()]
        return write(rng.choice([action for action in others if NAMES[type(action)] in self.forms]))

    def _check_packages(self) -> None:
        """Raise MissingExtra if a package is not installed."""
        check_packages()

    @abstractmethod
    def _browser_options(self) -> BrowserOptions:
        """Which browser, and what it may reach."""

    @abstractmethod
    async def _open(self, session: Session, task: Task, rng: np.random.Generator) -> str:
        """Bring a fresh session to the task's first page; returns the objective, as the agent is told it."""

    @abstractmethod
    async def _judge(self, session: Session, task: Task, answer: str) -> Verdict:
        """What the episode is worth, when the agent stops. Raises EnvError."""

    async def _after(self, session: Session, task: Task) -> Verdict | None:
        """After each action: what the episode is worth if it is over, else None."""
        return None

    async def _solve(self, session: Session, task: Task) -> str:
        """An oracle's next command, by `session.view`. Raises NoOracle."""
        raise NoOracle(f"{type(self).__name__} has no oracle")

    def _session_options(self, task: Task) -> SessionOptions:
        """How the browser is set up for a task."""
        return SessionOptions(self._browser_options(), self.view_options, call_seconds=self.call_seconds)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return loop.wait_for(self._begin_episode(task, rng))

    async def _begin_async(self, task: Task, rng: np.random.Generator) -> str:
        return await loop.awaited(self._begin_episode(task, rng))

    def _act(self, command: str) -> Transition:
        action = read(command, self.forms)
        with self._given_up():
            return loop.wait_for(self._carry_out(action))

    async def _act_async(self, command: str) -> Transition:
        action = read(command, self.forms)
        with self._given_up():
            return await loop.awaited(self._carry_out(action))

    @contextlib.contextmanager
    def _given_up(self) -> Iterator[None]:
        """Nobody knows how far a step came that was interrupted: its episode does not go on."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
            self._stop = StopReason.CLOSED
            raise

    async def _begin_episode(self, task: Task, rng: np.random.Generator) -> str:
        self._leave()
        self._done, self._ended = [], ""
        session = await self._opened(task, rng)
        self._leave()  # of a reset that was called meanwhile
        self._open_sessions.append(session)
        return self._tell(session, "None", "")

    async def _opened(self, task: Task, rng: np.random.Generator) -> Session:
        """A session at the beginning of a task, looked at."""
        session = await Session.open(self._session_options(task), self._backend)
        try:
            session.kept["objective"] = await self._open(session, task, rng)
            await session.look()
        except BaseException:
            await session.close()
            raise
        return session

    async def _carry_out(self, action: Action) -> Transition:
        assert self.task is not None
        if not self._open_sessions:
            raise EpisodeOver("the environment was closed or reset while the step began")
        session = self.session
        self._done.append(action)
        try:
            if isinstance(action, Stop):
                return self._end(await self._judge(session, self.task, action.answer), write(action), _ENDED)
            note = await session.act(action)
            verdict = await self._after(session, self.task)
            await session.look()
        except (EnvError, asyncio.CancelledError):
            if session in self._open_sessions:  # else a reset has begun another
                self._leave()
            raise
        told = self._tell(session, write(action), note)
        return Transition(told) if verdict is None else self._end(verdict, write(action), told)

    def _end(self, verdict: Verdict, by: str, told: str) -> Transition:
        self._ended = f"{by} -> {verdict.score}"
        gained, reason = verdict.score - self._score, {"reason": verdict.reason}
        return Transition(told, gained, True, verdict.score >= 1.0, reason)

    def _tell(self, session: Session, action: str, note: str) -> str:
        """The page in the form of WebArena's prompts."""
        view = session.view
        lines = ["OBSERVATION:", _tabs(session), "", view.tree, f"URL: {view.url[:_MOST_ADDRESS]}"]
        lines += [f"OBJECTIVE: {session.kept['objective']}", f"PREVIOUS ACTION: {action}"]
        return "\n".join([*lines, *([f"NOTE: {note}"] if note else [])])

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """With the page's keys, after actions that were refused as well."""
        return super()._info({**self._details(), **details})

    def _details(self) -> Mapping[str, Any]:
        if not self._open_sessions:
            return {}
        session = self.session
        return {
            "objective": session.kept["objective"],
            "url": session.view.url[:_MOST_ADDRESS],
            "tab": session.tabs.index(session.tab),
            "tabs": len(session.tabs),
            "elements": session.view.count,
            "cut": session.view.cut,
            "settled": session.settled,
        }

    def _state(self) -> str:
        if not self._open_sessions:
            return super()._state()
        session = self.session
        return "\n".join([*(tab.url for tab in session.tabs), str(session.tab.url), session.view.tree, self._ended])

    def _plan(self) -> Sequence[str]:
        return loop.wait_for(self._play_ahead())

    async def _play_ahead(self) -> list[str]:
        """Solve the present state in a second session. Raises NoOracle."""
        assert self.task is not None
        task, session, plan = self.task, await self._replayed(), list[str]()
        try:
            while len(plan) < _LONGEST_PLAN:
                plan.append(await self._solve(session, task))
                action = read(plan[-1])
                if isinstance(action, Stop):
                    return plan
                await session.act(action)
                if await self._after(session, task) is not None:
                    return plan
                await session.look()
        except InvalidAction as error:
            raise NoOracle(f"the oracle of {task.id!r} is stuck after {plan}: {error}") from error
        finally:
            await session.close()
        raise NoOracle(f"the oracle of {task.id!r} does not come to an end")

    async def _replayed(self) -> Session:
        """A second session in the state of this episode."""
        assert self.task is not None
        session = await self._opened(self.task, self._episode_rng())
        for action in self._done:
            with contextlib.suppress(InvalidAction):
                await session.act(action)
                await session.look()
        return session

    def _episode_rng(self) -> np.random.Generator:
        """The generator as `_open` was given it."""
        rng = np.random.Generator(np.random.PCG64(self.episode_seed))
        rng.integers(2**63)  # what the task was drawn by
        return rng

    async def _warm(self) -> None:
        await pool_for(self._browser_options()).warm()

    def _draw(self) -> str:
        return self.session.view.tree if self._open_sessions else self._observation

    def _leave(self) -> None:
        """Close the session, without waiting for it."""
        _close_sessions(self._open_sessions)

    def _close(self) -> None:
        self._leave()

    def __getstate__(self) -> dict[str, Any]:
        """Without the browser."""
        return {**self.__dict__, "_open_sessions": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A running episode is played again, in a browser of the process that this is."""
        self.__dict__.update(state)
        weakref.finalize(self, _close_sessions, self._open_sessions)
        if self._stop is None and self.task is not None:
            self._open_sessions.append(loop.wait_for(self._replayed()))


def _tabs(session: Session) -> str:
    """WebArena's line of tabs."""
    names = []
    for number, tab in enumerate(session.tabs):
        current = " (current)" if tab is session.tab else ""
        names.append(f"Tab {number}{current}: {tab.title[:_MOST_ADDRESS]}")
    return " | ".join(names)


def _close_sessions(sessions: list[Session]) -> None:
    while sessions:
        loop.begin(sessions.pop().close())
