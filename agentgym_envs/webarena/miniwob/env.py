"""`MiniWoBEnv`: MiniWoB++'s small web tasks, for agents that read and write text."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_envs.errors import EnvError, NoOracle, missing_extra
from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import FORMS, CommandForm, format_command
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.sites import App, local_sites
from agentgym_envs.webarena.browser.view import elements
from agentgym_envs.webarena.evaluators.base import Verdict
from agentgym_envs.webarena.grammars import web_grammars
from agentgym_envs.webarena.miniwob.oracle.page_reader import WidgetReader
from agentgym_envs.webarena.miniwob.oracle.solvers import PEEKS, SOLVERS
from agentgym_envs.webarena.miniwob.pages import AFTER, BEFORE, HIDDEN, NAMES, STATES
from agentgym_envs.webarena.miniwob.tasks import MiniWoBTasks

HOST = "miniwob.test"
_ABOUT = "Each task is on one page, which ends it as soon as it is decided. There are no other pages and tabs to go to."
_ELSEWHERE = {"new_tab", "tab_focus", "close_tab", "goto", "go_back", "go_forward"}
_FORMS = {name: form for name, form in FORMS.items() if name not in _ELSEWHERE}
_FORMS["stop"] = CommandForm("stop", "give up: the task counts as failed.")
_OUTCOME = """
(async () => {
  // Scrolling is told to a page with the next picture of it.
  await new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 1000); });
  const here = typeof core === 'object' && 'agentgymSeed' in core;
  return { here, over: here && WOB_DONE_GLOBAL, reward: here ? Number(WOB_RAW_REWARD_GLOBAL) : 0 };
})()
"""


class MiniWoBEnv(WebEnv):
    """Small tasks on small web pages: MiniWoB++ 1.1.0, without its coordinates and its clock.

    ## Description
    Of MiniWoB++'s 130 pages the 91 that text alone can solve, in twelve groups: "click", "choose", "type", "form",
    "read", "unfold", "adjust", "email", "social", "search", "date" and "play"; `miniwob.pages` lists them, and says why
    the others are left out. A task is `miniwob/<page>/<seed>`. The page makes its task from the seed and says in words
    what to do, which is the objective; `task.data` holds `page`, `seed` and `mode`. Five pages keep wordings or numbers
    back for tests: `mode` is "test" in the splits validation and test.

    The pages come from the installed package `miniwob` and are served by this process. The seed of an episode decides
    nothing but which task is drawn, and the same task gives the same text: every episode begins on the first of January
    2020, and nothing on a page moves or waits.

    ## Action Space
    Text, in the form that the grammar asks for; by default the bare command. Ids are those of the last observation.

    | command | |
    |---|---|
    | `click [id]` | click an element; an option of a list is chosen by clicking it |
    | `type [id] [text] [0]` | replace what a field holds; without `[0]`, or with `[1]`, press Enter afterwards |
    | `hover [id]` | move the mouse over an element |
    | `press [keys]`, `press [id] [keys]` | press a key or a combination, where the focus is or on an element |
    | `scroll [up]`, `scroll [down]` | scroll the page, or the largest part of it that scrolls |
    | `wait` | look again |
    | `stop` | give up: it ends the task with a score of 0 |

    The web's other commands, which lead to other pages and tabs, are refused, and so is what cannot be done, in text
    (`info["invalid_action"]`).

    ## Observation
    WebArena's form: the tabs, the page as a tree of elements, the address, the objective and the previous action. What
    pages show by pictures, colours or mere listeners is told by roles, names and states (a star, a pressed button, X
    and O), as for a screen reader. What MiniWoB shows beside the task (rewards, clicks, the time) is not told. `info`
    also holds `objective`, `raw_reward` (None, or MiniWoB's own of -1 to 1), `url`, `tab`, `tabs`, `elements`, `cut`
    and `settled`, and at the end `reason`.

    ## Rewards
    MiniWoB's raw reward where it is above 0, else 0, when the page ends the task. Most pages give 1 or -1; these give
    parts: the four named click-checkboxes, find-greatest, odd-or-even and phone-book, some of them to who submits at
    once. It does not depend on the time taken.

    ## Termination
    The page ends the task when something decides it, mostly the button that submits. `stop` ends it too. There is no
    limit of turns; wrap it in `ScheduledTimeLimit`. A browser that fails ends the episode as `env_error`.

    ## Arguments
    - `grammar`: how an action is written; also "browsergym" and, with a tool for each action, "tool_call".
    - `split`, `groups`: what a reset without a task draws from.
    - `viewport`: whether only what lies in the window is told. By default all of a page is; the oracle counts on it.
    - `max_chars`: how many characters of the tree an observation may hold; a longer one is cut between two lines.
    - `obs_backend`: "js", or "cdp" for Chrome's own accessibility tree, which is slower and words some names otherwise
      than the oracles expect.
    - `chromium`: the program, by default that of CHROMIUM_PATH, Playwright's own or one on PATH.
    - `call_seconds`: how long the browser may take to do one thing before the episode ends as `env_error`.
    - `instructions`: replaces the text meant for the system prompt; "" is none at all.
    - `render_mode`: "ansi" (the observation) or None.

    ## Differences from MiniWoB++ and BrowserGym
    - No coordinates, no dragging, no screenshots; the pages that need them are left out.
    - No limit of seconds, and no reward that shrinks with the time; animations and delays are off.
    - A reward below 0 counts as 0; `info["raw_reward"]` tells it.
    - An episode cannot be begun again: neither by a click on the cover that MiniWoB lays over a finished task, which is
      not told and does nothing, nor by loading the page anew.
    - An element that takes clicks has an id, whatever HTML it is made of.

    Source: Liu et al., Reinforcement Learning on Web Interfaces using Workflow-Guided Exploration (arXiv 1802.08802);
    https://github.com/Farama-Foundation/miniwob-plusplus (version 1.1.0).

    ## Version History
    - v0: first version.
    """

    tasks = MiniWoBTasks()
    about = _ABOUT
    forms = _FORMS
    grammars = web_grammars(_FORMS)

    def _check_packages(self) -> None:
        super()._check_packages()
        pages_folder()

    def _browser_options(self) -> BrowserOptions:
        local_sites().mount(HOST, _site())
        return BrowserOptions(chromium=self._chromium, hosts=HostRules.of(mapped={HOST: local_sites().address}))

    def _session_options(self, task: Task) -> SessionOptions:
        view = replace(self.view_options, hidden=HIDDEN)
        return replace(super()._session_options(task), view=view)

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        page = task.data["page"]
        await goto(session, f"http://{HOST}/miniwob/{page}.html")
        order = {"names": NAMES, "states": STATES, "before": BEFORE.get(page, ""), "after": AFTER.get(page, "")}
        order |= {"seed": task.data["seed"], "mode": task.data["mode"]}
        objective = await session.evaluate(f"(() => {{\n{_script()}\nreturn begin({json.dumps(order)}); }})()")
        await session.settle()
        return str(objective)

    async def _after_action(self, session: BrowserSession, task: Task) -> Verdict | None:
        outcome = await session.evaluate(_OUTCOME)
        if not outcome["here"]:
            return Verdict(0.0, "the page of the task was left")
        if not outcome["over"]:
            return None
        session.state["raw_reward"] = raw = float(outcome["reward"] or 0.0)
        return Verdict(min(1.0, max(0.0, raw)), "" if raw >= 1.0 else f"MiniWoB's reward is {raw:g}")

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        return Verdict(0.0, "it was stopped before the page had ended it")

    async def _oracle_command(self, session: BrowserSession, task: Task) -> str:
        page = task.data["page"]
        peek = await session.evaluate(PEEKS[page]) if page in PEEKS else None
        seen = tuple(elements(session.view.tree))
        try:
            return format_command(SOLVERS[page](WidgetReader(session.state["objective"], seen, peek)))
        except (LookupError, ValueError, StopIteration) as error:
            raise NoOracle(f"the oracle of the page {page} cannot make sense of what it sees: {error!r}") from error

    def _details(self) -> Mapping[str, Any]:
        kept = self.session.state if self._open_sessions else {}
        return {**super()._details(), "raw_reward": kept.get("raw_reward")}


def pages_folder() -> Path:
    """MiniWoB++'s pages, found without importing the package, which would load Selenium. Raises MissingExtra."""
    found = importlib.util.find_spec("miniwob")
    if found is None or not found.submodule_search_locations:
        raise missing_extra("MiniWoB", "miniwob", "miniwob")
    return Path(next(iter(found.submodule_search_locations))) / "html"


@cache
def _script() -> str:
    return files(__package__).joinpath("page.js").read_text(encoding="utf-8")


@cache
def _site() -> Any:
    """What serves the pages. Raises EnvError if they are not there."""
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    folder = pages_folder()
    if not (folder / "miniwob").is_dir():
        raise EnvError(f"the installed package miniwob holds no pages ({folder})")
    return _without_handlers(Starlette(routes=[Mount("/", StaticFiles(directory=folder))]))


def _without_handlers(app: App) -> App:
    """The pages, with no script in attributes: they have none of their own, and what an agent types could hold one."""

    async def serve(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", b"script-src-attr 'none'")
                message["headers"] = [*message.get("headers", []), policy]
            await send(message)

        await app(scope, receive, sent)

    return serve
