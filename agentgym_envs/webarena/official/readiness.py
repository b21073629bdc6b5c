"""Which sites answer, and how many tasks wait for one that does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin

from agentgym_envs.task import Task
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.official.sites import SITES, Sites, variables
from agentgym_envs.webarena.official.tasks import GROUPS, needed_sites, needs_judge, open_tasks

MOST_REDIRECTS = 10


class SiteState(NamedTuple):
    """A site: its address ("" if none is configured), what is wrong with it ("" if nothing is), tasks that need it."""

    site: str
    url: str
    problem: str
    tasks: int


class GroupState(NamedTuple):
    """A group: how many of its tasks can be played, out of how many, and the sites that the others wait for."""

    group: str
    ready: int
    tasks: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """What can be played. `judge_tasks` of the tasks need a judge, which is no site; they count as ready here."""

    sites: tuple[SiteState, ...]
    groups: tuple[GroupState, ...]
    judge_tasks: int

    @property
    def ready(self) -> bool:
        """Whether every task can be played."""
        return all(group.ready == group.tasks for group in self.groups)

    def __str__(self) -> str:
        sites = [("site", "tasks", "address", "state")]
        sites += [(s.site, str(s.tasks), s.url or "-", s.problem or "ready") for s in self.sites]
        groups = [("group", "ready", "of", "waiting for")]
        groups += [(g.group, str(g.ready), str(g.tasks), ", ".join(g.waiting_for) or "-") for g in self.groups]
        judge = f"{self.judge_tasks} of the tasks are scored by a judge; without one they are left out."
        return "\n\n".join([_columns(sites), _columns(groups), *([judge] if self.judge_tasks else [])])


def check(tasks: Iterable[Task] | None = None, sites: Sites | None = None, *, timeout: float = 10.0) -> Readiness:
    """Ask every site for its start page, all at once, and count the tasks. To be printed.

    By default the tasks are those of `open_tasks()`, and the sites those that the environment variables name. `timeout`
    is in seconds. A site is ready if it answers with a page (status below 400), and on its own host.
    """
    found, sites = list(open_tasks() if tasks is None else tasks), sites or Sites.of()
    with ThreadPoolExecutor(max_workers=len(SITES)) as pool:
        asked = {site: pool.submit(_probe, url, sites, timeout) for site, url in sites.urls.items()}
        problems = {site: answer.result() for site, answer in asked.items()}
    unnamed = {site: f"set {' or '.join(variables(site))}" for site in sites.missing(SITES)}
    return _survey(found, sites, unnamed | {site: problem for site, problem in problems.items() if problem})


def _survey(tasks: Sequence[Task], sites: Sites, wrong: Mapping[str, str]) -> Readiness:
    needs = {task.id: needed_sites(task) for task in tasks}
    states = [
        SiteState(site, sites.urls.get(site, ""), wrong.get(site, ""), sum(site in need for need in needs.values()))
        for site in SITES
    ]
    judged = sum(map(needs_judge, tasks))
    groups = tuple(_group(group, tasks, needs, wrong) for group in GROUPS if any(task.group == group for task in tasks))
    return Readiness(tuple(state for state in states if state.tasks or state.url), groups, judged)


def _group(group: str, tasks: Sequence[Task], needs: Mapping[str, list[str]], wrong: Mapping[str, str]) -> GroupState:
    own = [needs[task.id] for task in tasks if task.group == group]
    ready = sum(not set(need) & set(wrong) for need in own)
    return GroupState(group, ready, len(own), tuple(s for s in SITES if s in wrong and any(s in need for need in own)))


def _probe(url: str, sites: Sites, timeout: float) -> str:
    """What is wrong with a site, "" if nothing is."""
    import httpx

    rules = HostRules.of(urls=sites.urls.values())
    try:
        with httpx.Client(timeout=timeout, trust_env=False) as client:
            for _ in range(MOST_REDIRECTS):
                answer = client.get(url)
                if not answer.has_redirect_location:
                    return "" if answer.status_code < 400 else f"answers with status {answer.status_code}"
                url = urljoin(url, answer.headers["location"])
                if not rules.allows(url):  # a shop that was told another public address sends everybody there
                    return f"leads to {url}, which is none of the sites; tell the site its public address"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"does not answer ({type(error).__name__})"
    return f"redirects more than {MOST_REDIRECTS} times"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
