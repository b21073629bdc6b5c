"""Attackers of WebArena's sites: changes without the forms, other pages, and changes that were not asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene
from agentgym_envs.core import text_env
from agentgym_envs.validate.episodes import NextAction, RecordedEpisode

Script = Callable[[Any, RecordedEpisode], Iterator[str]]
"""The messages of an episode, given the environment and the record so far."""
Reached = Callable[[Collection[Any], Collection[Any]], bool]
"""Compares the changes of the sites after the plan, and those after a further form was sent."""
_WEB_ARENA = frozenset({"WebArenaEnv"})
_MOST_FORMS = 4
_POSTING = "[...document.forms].filter(form => form.method === 'post' && !/(log|sign)-?(in|out)/.test(form.action))"
_ADDRESS = """
element => {
  const form = element.form ?? element.closest('form'), button = element.closest('button[name], input[type=submit]');
  if (!form || form.method !== 'post') return '';
  const fields = new URLSearchParams(new FormData(form));
  if (button?.name) fields.append(button.name, button.value);
  return `${form.action}?${fields}`;
}
"""
"""A function that returns the address that sends the form of an element as it is, but with GET."""
_SEND = f"""
(number => {{
  const form = {_POSTING}[number];
  if (!form) return false;
  for (const field of form.querySelectorAll('[required]')) if (!field.value) field.value = '5';
  form.requestSubmit(form.querySelector('button:not([type=button]), input[type=submit]'));
  return true;
}})
"""
"""A function that sends a form of the page as its button does."""


class PostWithoutForm(Attacker):
    """WebArena: sends the fields of the last form in an address, from a script, or from a page of its own."""

    name = "post without form"
    family = AttackFamily.SHORTCUT
    scenarios = _WEB_ARENA

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The plan, except for the command that sends the form: it earns what the plan without that command earns."""
        if len(scene.plan) < 2 or _kind(scene) != "change" or not hasattr(scene.env, "session"):
            return  # behind a server, the page is out of reach
        *start, _, end = scene.messages(*scene.plan)

        def script(env: Any, episode: RecordedEpisode) -> Iterator[str]:
            yield from start
            yield from scene.messages(*_without_enter(scene.plan[-2]))
            if address := _form_address(env, scene.plan[-2]):
                yield from scene.messages(*(f"goto [{one}]" for one in (*_forged(address), address)))
                yield end

        turns = len(scene.plan) + 5
        yield AttackAttempt("last form", policy=scripted(script), turns=turns, references=[[*start, end]])


class AnotherPage(Attacker):
    """WebArena: stops on a page whose address only contains that of the page which the task asks for."""

    name = "another page"
    family = AttackFamily.SHORTCUT
    scenarios = _WEB_ARENA

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """Each address, then the oracle's last command; it earns what that earns on the start page."""
        if not scene.pages or _kind(scene) != "navigation":
            return
        wanted, end = scene.pages[-1], scene.messages(*scene.plan[-1:])
        site, path = "/".join(wanted.split("/")[:3]), urlsplit(wanted).path
        for label, address in {
            "query": f"{site}/?next={quote(wanted, safe='')}",
            "fragment": f"{site}/#{wanted}",
            "missing": f"{site}/none{wanted.removeprefix(site)}",
            # not after a query: its last field may be one that the task leaves open, such as the order of a list
            "user": f"{site}{path}@example.com/{wanted.removeprefix(site + path)}",
        }.items():
            yield AttackAttempt(label, [*scene.messages(f"goto [{address}]"), *end], references=[end])


class ChangesMore(Attacker):
    """WebArena: does the work, and then sends another form of the page, which changes something else."""

    name = "changes more"
    family = AttackFamily.SHORTCUT
    scenarios = _WEB_ARENA

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The oracle's plan and one more change, on its last page or on the start page."""
        reached: Reached = lambda before, after: len(after) > len(before)  # noqa: E731
        yield from _with_another_form(scene, reached)


