"""`WebArenaOfficialEnv`: WebArena's own 812 tasks, on sites that the user runs."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_envs.chat_judge import BASE_URL, MODEL
from agentgym_envs.errors import EnvError, NoOracle, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.task import Task
from agentgym_envs.webarena.base_env import Flavour, WebEnv
from agentgym_envs.webarena.browser.execute import open_tabs
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.tab import ImageFormat, SettleTimeouts
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Judge, Verdict, score_all
from agentgym_envs.webarena.evaluators.judge import ChatJudge
from agentgym_envs.webarena.official.login import make_login
from agentgym_envs.webarena.official.readiness import Readiness, check
from agentgym_envs.webarena.official.reset import ResetHook, make_reset, run_reset
from agentgym_envs.webarena.official.scoring import ANSWER_FORM, check_scoring, evaluators_of
from agentgym_envs.webarena.official.sites import SITES, SiteAddresses, variables
from agentgym_envs.webarena.official.tasks import (
    WebArenaTasks,
    is_unsolvable,
    is_verified,
    needed_sites,
    needs_judge,
    open_tasks,
)

_QUIET = 0.1
"""Seconds without a change until a page has settled. Sites over a network answer in bursts."""
_UNSOLVABLE = "always scores 0 (see evaluators.verified.UNSOLVABLE)"
_STATUS = "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0"


class WebArenaOfficialEnv(WebEnv):
    """WebArena's 812 tasks on a shop, its administration, a forum, GitLab, a map and an encyclopedia.

    ## Description
    The user runs the sites: WebArena's published images, or webarena-verified's slim ones. This package contains
    neither the sites nor the tasks. The tasks come from the installed package `webarena-verified` (or `libwebarena`) or
    from a file. The addresses come from the environment variables of WebArena and BrowserGym: `WA_SHOPPING` or
    `SHOPPING`, and likewise SHOPPING_ADMIN, REDDIT, GITLAB, MAP, WIKIPEDIA and HOMEPAGE. `readiness()` requests every
    site and reports which are missing, and for how many tasks.

    A task is `webarena/<number>`, with WebArena's numbers from 0 to 811. Its group is one of the AgentGym-RL paper's
    four, by the site on which it begins: "shopping" (192), "cms" (182), "maps" (128) and "gitlab-reddit" (310).
    WebArena has no training tasks, and published figures, AgentGym's too, cover all tasks: sample those with
    `split=None`. To train without test tasks, use the splits, which divide the 190 templates of the tasks: 482 tasks
    for train, 104 for validation, 226 for test. `task.data` holds `sites`, `start_urls`, `template` and `eval`, all as
    in the file, with placeholders for addresses, and `needs`: `sites` and those needed for scoring.

    Tasks that need a site without an address are not sampled, nor are, without a judge, the 118 original tasks whose
    answers a language model must judge. Requesting one by id raises UsageError, which says what to set. The 18 tasks
    that webarena-verified always scores 0 are not sampled either (`evaluators.verified.UNSOLVABLE` has the reasons),
    but can be played by id.

    The seed only selects the task. The sites keep the changes of earlier episodes, unless `reset` is given, and pages
    show the time of day. So, unlike in the rest of the suite, the same seed does not give the same bytes. Restoring a
    snapshot or unpickling an episode repeats its actions on the sites.

    ## Action Space
    Text, in the format of the grammar: WebArena's actions by element ids, `click [id]`, `type [id] [text] [0|1]`,
    `hover [id]`, `press [keys]`, `scroll [up|down]`, `new_tab`, `tab_focus [index]`, `close_tab`, `goto [url]`,
    `go_back`, `go_forward` and `stop [answer]`. `grammar="fenced"` is the format of WebArena and AgentGym.

    ## Observation
    WebArena's format: the open tabs, the accessibility tree of the part of the page in the window, the address, the
    objective and the previous action. A task that begins on several pages has a tab for each; the first one is shown.

    ## Rewards
    At `stop [answer]`, WebArena's score: 1 if the answer, the last address and the pages satisfy the task, else 0.
    `info["reason"]` says what was missing. The package webarena-verified scores its own tasks, from the answer and the
    recorded requests.

    ## Termination
    `stop` ends the episode. There is no turn limit; wrap the environment in `ScheduledTimeLimit` (AgentGym plays 15
    turns). A site that fails, or refuses the login, ends the episode as `env_error`.

    ## Arguments
    - `tasks`: "original", "verified", or a file in either format; by default the file of AGENTGYM_WEBARENA_TASKS, or
      "original".
    - `sites`: addresses by the names of the sites, instead of the environment variables.
    - `hosts`: addresses of other servers that the pages load from, such as those of a map's tiles and routes. They can
      be visited, too; nothing else but they and the sites can be reached.
    - `login`: "form" signs in through the sites' forms with WebArena's accounts (`WA_GITLAB_USERNAME` and
      `WA_GITLAB_PASSWORD` replace one, and so on). "header" uses the headers of webarena-verified's images, except for
      GitLab, which has none. A folder takes the cookies from WebArena's `*_state.json` files. "none" does not sign in.
    - `reset`: resets the sites to their initial state before every episode: the URL of a reset server, "full" for the
      server of WA_FULL_RESET, or a function. The default, None, never resets. With `reset`, only one environment at a
      time can play on the same sites.
    - `judge`: compares the meanings of answers; by default the language model that AGENTGYM_JUDGE_BASE_URL (of an
      OpenAI-compatible server) and AGENTGYM_JUDGE_MODEL name, if set.
    - `settle_seconds`: the longest wait for a page that keeps changing; then it is observed as it is.
    - `grammar`, `split`, `groups`, `viewport`, `max_chars`, `obs_backend`, `flavour`, `record_screenshots`,
      `screenshot_format`, `chromium`, `call_seconds`, `instructions`, `render_mode`: as in `MiniWoBEnv`.

    ## Differences from WebArena, AgentGym and BrowserGym
    - There are no fixed sleeps, evaluation does not use the agent's tabs, and Python runs no text of a task file.
    - An address matches by its parts, and numbers and dates match in any notation. WebArena accepts any text that
      contains the reference.
    - `type` replaces the text of a field. `goto` visits only the sites.
    - The login happens before the episode, on all sites of a task that have accounts, and no two environments share a
      session. WebArena does not sign in to the shop's administration in tasks that begin on the map.
    - The instructions list the addresses of the sites; in WebArena, a page links to them.
    - A task that needs a judge is not scored without one.
    - A turn limit ends an episode unscored, as in AgentGym; WebArena scores it with an empty answer.

    Tested only on small stub sites that answer like the real ones in what a few tasks need, never on the real ones.

    Source: WebArena (arXiv 2307.13854, commit f62e0b9); webarena-verified 1.2.3.

    ## Version History
    - v0: first version.
    """

    tasks: WebArenaTasks

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        tasks: str | os.PathLike[str] | None = None,
        sites: Mapping[str, str] | None = None,
        hosts: Sequence[str] = (),
        login: str | os.PathLike[str] = "form",
        reset: str | ResetHook | None = None,
        judge: Judge | None = None,
        viewport: bool = True,
        max_chars: int = 10_000,
        obs_backend: str = "js",
        flavour: Flavour = "agentgym",
        record_screenshots: bool = False,
        screenshot_format: ImageFormat = "png",
        chromium: str | None = None,
        call_seconds: float = 60.0,
        settle_seconds: float = 3.0,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The class docstring describes the arguments. No site is requested before the first reset.

        Raises UsageError for an invalid argument, MissingExtra without the packages.
        """
        self.sites, self.judge = SiteAddresses.of(sites), judge or ChatJudge.from_environment()
        self.tasks = self._playable(tasks)
        self.tasks.check_groups(groups)
        self._hosts = HostRules.of(urls=[*self.sites.urls.values(), *hosts])
        self._login, self._reset_sites = make_login(login), make_reset(reset)
        self.settle_seconds = _seconds(settle_seconds)
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            viewport=viewport,
            max_chars=max_chars,
            obs_backend=obs_backend,
            flavour=flavour,
            record_screenshots=record_screenshots,
            screenshot_format=screenshot_format,
            chromium=chromium,
            call_seconds=call_seconds,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.rules = f"{self.rules}\n\n{self._about_sites()}"
        _ENVIRONMENTS[id(self)] = self

    def readiness(self, *, timeout: float = 10.0) -> Readiness:
        """Request the start page of every site, for up to `timeout` seconds, and count the playable tasks."""
        return check(self.tasks, self.sites, judge=self.judge is not None, timeout=timeout)

    def _playable(self, source: str | os.PathLike[str] | None) -> WebArenaTasks:
        table = open_tasks(source)
        if not self.sites.urls:
            raise UsageError(
                "no site of WebArena has an address; set "
                f"{', '.join(variables(site)[0] for site in SITES)} (those that you have) or pass sites={{name: URL}}"
            )
        check_scoring(table)
        why = {task.id: self._lacks(task) or (_UNSOLVABLE if is_unsolvable(task) else "") for task in table}
        return WebArenaTasks(table, {task_id: reason for task_id, reason in why.items() if reason})

    def _lacks(self, task: Task) -> str:
        """The configuration that a task still needs; "" if none."""
        if missing := self.sites.missing(needed_sites(task)):
            names = " and ".join(map(repr, missing))
            how = " and ".join(" or ".join(variables(site)) for site in missing)
            return f"needs the address of {names}: set {how}, or pass sites={{...}}"
        if needs_judge(task) and self.judge is None:
            return f"needs a language model that judges its answer: set {BASE_URL} and {MODEL}, or pass judge=..."
        return ""

    def _about_sites(self) -> str:
        listed = "\n".join(f"- {site}: {url}" for site, url in self.sites.urls.items())
        answer = [ANSWER_FORM] if any(map(is_verified, self.tasks)) else []
        return "\n\n".join([f"The sites are:\n{listed}", *answer])

    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        task = super()._choose(options, key)
        if lack := self._lacks(task):
            raise UsageError(f"the task {task.id!r} cannot be played with this configuration: it {lack}")
        return task

    def _browser_options(self) -> BrowserOptions:
        return BrowserOptions(self._chromium, self._hosts)

    def _session_options(self, task: Task) -> SessionOptions:
        return SessionOptions(
            self._browser_options(),
            self.view_options,
            SettleTimeouts(_QUIET, self.settle_seconds, load=self.call_seconds / 2),
            call_seconds=self.call_seconds,
            record=is_verified(task),
        )

    async def _begin_episode(self, task: Task, rng: np.random.Generator) -> str:
        self._close_session()
        if self._reset_sites is not None:
            self._check_no_other_episode()
            await asyncio.to_thread(run_reset, self._reset_sites)
        return await super()._begin_episode(task, rng)

    def _check_no_other_episode(self) -> None:
        """Raise UsageError if another environment is playing an episode on these sites."""
        own = set(self.sites.urls.values())
        others = (known() for known in _ENVIRONMENTS.valuerefs())  # a copy, since other threads may make environments
        playing = (env for env in others if env is not None and env is not self and env._stop is None)
        if any(own & set(env.sites.urls.values()) for env in playing):
            raise UsageError(
                "another environment is playing an episode on these sites, and a reset would destroy its state; "
                "give each its own sites, or pass reset=None"
            )

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        await self._login(session, self.sites, needed_sites(task))
        await open_tabs(session, self.sites.fill(task.data["start_urls"]), _check_start)
        return task.goal

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        finished = FinishedEpisode(
            intent=task.goal,
            answer=answer,
            url=session.url,
            read=session.read,
            requests=await session.har(),
            judge=self.judge,
            urls=self.sites.urls,
        )
        return await score_all(evaluators_of(task, self.sites), finished)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Replay a running episode, as `WebEnv` does, on the sites in their current state."""
        super().__setstate__(state)
        _ENVIRONMENTS[id(self)] = self

    def _plan(self) -> Sequence[str]:
        raise NoOracle("WebArena's own tasks have no oracle")


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"settle_seconds is a number above 0, got {value!r}")
    return float(value)


async def _check_start(session: BrowserSession, url: str) -> None:
    """Raise EnvError if a site did not show its start page."""
    if (status := await session.evaluate(_STATUS)) >= 400:
        raise EnvError(f"{url} answers with status {status}")


_ENVIRONMENTS: weakref.WeakValueDictionary[int, WebArenaOfficialEnv] = weakref.WeakValueDictionary()
"""All environments of this process."""
