"""`MiniWoBEnv`: MiniWoB++'s small web tasks, for agents that read and write text."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from functools import cache, partial
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
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions, WarmUp
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
  // A page handles scroll events with its next frame.
  await new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 1000); });
  const here = typeof core === 'object' && 'agentgymSeed' in core;
  return { here, over: here && WOB_DONE_GLOBAL, reward: here ? Number(WOB_RAW_REWARD_GLOBAL) : 0 };
})()
"""


class MiniWoBEnv(WebEnv):
    """Small tasks on small web pages: MiniWoB++ 1.1.0, without its coordinates and its clock.

    ## Description
    91 of MiniWoB++'s 130 pages, which text alone can solve, in twelve groups: "click", "choose", "type", "form",
    "read", "unfold", "adjust", "email", "social", "search", "date" and "play". `miniwob.pages` lists them, with the
    reasons for leaving out the others. A task is `miniwob/<page>/<seed>`. The page generates its task from the seed and
    describes it in words: this is the objective. `task.data` holds `page`, `seed` and `mode`. Five pages reserve
    wordings or numbers for tests: `mode` is "test" in the splits validation and test.

    The pages come from the installed package `miniwob` and are served by this process. The seed of an episode only
    selects the task, and the same task gives the same text: every episode begins on 1 January 2020, and animations and
    delays are off.

    ## Action Space
    Text, in the format of the grammar; by default the bare command. Ids are those of the last observation.

    | command | |
    |---|---|
    | `click [id]` | click an element; an option of a list is chosen by clicking it |
    | `type [id] [text] [0]` | replace the value of a field; without `[0]`, or with `[1]`, press Enter afterwards |
    | `hover [id]` | move the mouse over an element |
    | `press [keys]`, `press [id] [keys]` | press a key or a combination on the focused or the given element |
    | `scroll [up]`, `scroll [down]` | scroll the page, or its largest scrollable part |
    | `wait` | observe again |
    | `stop` | give up: end the task with a score of 0 |

    The other web commands, which lead to other pages and tabs, are invalid actions. An invalid action is answered in
    text (`info["invalid_action"]`).

    ## Observation
    WebArena's format: the tabs, the page as a tree of elements, the URL, the objective and the previous action. Roles,
    names and states describe images, colours and click targets as for a screen reader (a star, a pressed button, X and
    O). The observation leaves out MiniWoB's own displays (rewards, clicks, the time). `info` also holds `objective`,
    `raw_reward` (None, or MiniWoB's own from -1 to 1), `url`, `tab`, `tabs`, `elements`, `page_truncated` and
    `settled`, and `reason` at the end.

    ## Rewards
    MiniWoB's raw reward if it is above 0, else 0, when the page ends the task. Most pages give 1 or -1. The four
    click-checkboxes pages, find-greatest, odd-or-even and phone-book give partial rewards, some of them even for
    submitting at once. The reward does not depend on the time taken.

    ## Termination
    The page ends the task when it is decided, mostly by the submit button. `stop` ends it, too. There is no turn limit;
    wrap it in `ScheduledTimeLimit`. A browser failure ends the episode as `env_error`.

    ## Arguments
    - `grammar`: the action format; also "browsergym" and, with a tool for each action, "tool_call".
    - `split`, `groups`: the tasks from which a reset without a task draws.
    - `viewport`: True limits the observation to the visible part of the page. The oracles need the default, all of it.
    - `max_chars`: the maximum length of the tree in an observation; a longer one is truncated between two lines.
    - `obs_backend`: "js", or "cdp" for Chrome's own accessibility tree, which is slower and has some names that the
      oracles do not expect.
    - `flavour`: "webarena" writes the page as WebArena's own code does: texts have ids and repeated ones are left out,
      with Chrome's roles and properties (`browser.webarena_text` has the rules). It ignores `obs_backend`, and an
      observation takes several times as long.
    - `record_screenshots`: put a screenshot of the window into `info["screenshot"]` (bytes) and the boxes of the
      elements in it into `info["boxes"]`. `screenshot_format` is "png" or "jpeg".
    - `chromium`: the browser's executable, by default that of CHROMIUM_PATH, Playwright's own or one on PATH.
    - `call_seconds`: the time limit of one browser call, after which the episode ends as `env_error`.
    - `instructions`: replaces the text for the system prompt; "" leaves it empty.
    - `render_mode`: "ansi" (the observation) or None.

    ## Differences from MiniWoB++ and BrowserGym
    - No dragging, and coordinates and screenshots only in `AgentGym/MiniWoBPixels-v0`; the pages that text does not
      solve are left out of both.
    - No time limit, and no reward that decreases over time; animations and delays are off.
    - A reward below 0 counts as 0; `info["raw_reward"]` has the original.
    - An agent cannot restart an episode. MiniWoB's cover over a finished task is not in the observation and does
      nothing; loading the page again fails the task.
    - Every clickable element has an id, with any kind of HTML.

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
        await goto(session, _url(task))
        order = {"names": NAMES, "states": STATES, "before": BEFORE.get(page, ""), "after": AFTER.get(page, "")}
        order |= {"seed": task.data["seed"], "mode": task.data["mode"]}
        objective = await session.evaluate(f"(() => {{\n{_script()}\nreturn begin({json.dumps(order)}); }})()")
        await session.settle()
        return str(objective)

    def _warm_up(self, task: Task) -> WarmUp:
        return partial(goto, url=_url(task))

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
            raise NoOracle(f"the oracle of the page {page} cannot read what the page shows: {error!r}") from error

    def _details(self) -> Mapping[str, Any]:
        kept = self.session.state if self._open_sessions else {}
        return {**super()._details(), "raw_reward": kept.get("raw_reward")}


def _url(task: Task) -> str:
    return f"http://{HOST}/miniwob/{task.data['page']}.html"


def pages_folder() -> Path:
    """Return the folder of MiniWoB++'s pages. Raises MissingExtra.

    The package is not imported, which would load Selenium.
    """
    found = importlib.util.find_spec("miniwob")
    if found is None or not found.submodule_search_locations:
        raise missing_extra("MiniWoB", "miniwob", "miniwob")
    return Path(next(iter(found.submodule_search_locations))) / "html"


@cache
def _script() -> str:
    return files(__package__).joinpath("page.js").read_text(encoding="utf-8")


@cache
def _site() -> Any:
    """Return the app that serves the pages. Raises EnvError if the package has none."""
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    folder = pages_folder()
    if not (folder / "miniwob").is_dir():
        raise EnvError(f"the installed package miniwob holds no pages ({folder})")
    return _without_handlers(Starlette(routes=[Mount("/", StaticFiles(directory=folder))]))


def _without_handlers(app: App) -> App:
    """Wrap an app so that its pages run no scripts in attributes, which an agent's input could contain."""

    async def serve(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", b"script-src-attr 'none'")
                message["headers"] = [*message.get("headers", []), policy]
            await send(message)

        await app(scope, receive, sent)

    return serve
