"""Steps of solutions as values: commands of the page, functions of a site, and the answer.

In the arguments of a step, and in the values of mappings, "{title}" means the parameter `title` of the instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeAlias

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.parameters import Params, call_by_name

_P = ParamSpec("_P")


@dataclass(frozen=True)
class Given:
    """An argument that a function computes when the step is played."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """A function of the page and its arguments. It returns a command, or yields several and may return a result."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class AnswerStep:
    """The last step of a solution, which ends the task with this answer."""

    value: str | Given


Solution: TypeAlias = Sequence[Step | AnswerStep] | Callable[..., Steps[object]]
"""Steps, or a function that yields commands and returns the answer.

The functions of a solution may have the parameters `page`, `params` and each parameter of the instance; those in a list
of steps also `found`, the result of the step before.
"""


def do(
    function: Callable[Concatenate[PageReader, _P], str | Iterator[str]], *arguments: _P.args, **options: _P.kwargs
) -> Step:
    """Return a step that calls a function with the page and these arguments."""
    return Step(function, arguments, options)


def _step(function: Callable[Concatenate[PageReader, _P], str | Iterator[str]]) -> Callable[_P, Step]:
    return lambda *arguments, **options: do(function, *arguments, **options)


# the commands of `PageReader` as steps
click = _step(PageReader.click)
click_in = _step(PageReader.click_in)
type_text = _step(PageReader.type)
choose_option = _step(PageReader.choose)
expand = _step(PageReader.expand)
turn_to = _step(PageReader.turn_to)
goto = _step(PageReader.goto)
focus_tab = _step(PageReader.focus_tab)


def given(function: Callable[..., object]) -> Any:
    """Return an argument that is computed when the step is played: `given(lambda vote: OPPOSITE[vote])`."""
    return Given(function)


ALL_PARAMETERS: Any = given(lambda params: params)
"""An argument: all parameters of the instance."""


def answer(value: str | Callable[..., object]) -> AnswerStep:
    """Return the step that ends the task with a text, or with the result of a function."""
    return AnswerStep(value if isinstance(value, str) else Given(value))


def not_offered(role: str, name: str) -> AnswerStep:
    """Return the step that reports the task as not achievable, after checking that the page has no such element."""

    def reply(page: PageReader, params: Params) -> str:
        if page.has(role, name.format(**params)):
            raise NoOracle(f"the page offers what the task assumes to be impossible: {role} {name}")
        return NOT_ACHIEVABLE

    return answer(reply)


def play(solution: Solution, page: PageReader, params: Params) -> Iterator[str]:
    """Yield the commands of a solution; the last one ends the task."""
    names = {**params, "page": page, "params": params}
    played = _play_steps(solution, names) if isinstance(solution, Sequence) else call_by_name(solution, names)
    reply = yield from played
    yield page.stop("" if reply is None else reply)


def _play_steps(steps: Sequence[Step | AnswerStep], names: Mapping[str, Any]) -> Steps[object]:
    found: object = None
    for step in steps:
        names = {**names, "found": found}
        if isinstance(step, AnswerStep):
            return _filled(step.value, names)
        found = yield from _play_step(step, names)
    return None


def _play_step(step: Step, names: Mapping[str, Any]) -> Steps[object]:
    arguments = [_filled(one, names) for one in step.arguments]
    options = {name: _filled(one, names) for name, one in step.options.items()}
    done = step.function(names["page"], *arguments, **options)
    if isinstance(done, str):
        yield done
        return None
    found: object = yield from done
    return found


def _filled(argument: Any, names: Mapping[str, Any]) -> Any:
    """Return an argument with the parameters of the instance filled in."""
    if isinstance(argument, Given):
        return call_by_name(argument.function, names)
    if isinstance(argument, dict):
        return {key: _filled(value, names) for key, value in argument.items()}
    return argument.format(**names["params"]) if isinstance(argument, str) else argument
