"""`WebEnv`: the base class of the environments in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from agentgym_envs.core import StopReason, TextEnv, Transition
from agentgym_envs.errors import EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.seeding import episode_generator
from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import (
    FORMS,
    NAMES,
    Action,
    Click,
    CommandForm,
    GoBack,
    Scroll,
    StopTask,
    Type,
    check_available,
    format_command,
    parse_command,
)
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS, Backend, JsBackend
from agentgym_envs.webarena.browser.chromium import check_packages
from agentgym_envs.webarena.browser.execute import execute
from agentgym_envs.webarena.browser.pool import BrowserOptions, pool_for
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions, WarmUp, show_nothing
from agentgym_envs.webarena.browser.tab import ImageFormat
from agentgym_envs.webarena.browser.view import PageView, ViewOptions, elements
from agentgym_envs.webarena.browser.webarena_text import WebArenaBackend
from agentgym_envs.webarena.evaluators.base import Verdict
from agentgym_envs.webarena.grammars import TypedGrammar, rules_for, web_grammars

Flavour = Literal["agentgym", "webarena"]
"""The text format of a page: the suite's own, or that of WebArena's code, with Chrome's accessibility tree."""
MAX_CHARS = 200_000
"""The largest value of `max_chars`."""
_FIELDS = ("textbox", "searchbox", "combobox")
_TARGETS = ("link", "button", "checkbox", "radio", "option")
_LONGEST_PLAN = 200
_ENDED = "The task has ended."
_MAX_URL_CHARS = 2_000


