"""`WebArenaEnv`: tasks on five sites that live in this process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import numpy as np

from agentgym_envs.errors import EnvError, NoOracle
from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import Goto, format_command
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.per_process import once_per_process
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.evaluators.base import Verdict, score_all
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.scoring import evaluators_for, finished, template_of, world_of
from agentgym_envs.webarena.tasks.table import load

_ABOUT = """The sites are:
- {shop} a shop, in which you are a customer;
- {admin} its administration, in which you work for the shop;
- {forum} a forum;
- {code} code hosting;
- {maps} a map.
You are signed in on all of them, and there are no other sites. Today is Monday, March 16, 2026. Use `stop` when the \
task is done: with the answer, in as few words as will do, if something was asked; else on the page that was asked \
for, or once what was asked for is done. Do nothing that was not asked for. If a task cannot be done, the answer is \
"N/A".""".format(**ORIGINS)


class WebArenaEnv(WebEnv):
    """Tasks on five sites that live in this process: a shop, its administration, a forum, code hosting and a map.

    ## Description
    WebArena's kinds of tasks on sites of our own, which need no container and no internet: to find something out, to
    reach a page, to change something, on one site or across them, in the four groups that AgentGym-RL reports:
    "shopping", "cms" (the administration), "maps" and "code-and-forum" (WebArena's GitLab and Reddit). A task is
    `webarena/<template>/<world>/<number>`; its goal is the intent, and `task.data` holds `template`, `world`, `params`,
    `start` (the first URL), `kind` ("information", "navigation" or "change"), `sites`, `difficulty` and `held_out`.

    A world is what all sites know: one country, 160 people, months of their orders, posts and commits. Train plays in
    four worlds, validation in another, test in two more; templates that are `held_out` are in test only. Every episode
    has a copy of its world for itself, in a database in memory, behind one server and the same addresses
    (http://shop.test and so on). The clock stands still at half past ten on Monday, the sixteenth of March 2026. The
    same task gives the same text; the seed of an episode decides nothing but which task is drawn.

    ## Action Space
    Text, in the form that the grammar asks for; by default the bare command. Ids are those of the last observation.

    | command | |
    |---|---|
    | `click [id]` | click an element; an option of a list is chosen by clicking it |
    | `type [id] [text] [0]` | replace what a field holds; without `[0]`, or with `[1]`, press Enter afterwards |
    | `hover [id]` | move the mouse over an element |
    | `press [keys]`, `press [id] [keys]` | press a key or a combination, where the focus is or on an element |
    | `scroll [up]`, `scroll [down]` | scroll the page, or the largest part of it that scrolls |
    | `new_tab`, `tab_focus [n]`, `close_tab` | tabs, counted from 0 |
    | `goto [url]`, `go_back`, `go_forward` | to a page of the five sites |
    | `wait` | look again |
    | `stop [answer]` | end the task |

    What cannot be done is answered in text (`info["invalid_action"]`).

    ## Observation
    WebArena's form: the tabs, the page as a tree of elements, the address, the objective and the previous action.
    `info` also holds `objective`, `url`, `tab`, `tabs`, `elements`, `cut` and `settled`, and at the end `reason`: what
    was missing.

    ## Rewards
    At `stop`, 1 if everything holds that the task asks for, else 0: the answer, the last page, contents of pages, the
    rows of the database that had to change, requests. Whatever was not asked for must be as it was, so a task that
    asks a question is failed by an agent that buys something on the way. Answers are compared as WebArena does, with
    numbers and dates however they are written; more than one guess is none.

    ## Termination
    `stop` ends the task. There is no limit of turns; wrap it in `ScheduledTimeLimit` (WebArena's is 30, AgentGym-RL's
    15, in which every oracle is done). A browser or site that fails ends the episode as `env_error`.

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

    ## Differences from WebArena
    - The sites, their contents and the tasks are others, made for this suite. `AgentGym/WebArenaOfficial-v0` plays
      WebArena's own.
    - No Wikipedia and no homepage; the instructions name the sites' addresses.
    - Everything is judged by rules, nothing by a language model.
    - What was not asked for counts against the agent.

    Source: Zhou et al., WebArena (arXiv 2307.13854); Xi et al., AgentGym-RL (arXiv 2509.08755) for the groups.

    ## Version History
    - v0: first version.
    """

    tasks = load()
    about = _ABOUT

    def _browser_options(self) -> BrowserOptions:
        return browser_options(self._chromium)

    def _session_options(self, task: Task) -> SessionOptions:
        return replace(super()._session_options(task), record=template_of(task).records)

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        place = await asyncio.to_thread(world_of, task)  # the first of its world takes a second
        episode = session.state["episode"] = episodes().open(place)
        session.on_close.append(partial(episodes().close, episode))
        await session.guarded(session.context.set_extra_http_headers({HEADER: episode.token}))
        await goto(session, task.data["start"])
        return task.goal

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
    """A browser that reaches the five sites, which are served from now on, and nothing else."""
    hosts = HostRules.of(mapped=dict.fromkeys(HOSTS.values(), _address()))
    return BrowserOptions(chromium=chromium, hosts=hosts)


def next_command(session: BrowserSession, task: Task) -> str:
    """The next command of a task's oracle, which goes on where it was. Raises NoOracle."""
    if "oracle" not in session.state:
        episode: Episode = session.state["episode"]
        if episode.database.total_changes:
            raise NoOracle("the oracle knows the way from the beginning only, and the sites have changed since")
        if session.view.url != task.data["start"] and "back" not in session.state:
            session.state["back"] = True
            return format_command(Goto(task.data["start"]))
        sight = session.state["sight"] = PageReader()
        session.state["oracle"] = template_of(task).oracle(sight, task.data["params"])
    session.state["sight"].look(session.view.tree, session.view.url)
    try:
        command: str = next(session.state["oracle"])
    except (StopIteration, LookupError, ValueError) as error:
        raise NoOracle(f"the oracle of {task.id!r} cannot make sense of what it sees: {error!r}") from error
    return command


def _check(episode: Episode) -> None:
    """Raise EnvError if a site failed: what it did not do is not the agent's fault."""
    if episode.failures:
        raise EnvError(f"a site failed: {episode.failures[0]}")


@once_per_process
def _address() -> str:
    """Where the sites are served."""
    sites, app = local_sites(), make_app()
    for host in HOSTS.values():
        sites.mount(host, app)
    return sites.address
