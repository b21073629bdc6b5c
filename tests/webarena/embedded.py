"""Helpers for tests of the embedded sites: HTTP clients without a browser, and tasks played in one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from typing import Any, Protocol, TypeVar

from agentgym_envs.errors import NoOracle
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.webarena.actions import StopTask, parse_command
from agentgym_envs.webarena.env import WebArenaEnv
from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.login import cookie_name
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import UNSCORED_TABLES, World, world
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.table import instances_of, start_data, world_for
from agentgym_envs.webarena.tasks.template import Params, Template, evaluators_of, intent_of

MOST_TURNS = 40


def printed_by_two_processes(code: str) -> str:
    """Run code in two other processes, whose hash seeds differ. Return what it prints, which must be the same."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    one, other = (run.communicate()[0].strip() for run in runs)
    assert [run.returncode for run in runs] == [0, 0] and one == other != ""
    return one


class _Visits(Protocol):
    episode: Episode


_V = TypeVar("_V", bound=_Visits)


def client(site: str, seed: int = 1, *, large: bool = False, app: Any = None) -> tuple[Any, Episode]:
    """Return a Starlette test client of one site, which does not follow redirects, and its episode."""
    from starlette.testclient import TestClient

    episode = episodes().open(world(seed, large))
    origin = ORIGINS[site]
    made = TestClient(
        app or make_app(origins={site: origin}),
        base_url=origin,
        headers={HEADER: episode.token},
        follow_redirects=False,
    )
    return made, episode


@cache
def _app(site: str) -> Any:
    return make_app(origins={site: ORIGINS[site]})


class Visitor:
    """An HTTP client of one site, in an episode of its own."""

    def __init__(self, site: str, large: bool = False) -> None:
        self.http, self.episode = client(site, large=large, app=_app(site))

    @property
    def world(self) -> World:
        return self.episode.world

    def get(self, path: str, status: int = 200, **how: Any) -> str:
        """Return the text of a page."""
        answer = self.http.get(path, **how)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return unescape(re.sub(r"\s+", " ", answer.text))

    def post(self, path: str, status: int = 303, /, **form: Any) -> str:
        """Return the location of the redirect, or the text of the response."""
        answer = self.http.post(path, data=form)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return str(answer.headers.get("location", answer.text))

    def value(self, query: str, *arguments: Any) -> Any:
        """Return a value of the current database."""
        row = self.episode.database.execute(query, arguments).fetchone()
        return None if row is None else row[0]

    def changes(self) -> list[Change]:
        return differences(self.world.database, self.episode.database, UNSCORED_TABLES)

    def changed(self) -> list[tuple[str, Any, Any]]:
        """Return (table, before, after) with the columns that differ."""
        return [(c.table, _part(c, c.before), _part(c, c.after)) for c in self.changes()]


def _part(change: Change, row: Any) -> Any:
    return {name: row[name] for name in sorted(change.columns)} if row and change.columns else row


def visit(made: _V) -> Iterator[_V]:
    """Yield the client for a fixture, and check that the site did not fail."""
    yield made
    assert made.episode.failures == []
    episodes().close(made.episode)


def signed_out(episode: Episode) -> dict[str, str]:
    """Return the headers of a browser that is signed out."""
    return {"cookie": f"{cookie_name(episode)}=out"}


def tasks_for_tests(template: Template, seed: int, count: int) -> list[Task]:
    """Return up to `count` tasks of a template in a world, of any split."""
    return [
        _task(template, seed, n, params)
        for n, params in enumerate(instances_of(template, world_for(template, seed))[:count])
    ]


def _task(template: Template, seed: int, number: int, params: Params) -> Task:
    data = {"template": template.name, "world": seed, "params": dict(params)}
    data |= start_data(template, world_for(template, seed), params)
    goal = intent_of(template, number, params)
    return Task(f"webarena/{template.name}/{seed}/{number}", "train", template.group, goal, data)


def bench(tasks: Sequence[Task], **options: Any) -> WebArenaEnv:
    """Return an environment with these tasks."""

    class Bench(WebArenaEnv):
        pass

    Bench.tasks = TaskTable("webarena", 0, [*tasks])
    return Bench(split=None, **options)


def follow(env: WebArenaEnv, task: Task, template: Template, params: Params | None = None) -> tuple[float, list[str]]:
    """Play the oracle's solution for `params` (by default the task's own). Returns the score and the commands."""
    return play(env, task, lambda page: template.oracle(page, params or task.data["params"]))


def play(env: WebArenaEnv, task: Task, policy: Any) -> tuple[float, list[str]]:
    """Play a generator of commands that uses a `PageReader`. Returns the score and the commands."""
    env.reset(seed=0, options={"task": task.id})
    page, done = PageReader(), list[str]()
    commands: Iterator[str] | None = None
    while len(done) < MOST_TURNS:
        page.look(env.session.view.tree, env.session.view.url)
        commands = policy(page) if commands is None else commands
        try:
            command = next(commands)
        except NoOracle as error:
            raise AssertionError(f"{task.goal!r}: after {done}: {error}\n{env.session.view.tree}") from error
        done.append(command)
        _, _, terminated, truncated, info = env.step(command)
        assert info["invalid_action"] is None, (task.goal, done, info["invalid_action"])
        assert not truncated, (task.goal, done, info)
        if terminated:
            assert isinstance(parse_command(command), StopTask)
            return info["score"], done
    raise AssertionError(f"{task.goal!r} does not end: {done}")


def sibling(template: Template, task: Task) -> Params | None:
    """Return the parameters of another instance in the same world that expects another result."""
    made, own = world_for(template, task.data["world"]), task.data["params"]
    scored = evaluators_of(template, made, own)
    others = (params for params in instances_of(template, made) if params != own)
    return next((params for params in others if evaluators_of(template, made, params) != scored), None)
