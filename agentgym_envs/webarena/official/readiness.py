"""A check of the sites, with the number of tasks that lack a site or a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin

from agentgym_envs.chat_judge import BASE_URL, MODEL
from agentgym_envs.task import Task
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.evaluators.judge import ChatJudge
from agentgym_envs.webarena.official.sites import SITES, SiteAddresses, variables
from agentgym_envs.webarena.official.tasks import GROUPS, is_unsolvable, needed_sites, needs_judge, open_tasks

MAX_REDIRECTS = 10
JUDGE = "a judge"


class SiteStatus(NamedTuple):
    """A site: its address ("" if not configured), its problem ("" if none), and the number of tasks that need it."""

    site: str
    url: str
    problem: str
    tasks: int


class GroupStatus(NamedTuple):
    """A group: the number of playable tasks, the number of all tasks, and the missing sites (or `JUDGE`)."""

    group: str
    ready: int
    tasks: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """The tasks that can be played with the current configuration.

    Attributes:
        sites: the status of each site.
        groups: the status of each group.
        judge: whether a judge is configured.
        judge_tasks: the number of tasks that need a judge.
        unsolvable: the number of tasks that always score 0. They are not sampled, nor included in the other counts.
    """

    sites: tuple[SiteStatus, ...]
    groups: tuple[GroupStatus, ...]
    judge: bool
    judge_tasks: int
    unsolvable: int

    @property
    def ready(self) -> bool:
        """True if every task can be played."""
        return all(group.ready == group.tasks for group in self.groups)

    def __str__(self) -> str:
        sites = [("site", "tasks", "address", "state")]
        sites += [(s.site, str(s.tasks), s.url or "-", s.problem or "ready") for s in self.sites]
        groups = [("group", "ready", "of", "missing")]
        groups += [(g.group, str(g.ready), str(g.tasks), ", ".join(g.missing) or "-") for g in self.groups]
        return "\n\n".join([_columns(sites), _columns(groups), *self._foot()])

    def _foot(self) -> list[str]:
        judge = f"A judge is set; {self.judge_tasks} of the tasks need it."
        if not self.judge:
            judge = f"No judge is set; {self.judge_tasks} of the tasks need one: set {BASE_URL} and {MODEL}."
        unsolvable = f"Tasks that always score 0, and are not sampled: {self.unsolvable}."
        return [*([judge] if self.judge_tasks else []), *([unsolvable] if self.unsolvable else [])]


def check(
    tasks: Iterable[Task] | None = None,
    sites: SiteAddresses | None = None,
    *,
    judge: bool | None = None,
    timeout: float = 10.0,
) -> Readiness:
    """Request the start page of every site at once, and count the playable tasks. Print the result for a table.

    A site is ready if it answers with a page (status below 400) on its own host.

    Args:
        tasks: by default those of `open_tasks()`.
        sites: by default those of the environment variables.
        judge: whether there is a judge; by default taken from the environment variables.
        timeout: seconds per request.
    """
    found, sites = list(open_tasks() if tasks is None else tasks), sites or SiteAddresses.of()
    judge = ChatJudge.from_environment() is not None if judge is None else judge
    with ThreadPoolExecutor(max_workers=len(SITES)) as pool:
        probes = {site: pool.submit(_probe, url, sites, timeout) for site, url in sites.urls.items()}
        problems = {site: probe.result() for site, probe in probes.items()}
    missing = {site: f"set {' or '.join(variables(site))}" for site in sites.missing(SITES)}
    return _summarize(found, sites, missing | {site: problem for site, problem in problems.items() if problem}, judge)


def _summarize(tasks: Sequence[Task], sites: SiteAddresses, problems: Mapping[str, str], judge: bool) -> Readiness:
    scored = [task for task in tasks if not is_unsolvable(task)]
    needs = {task.id: [*needed_sites(task), *([JUDGE] if needs_judge(task) else [])] for task in scored}
    states = [
        SiteStatus(site, sites.urls.get(site, ""), problems.get(site, ""), sum(site in need for need in needs.values()))
        for site in SITES
    ]
    missing = [name for name in (*SITES, JUDGE) if name in problems or (name == JUDGE and not judge)]
    by_group = {group: [needs[task.id] for task in scored if task.group == group] for group in GROUPS}
    return Readiness(
        sites=tuple(state for state in states if state.tasks or state.url),
        groups=tuple(_group(group, needed, missing) for group, needed in by_group.items() if needed),
        judge=judge,
        judge_tasks=sum(map(needs_judge, scored)),
        unsolvable=len(tasks) - len(scored),
    )


def _group(group: str, needs: Sequence[Sequence[str]], missing: Sequence[str]) -> GroupStatus:
    """The status of a group; `needs` lists the needs of each of its tasks."""
    ready = sum(not set(need) & set(missing) for need in needs)
    return GroupStatus(group, ready, len(needs), tuple(name for name in missing if any(name in need for need in needs)))


def _probe(url: str, sites: SiteAddresses, timeout: float) -> str:
    """The problem with a site; "" without one."""
    import httpx

    rules = HostRules.of(urls=sites.urls.values())
    try:
        with httpx.Client(timeout=timeout, trust_env=False) as client:
            for _ in range(MAX_REDIRECTS):
                answer = client.get(url)
                if not answer.has_redirect_location:
                    return "" if answer.status_code < 400 else f"answers with status {answer.status_code}"
                url = urljoin(url, answer.headers["location"])
                if not rules.allows(url):  # a shop with another public address redirects there
                    return f"redirects to {url}, which is not one of the sites; set the site's public address"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"does not answer ({type(error).__name__})"
    return f"redirects more than {MAX_REDIRECTS} times"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
