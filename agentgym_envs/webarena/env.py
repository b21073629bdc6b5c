"""`WebArenaEnv`: tasks on six sites that this process serves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.errors import EnvError, NoOracle
from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import Goto, NewTab, TabFocus, format_command
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.execute import goto, open_tabs
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.per_process import once_per_process
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions, WarmUp
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.evaluators.base import Verdict, score_all
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.scoring import evaluators_for, finished, start_urls, template_of, world_of
from agentgym_envs.webarena.tasks.table import load

_ABOUT = """The sites are:
- {shop} a shop, in which you are a customer;
- {admin} its administration, in which you work for the shop;
- {forum} a forum;
- {code} code hosting;
- {maps} a map{more}.
You are signed in on all of them, and there are no other sites. Today is Monday, March 16, 2026. Use `stop` when the \
task is done: with the answer, in as few words as will do, if something was asked; else on the page that was asked \
for, or once what was asked for is done. Do nothing that was not asked for. If a task cannot be done, the answer is \
"N/A"."""
_ENCYCLOPEDIA = ";\n- {encyclopedia} an encyclopedia, which has no accounts"


def _about(table_version: int) -> str:
    """Return the description of the sites. The tasks of version 1 do without the encyclopedia."""
    more = "" if table_version == 1 else _ENCYCLOPEDIA.format(**ORIGINS)
    return _ABOUT.format(**ORIGINS, more=more)


class WebArenaEnv(WebEnv):
    """Tasks on local sites: a shop, its administration, a forum, code hosting, a map and an encyclopedia.

    ## Description
    Tasks in the style of WebArena on local sites, without containers or internet access. They ask for information, for
    a page, or for a change, on one site or across several. There are the four groups that AgentGym-RL reports:
    "shopping", "cms" (the administration), "maps" and "code-and-forum" (WebArena's GitLab and Reddit). A task is
    `webarena/<template>/<world>/<number>`; its goal is the intent. `task.data` holds `template`, `world`, `params`,
    `start` (the first URL), `tabs` (all URLs, if an episode begins with several tabs), `kind` ("information",
    "navigation" or "change"), `sites`, `difficulty` and `held_out`.

    A world is the data of all sites: one country, 160 people, months of their orders, posts and commits. Train uses
    four worlds, validation another, test two more. Templates that are `held_out` are in test only. Every episode has
    its own copy of its world in an in-memory database, behind one server and the same addresses (http://shop.test and
    so on). The time is always half past ten on Monday, March 16, 2026. The same task gives the same text; the seed of
    an episode only selects the task.

    ## Action Space
    Text, in the format of the grammar; by default the bare command. Ids are those of the last observation.

    | command | |
    |---|---|
    | `click [id]` | click an element; a click on an option of a list selects it |
    | `type [id] [text] [0]` | replace the text of a field; without `[0]`, or with `[1]`, press Enter afterwards |
    | `hover [id]` | move the mouse over an element |
    | `press [keys]`, `press [id] [keys]` | press a key or a combination, at the focus or on an element |
    | `scroll [up]`, `scroll [down]` | scroll the page, or its largest scrollable part |
    | `new_tab`, `tab_focus [n]`, `close_tab` | tabs, counted from 0 |
    | `goto [url]`, `go_back`, `go_forward` | visit a page of the sites |
    | `wait` | observe again |
    | `stop [answer]` | end the task |

    An impossible action is answered in text (`info["invalid_action"]`).

    ## Observation
    WebArena's format: the tabs, the page as a tree of elements, the address, the objective and the previous action.
    `info` also holds `objective`, `url`, `tab`, `tabs`, `elements`, `page_truncated`, `settled`
    and, at the end, `reason`: what was missing.

    ## Rewards
    At `stop`, 1 if every requirement of the task is met, else 0: the answer, the last page, contents of pages, the
    changed rows of the database, requests. Everything else must be unchanged, so an agent that buys something fails a
    task that only asks a question. A right answer scores in any wording and notation. One that denies, hedges, or names
    a second candidate scores 0.

    ## Termination
    `stop` ends the task. There is no turn limit; wrap the environment in `ScheduledTimeLimit` (WebArena's limit is 30,
    AgentGym-RL's 15, which is enough for every oracle of version 1; those of version 2 need up to 25). A browser or
    site that fails ends the episode as `env_error`.

    ## Arguments
    - `grammar`: the action format; also "browsergym" and "tool_call", which has one tool per action.
    - `split`, `groups`: what a reset without a task samples from.
    - `difficulty`: a range of turns such as (3, 8): only templates that the oracle solves in as many are sampled.
    - `table_version`: the version of the task table. 2 adds tasks that use the encyclopedia, and more tasks on several
      sites; it still grows, so its digest changes. By default 1, which is frozen.
    - `viewport`: observe only the part of the page in the window. By default, the whole page; the oracle needs that.
    - `max_chars`: the longest tree of an observation, in characters. A longer one is truncated after a line.
    - `obs_backend`: "js", or "cdp" for Chrome's own accessibility tree, which is slower and gives some elements other
      names than the oracles expect.
    - `flavour`: "webarena" writes the page as WebArena's own code does: texts have ids and repeated ones are left out,
      with Chrome's roles and properties (`browser.webarena_text` has the rules). It ignores `obs_backend`, and an
      observation takes several times as long.
    - `record_screenshots`: put a screenshot of the window into `info["screenshot"]` (bytes) and the boxes of the
      elements in it into `info["boxes"]`. `screenshot_format` is "png" or "jpeg".
    - `chromium`: the program; by default that of CHROMIUM_PATH, Playwright's own, or one on PATH.
    - `call_seconds`: the longest time of one browser call, after which the episode ends as `env_error`.
    - `instructions`: replaces the text for the system prompt; "" for none.
    - `render_mode`: "ansi" (the observation) or None.

    ## Differences from WebArena
    - The sites, their contents and the tasks were made for this suite. `AgentGym/WebArenaOfficial-v0` plays WebArena's
      own tasks.
    - An encyclopedia takes the place of Wikipedia. There is no homepage; the instructions list the sites' addresses.
    - Rules judge everything; no language model is involved.
    - Changes that were not asked for count against the agent.

    Source: Zhou et al., WebArena (arXiv 2307.13854); Xi et al., AgentGym-RL (arXiv 2509.08755) for the groups.

    ## Version History
    - v0: first version.
    """

    tasks = load()
    about = _about(1)
    remote_options = WebEnv.remote_options | {"table_version"}
    guess_rates: ClassVar[Mapping[str, float]] = {"shopping": 0.12, "cms": 0.07, "maps": 0.12, "code-and-forum": 0.1}
    """The share of the most frequent answer of a template, on average over the templates of a group."""

    def __init__(self, *, table_version: int = 1, **options: Any) -> None:
        """Take the arguments that the class describes.

        Raises UsageError for an invalid argument, MissingExtra without the packages.
        """
        if table_version != 1:
            self.tasks, self.about = load(table_version), _about(table_version)
        super().__init__(**options)

    def _browser_options(self) -> BrowserOptions:
        return browser_options(self._chromium)

    def _session_options(self, task: Task) -> SessionOptions:
        return replace(super()._session_options(task), record=template_of(task).records)

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        world = await asyncio.to_thread(world_of, task)  # building a world takes a second
        episode = session.state["episode"] = episodes().open(world)
        session.on_close.append(partial(episodes().close, episode))
        await session.guarded(session.context.set_extra_http_headers({HEADER: episode.token}))
        await open_tabs(session, start_urls(task))
        return task.goal

    def _warm_up(self, task: Task) -> WarmUp:
        return partial(_show_start, task)

    async def _after_action(self, session: BrowserSession, task: Task) -> Verdict | None:
        _check(session.state["episode"])
        return None

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        episode: Episode = session.state["episode"]
        _check(episode)
        requests = await session.har()
        ended = finished(task, episode, answer=answer, url=session.url, read=session.read, requests=requests)
        return await score_all(evaluators_for(task), ended)

    async def _oracle_command(self, session: BrowserSession, task: Task) -> str:
        return next_command(session, task)


def browser_options(chromium: str | None) -> BrowserOptions:
    """Start serving the sites, and return options of a browser that reaches nothing else."""
    hosts = HostRules.of(mapped=dict.fromkeys(HOSTS.values(), _address()))
    return BrowserOptions(chromium=chromium, hosts=hosts, small_heap=True)


def next_command(session: BrowserSession, task: Task) -> str:
    """The next command of a task's oracle, which continues from its last one. Raises NoOracle."""
    if "oracle" not in session.state:
        episode: Episode = session.state["episode"]
        if episode.database.total_changes:
            raise NoOracle("the oracle plays only from the beginning, and the sites have changed since")
        way_back: Iterator[str] = session.state.setdefault("way_back", _way_back(session, start_urls(task)))
        if back := next(way_back, ""):
            return back
        reader = session.state["reader"] = PageReader()
        session.state["oracle"] = template_of(task).oracle(reader, task.data["params"])
    session.state["reader"].look(session.view.tree, session.view.url)
    try:
        command: str = next(session.state["oracle"])
    except (StopIteration, LookupError, ValueError) as error:
        raise NoOracle(f"the oracle of {task.id!r} does not recognize the page: {error!r}") from error
    return command


async def _show_start(task: Task, session: BrowserSession) -> None:
    """Show the first page of a task in a session without an episode, with data that nothing else uses."""
    episode = episodes().open(await asyncio.to_thread(world_of, task))
    try:
        await session.guarded(session.context.set_extra_http_headers({HEADER: episode.token}))
        await goto(session, task.data["start"])
        await session.observe()
    finally:
        episodes().close(episode)


def _way_back(session: BrowserSession, urls: list[str]) -> Iterator[str]:
    """Yield the commands that show the start page of each tab again, and then the first tab."""
    for index, url in enumerate(urls):
        if index == len(session.tabs):
            yield format_command(NewTab())
        elif session.tabs[index].url != url and session.tab is not session.tabs[index]:
            yield format_command(TabFocus(index))
        if session.tabs[index].url != url:
            yield format_command(Goto(url))
    if session.tab is not session.tabs[0]:
        yield format_command(TabFocus(0))


def _check(episode: Episode) -> None:
    """Raise EnvError if a site failed."""
    if episode.failures:
        raise EnvError(f"a site failed: {episode.failures[0]}")


@once_per_process
def _address() -> str:
    """Serve the sites, and return the server's address."""
    sites, app = local_sites(), make_app()
    for host in HOSTS.values():
        sites.mount(host, app)
    return sites.address