class WebEnv(TextEnv):
    """Base class of the environments that show web pages in Chromium.

    All episodes of a process with the same hosts share one browser; each has its own context. A scenario implements
    `_browser_options`, `_open` and `_judge`, and optionally `_after_action` and `_oracle_command`. These coroutines run
    on the event loop of the browsers. They store the state of an episode in `session.state`, not in the environment,
    because an oracle plays ahead in a second session.
    """

    blocking = True
    slow_oracle = True
    native_async = True
    remote_options = TextEnv.remote_options | {
        "difficulty",
        "viewport",
        "max_chars",
        "obs_backend",
        "flavour",
        "record_screenshots",
        "screenshot_format",
    }
    forms: ClassVar[Mapping[str, CommandForm]] = FORMS
    """The accepted commands; `grammars` must match them."""
    grammars: Mapping[str, Callable[[], ActionGrammar]] = web_grammars(FORMS)
    about: str = ""
    """A description of the environment's sites, appended to `rules`."""

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        viewport: bool = False,
        max_chars: int = 10_000,
        obs_backend: str = "js",
        flavour: Flavour = "agentgym",
        record_screenshots: bool = False,
        screenshot_format: ImageFormat = "png",
        chromium: str | None = None,
        call_seconds: float = 30.0,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """`MiniWoBEnv` describes the arguments. The browser starts with the first reset.

        Raises UsageError for an invalid argument, MissingExtra without the packages.
        """
        self._check_packages()
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            difficulty=difficulty,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.rules = "\n\n".join(filter(None, [rules_for(self.grammar, self.forms), self.about]))
        if type(max_chars) is not int or not 200 <= max_chars <= MAX_CHARS:
            raise UsageError(f"max_chars is a whole number from 200 to {MAX_CHARS}, got {max_chars!r}")
        if obs_backend not in BACKENDS:
            raise UsageError(f"obs_backend is one of {', '.join(BACKENDS)}, got {obs_backend!r}")
        if flavour not in get_args(Flavour):
            raise UsageError(f"flavour is one of {', '.join(get_args(Flavour))}, got {flavour!r}")
        if isinstance(call_seconds, bool) or not isinstance(call_seconds, int | float) or not call_seconds > 0:
            raise UsageError(f"call_seconds is a number above 0, got {call_seconds!r}")
        for name, value in {"viewport": viewport, "record_screenshots": record_screenshots}.items():
            if not isinstance(value, bool):
                raise UsageError(f"{name} is True or False, got {value!r}")
        if screenshot_format not in get_args(ImageFormat):
            raise UsageError(f"screenshot_format is png or jpeg, got {screenshot_format!r}")
        self.view_options = ViewOptions(viewport=viewport, max_chars=max_chars, boxes=record_screenshots)
        self._image_format: ImageFormat | None = screenshot_format if record_screenshots else None
        self.call_seconds = float(call_seconds)
        self._backend: Backend = WebArenaBackend() if flavour == "webarena" else BACKENDS[obs_backend]()
        self._chromium = chromium
        self._executed: list[Action] = []
        self._outcome = ""
        self._open_sessions: list[BrowserSession] = []
        weakref.finalize(self, _close_sessions, self._open_sessions)

    @property
    def session(self) -> BrowserSession:
        """The session of the current episode. Raises UsageError before the first reset."""
        if not self._open_sessions:
            raise UsageError("there is no page before the first reset")
        return self._open_sessions[0]

    def prepare(self) -> None:
        """Start the browser."""
        loop.run(self._warm())

    def screenshot(self) -> bytes:
        """A PNG of the window. Raises EnvError, and UsageError before the first reset."""
        return loop.run(self.session.screenshot())

    def random_command(self, rng: random.Random) -> str:
        """A click or a typed word where the page allows it, sometimes a scroll or a step back."""
        shown = elements(self.session.view.tree) if self._open_sessions else []
        fields = [e.id for e in shown if e.id is not None and e.role in _FIELDS]
        targets = [e.id for e in shown if e.id is not None and e.role in _TARGETS]
        if fields and rng.random() < 0.2:
            words = self.session.state["objective"].split() or ["?"]
            return format_command(Type(rng.choice(fields), rng.choice(words), rng.random() < 0.5))
        if targets and rng.random() < 0.8:
            return format_command(Click(rng.choice(targets)))
        others: list[Action] = [Scroll("down"), Scroll("up"), GoBack()]
        return format_command(rng.choice([action for action in others if NAMES[type(action)] in self.forms]))

    def _check_packages(self) -> None:
        """Raise MissingExtra if a package is not installed."""
        check_packages()

    @abstractmethod
    def _browser_options(self) -> BrowserOptions:
        """The browser to use, and the hosts it may reach."""

    @abstractmethod
    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        """Open the task's first page in a new session. Returns the objective shown to the agent."""

    @abstractmethod
    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        """Score the episode when the agent stops. Raises EnvError."""

    def _warm_up(self, task: Task) -> WarmUp:
        """Return a function that shows a page like the first one of `task`, for `BrowserSession.prepare_next`.

        It must not hold this environment. By default, it shows nothing.
        """
        return show_nothing

    async def _after_action(self, session: BrowserSession, task: Task) -> Verdict | None:
        """Score the episode if this action ended it; otherwise return None."""
        return None

    async def _oracle_command(self, session: BrowserSession, task: Task) -> str:
        """The oracle's next command for the page in `session.view`. Raises NoOracle."""
        raise NoOracle(f"{type(self).__name__} has no oracle")

    def _session_options(self, task: Task) -> SessionOptions:
        """The session options for a task."""
        return SessionOptions(self._browser_options(), self.view_options, call_seconds=self.call_seconds)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return loop.run(self._begin_episode(task, rng))

    async def _begin_async(self, task: Task, rng: np.random.Generator) -> str:
        return await loop.run_async(self._begin_episode(task, rng))

    def _perform(self, action: str) -> Transition:
        typed = self._parse_typed(action)
        return super()._perform(action) if typed is None else self._act_typed(typed)

    async def _perform_async(self, action: str) -> Transition:
        typed = self._parse_typed(action)
        return await (super()._perform_async(action) if typed is None else self._act_typed_async(typed))

    def _parse_typed(self, text: str) -> Action | None:
        """Parse an action by a grammar that returns typed actions; None if the grammar returns command texts."""
        if not isinstance(self.grammar, TypedGrammar):
            return None
        self._check_length(text)
        action = self.grammar.parse_action(text).action
        check_available(action, self.forms)
        return action

    def _act(self, command: str) -> Transition:
        return self._act_typed(parse_command(command, self.forms))

    async def _act_async(self, command: str) -> Transition:
        return await self._act_typed_async(parse_command(command, self.forms))

    def _act_typed(self, action: Action) -> Transition:
        with self._closed_if_interrupted():
            return loop.run(self._carry_out(action))

    async def _act_typed_async(self, action: Action) -> Transition:
        with self._closed_if_interrupted():
            return await loop.run_async(self._carry_out(action))

    @contextlib.contextmanager
    def _closed_if_interrupted(self) -> Iterator[None]:
        """Close the episode if a step is interrupted, because the state of its page is then unknown."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
            self._stop = StopReason.CLOSED
            raise

    async def _begin_episode(self, task: Task, rng: np.random.Generator) -> str:
        self._close_session()
        self._executed, self._outcome = [], ""
        session = await self._open_session(task, rng)
        self._close_session()  # of a reset that was called meanwhile
        self._open_sessions.append(session)
        await self._take_picture(session)
        return self._observation_text(session, "None", "")

    async def _open_session(self, task: Task, rng: np.random.Generator) -> BrowserSession:
        """Open a session at the beginning of a task, and observe the page."""
        session = await BrowserSession.open(self._session_options(task), self._backend)
        try:
            session.state["objective"] = await self._open(session, task, rng)
            await session.observe()
            session.prepare_next(self._warm_up(task))
        except BaseException:
            await session.close()
            raise
        return session

    async def _carry_out(self, action: Action) -> Transition:
        assert self.task is not None
        if not self._open_sessions:
            raise EpisodeOver("the environment was closed or reset while the step began")
        session = self.session
        self._executed.append(action)
        try:
            if isinstance(action, StopTask):
                return self._end(await self._judge(session, self.task, action.answer), format_command(action), _ENDED)
            note = await execute(session, action)
            verdict = await self._after_action(session, self.task)
            await session.observe()
            await self._take_picture(session)
        except (EnvError, asyncio.CancelledError):
            if session in self._open_sessions:  # otherwise a reset has opened another session
                self._close_session()
            raise
        observation = self._observation_text(session, format_command(action), note)
        return Transition(observation) if verdict is None else self._end(verdict, format_command(action), observation)

    async def _take_picture(self, session: BrowserSession) -> None:
        """Take the screenshot for the record, if there is to be one. Raises EnvError."""
        if self._image_format is not None:
            session.picture = await session.screenshot(self._image_format)

    def _end(self, verdict: Verdict, command: str, observation: str) -> Transition:
        self._outcome = f"{command} -> {verdict.score}"
        reward, details = verdict.score - self._score, {"reason": verdict.reason}
        return Transition(observation, reward, True, verdict.score >= 1.0, details)

    def _observation_text(self, session: BrowserSession, action: str, note: str) -> str:
        """The observation in the format of WebArena's prompts."""
        view = session.view
        lines = ["OBSERVATION:", _tabs(session), "", self._page_text(view), f"URL: {view.url[:_MAX_URL_CHARS]}"]
        lines += [f"OBJECTIVE: {session.state['objective']}", f"PREVIOUS ACTION: {action}"]
        return "\n".join([*lines, *([f"NOTE: {note}"] if note else [])])

    def _page_text(self, view: PageView) -> str:
        """The page in the text of an observation: its tree."""
        return view.tree

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """The info of a step with the page's keys, also after a refused action."""
        return super()._info({**self._details(), **details})

    def _details(self) -> Mapping[str, Any]:
        if not self._open_sessions:
            return {}
        session = self.session
        return {
            "objective": session.state["objective"],
            "url": session.view.url[:_MAX_URL_CHARS],
            "tab": session.tabs.index(session.tab),
            "tabs": len(session.tabs),
            "elements": session.view.count,
            "page_truncated": session.view.truncated,
            "settled": session.settled,
            **self._picture_details(session),
        }

    def _picture_details(self, session: BrowserSession) -> Mapping[str, Any]:
        """The screenshot, and the boxes of the elements in it by their ids."""
        if session.picture is None:
            return {}
        boxes = {str(number): list(box) for number, box in session.view.boxes.items()}
        return {"screenshot": session.picture, "boxes": boxes}

    def _state(self) -> str:
        if not self._open_sessions:
            return super()._state()
        session = self.session
        return "\n".join([*(tab.url for tab in session.tabs), str(session.tab.url), session.view.tree, self._outcome])

    def _plan(self) -> Sequence[str]:
        return loop.run(self._play_ahead())

    async def _play_ahead(self) -> list[str]:
        """Solve the current state in a second session. Raises NoOracle."""
        assert self.task is not None
        task, session, plan = self.task, await self._replay(), list[str]()
        try:
            while len(plan) < _LONGEST_PLAN:
                plan.append(await self._next_of_plan(session, task))
                action = parse_command(plan[-1])
                if isinstance(action, StopTask):
                    return plan
                await execute(session, action)
                if await self._after_action(session, task) is not None:
                    return plan
                await session.observe()
        except InvalidAction as error:
            raise NoOracle(f"the oracle of {task.id!r} is stuck after {plan}: {error}") from error
        finally:
            await session.close()
        raise NoOracle(f"the oracle of {task.id!r} does not finish within {_LONGEST_PLAN} actions")

    async def _next_of_plan(self, session: BrowserSession, task: Task) -> str:
        """The oracle's next command. An oracle reads the default flavour; its ids are translated. Raises NoOracle."""
        if not isinstance(session.backend, WebArenaBackend):
            return await self._oracle_command(session, task)
        shown = session.view
        session.view = await session.guarded(JsBackend().observe(session.tab, session.options.view))
        try:
            action: Any = parse_command(await self._oracle_command(session, task))
        finally:
            session.view = shown
        element = getattr(action, "id", None)
        if element is None:
            return format_command(action)
        found = await session.guarded(session.backend.find(session.tab, f"agentgym.element({element})"))
        if found is None:
            raise NoOracle(f"the oracle of {task.id!r} needs an element that WebArena's format does not show")
        return format_command(replace(action, id=found))

    async def _replay(self) -> BrowserSession:
        """Open a second session and replay this episode in it."""
        assert self.task is not None
        rng, _ = episode_generator(self.episode_seed)
        session = await self._open_session(self.task, rng)
        for action in self._executed:
            with contextlib.suppress(InvalidAction):
                await execute(session, action)
                await session.observe()
        return session

    async def _replay_with_picture(self) -> BrowserSession:
        session = await self._replay()
        await self._take_picture(session)
        return session

    async def _warm(self) -> None:
        await pool_for(self._browser_options()).warm()

    def _draw(self) -> str:
        return self.session.view.tree if self._open_sessions else self._observation

    def _close_session(self) -> None:
        """Start closing the session, without waiting."""
        _close_sessions(self._open_sessions)

    def _close(self) -> None:
        self._close_session()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the browser session."""
        return {**self.__dict__, "_open_sessions": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Replay a running episode in a browser of this process."""
        self.__dict__.update(state)
        weakref.finalize(self, _close_sessions, self._open_sessions)
        if self._stop is None and self.task is not None:
            self._open_sessions.append(loop.run(self._replay_with_picture()))


def _tabs(session: BrowserSession) -> str:
    """The line of tabs in WebArena's format."""
    names = []
    for index, tab in enumerate(session.tabs):
        current = " (current)" if tab is session.tab else ""
        names.append(f"Tab {index}{current}: {tab.title[:_MAX_URL_CHARS]}")
    return " | ".join(names)


def _close_sessions(sessions: list[BrowserSession]) -> None:
    while sessions:
        loop.start(sessions.pop().close())