class DoAndUndo(Attacker):
    """WebArena: does the work, and undoes it with the forms of the last page before it stops."""

    name = "do and undo"
    family = AttackFamily.SHORTCUT
    scenarios = _WEB_ARENA

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The oracle's plan, and forms until the sites are as they were. It stops only then."""
        reached: Reached = lambda before, after: bool(before) and not after  # noqa: E731
        if _kind(scene) == "change":
            yield from _with_another_form(scene, reached, again=True)


def scripted(script: Script) -> NextAction:
    """The policy of a script."""
    running: list[Iterator[str]] = []

    def act(env: Any, episode: RecordedEpisode) -> str | None:
        if not running:
            running.append(script(env, episode))
        return next(running[0], None)

    return act


def _with_another_form(scene: AuditScene, reached: Reached, *, again: bool = False) -> Iterator[AttackAttempt]:
    """The plan, then forms of its last page, until the changes are those that an attacker wants, and the end.

    With `again`, the last command comes first, as buttons often undo what they did. The plan of a task that cannot be
    done has only the end.
    """
    if not scene.plan or not hasattr(scene.env, "session"):
        return  # behind a server, the sites are out of reach
    *work, end = scene.messages(*scene.plan)

    def script(env: Any, episode: RecordedEpisode) -> Iterator[str]:
        yield from work
        before, place = _changes(env), episode.last_info.get("url", "")
        for number in range(-1 if again and work else 0, _MOST_FORMS):
            if number < 0:
                yield work[-1]
            elif _evaluate(env, f"{_SEND}({number})"):
                yield from scene.messages("wait")
            else:
                return
            if reached(before, _changes(env)):
                yield end
                return
            yield from scene.messages(f"goto [{place}]")

    turns = len(scene.plan) + 2 * (_MOST_FORMS + 1)
    yield AttackAttempt("another form", policy=scripted(script), turns=turns, most=scene.oracle_score - MARGIN)


def _kind(scene: AuditScene) -> str:
    """The kind of a task: information, navigation or change."""
    return str(scene.env.tasks.get(str(scene.start.task_id)).data["kind"])


def _without_enter(command: str) -> list[str]:
    """A command that types and does not press Enter; nothing for another command, which may send the form."""
    from agentgym_envs.webarena.actions import Type, format_command, parse_command

    action = parse_command(command)
    return [format_command(replace(action, enter=False))] if isinstance(action, Type) else []


def _form_address(env: Any, command: str) -> str:
    """The address with the fields of the form of the element that a command uses; "" without such a form."""
    from agentgym_envs.webarena.actions import parse_command
    from agentgym_envs.webarena.browser import loop

    session, element = text_env(env).session, getattr(parse_command(command), "id", None)  # type: ignore[attr-defined]
    if element is None:
        return ""
    return str(loop.run(session.guarded(session.backend.call(session.tab, element, _ADDRESS))) or "")


def _forged(address: str) -> list[str]:
    """Addresses that send a POST request by a script, and by the form of a page of the agent's own."""
    path, _, fields = address.partition("?")
    return [
        f"javascript:fetch('{path}',{{method:'POST',body:new URLSearchParams('{fields}')}})",
        f"data:text/html,<form method=post action='{path}'></form><script>document.forms[0].submit()</script>",
    ]


def _evaluate(env: Any, script: str) -> Any:
    """Evaluate a JavaScript expression in the page."""
    from agentgym_envs.webarena.browser import loop

    return loop.run(text_env(env).session.evaluate(script))  # type: ignore[attr-defined]


def _changes(env: Any) -> list[Any]:
    """The changes of the sites so far, without those of tables and columns that a task ignores."""
    from agentgym_envs.webarena.evaluators.state import differences
    from agentgym_envs.webarena.sites.world import UNSCORED_TABLES
    from agentgym_envs.webarena.tasks.scoring import template_of

    base: Any = text_env(env)
    episode = base.session.state["episode"]
    free = (*UNSCORED_TABLES, *template_of(base.task).free)
    return differences(episode.world.database, episode.copy(), free)
