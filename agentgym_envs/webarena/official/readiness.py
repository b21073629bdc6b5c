"""Which sites answer, and how many tasks wait for one that does not, or for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin

from agentgym_envs.task import Task
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.evaluators.judge import BASE_URL, MODEL, ChatJudge
from agentgym_envs.webarena.official.sites import SITES, SiteAddresses, variables
from agentgym_envs.webarena.official.tasks import GROUPS, needed_sites, needs_judge, never_right, open_tasks

MOST_REDIRECTS = 10
JUDGE = "a judge"


class SiteState(NamedTuple):
    """A site: its address ("" if none is configured), what is wrong with it ("" if nothing is), tasks that need it."""

    site: str
    url: str
    problem: str
    tasks: int


class GroupState(NamedTuple):
    """A group: how many of its tasks can be played, out of how many, and the sites (or `JUDGE`) the others wait for."""

    group: str
    ready: int
    tasks: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """What can be played. `judge_tasks` of the tasks need a judge, and `judge` says whether there is one.

    `never_right` tasks score 0 whatever an agent does. They are not drawn, and counted nowhere else here.
    """

    sites: tuple[SiteState, ...]
    groups: tuple[GroupState, ...]
    judge: bool
    judge_tasks: int
    never_right: int

    @property
    def ready(self) -> bool:
        """Whether every task can be played."""
        return all(group.ready == group.tasks for group in self.groups)

    def __str__(self) -> str:
        sites = [("site", "tasks", "address", "state")]
        sites += [(s.site, str(s.tasks), s.url or "-", s.problem or "ready") for s in self.sites]
        groups = [("group", "ready", "of", "waiting for")]
        groups += [(g.group, str(g.ready), str(g.tasks), ", ".join(g.waiting_for) or "-") for g in self.groups]
        return "\n\n".join([_columns(sites), _columns(groups), *self._foot()])

    def _foot(self) -> list[str]:
        judge = f"A judge is set; {self.judge_tasks} of the tasks need it."
        if not self.judge:
            judge = f"No judge is set; {self.judge_tasks} of the tasks wait for one: set {BASE_URL} and {MODEL}."
        never = f"Tasks that can never be scored as right, and are not drawn: {self.never_right}."
        return [*([judge] if self.judge_tasks else []), *([never] if self.never_right else [])]


def check(
    tasks: Iterable[Task] | None = None,
    sites: SiteAddresses | None = None,
    *,
    judge: bool | None = None,
    timeout: float = 10.0,
) -> Readiness:
    """Ask every site for its start page, all at once, and count the tasks. To be printed.

    By default the tasks are those of `open_tasks()`, and the sites and the judge those that the environment variables
    name. `timeout` is in seconds. A site is ready if it answers with a page (status below 400), and on its own host.
    """
    found, sites = list(open_tasks() if tasks is None else tasks), sites or SiteAddresses.of()
    judge = ChatJudge.from_environment() is not None if judge is None else judge
    with ThreadPoolExecutor(max_workers=len(SITES)) as pool:
        asked = {site: pool.submit(_probe, url, sites, timeout) for site, url in sites.urls.items()}
        problems = {site: answer.result() for site, answer in asked.items()}
    unnamed = {site: f"set {' or '.join(variables(site))}" for site in sites.missing(SITES)}
    return _survey(found, sites, unnamed | {site: problem for site, problem in problems.items() if problem}, judge)


def _survey(tasks: Sequence[Task], sites: SiteAddresses, wrong: Mapping[str, str], judge: bool) -> Readiness:
    scored = [task for task in tasks if not never_right(task)]
    needs = {task.id: [*needed_sites(task), *([JUDGE] if needs_judge(task) else [])] for task in scored}
    states = [
        SiteState(site, sites.urls.get(site, ""), wrong.get(site, ""), sum(site in need for need in needs.values()))
        for site in SITES
    ]
    missing = [name for name in (*SITES, JUDGE) if name in wrong or (name == JUDGE and not judge)]
    own = {group: [needs[task.id] for task in scored if task.group == group] for group in GROUPS}
    return Readiness(
        sites=tuple(state for state in states if state.tasks or state.url),
        groups=tuple(_group(group, needed, missing) for group, needed in own.items() if needed),
        judge=judge,
        judge_tasks=sum(map(needs_judge, scored)),
        never_right=len(tasks) - len(scored),
    )


def _group(group: str, needs: Sequence[Sequence[str]], missing: Sequence[str]) -> GroupState:
    """`needs`: what each of its tasks needs."""
    ready = sum(not set(need) & set(missing) for need in needs)
    return GroupState(group, ready, len(needs), tuple(name for name in missing if any(name in need for need in needs)))


def _probe(url: str, sites: SiteAddresses, timeout: float) -> str:
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
