"""`make_vec`: make many environments of one id with the backend that suits them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.hosting.connection import EnvProvider, check_seconds
from agentgym_envs.hosting.methods import Env
from agentgym_envs.hosting.remote_images import make_remote_env
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.registration import env_class, import_id
from agentgym_envs.vector.runner import EnvRunner, MakeEnv, Mode
from agentgym_envs.vector.vector_env import Infos, TextVectorEnv, check_choices

Backend = Literal["inline", "thread", "process", "remote", "async"]
BACKENDS: tuple[Backend, ...] = ("inline", "thread", "process", "remote", "async")
Wrap = Callable[[Env], Env]
_MODES: dict[Backend, Mode | None] = {"inline": "inline", "thread": "thread", "async": "async"}
_PARALLEL_OPENINGS = 16


def make_vec(
    id: str,
    num_envs: int = 1,
    *,
    backend: Backend | None = None,
    num_workers: int | None = None,
    provider: EnvProvider | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    infos: Infos = "arrays",
    step_seconds: float | None = None,
    wrappers: Sequence[Wrap] = (),
    **kwargs: Any,
) -> TextVectorEnv:
    """Make `num_envs` environments of one id.

    Args:
        id: a registered id, or "module:Id", which imports the module first. Worker processes know an id of your own
            if `agentgym_envs.register` registered it; otherwise the id must name its module.
        num_envs: the number of environments, at least 1.
        backend: the way the environments run; by default the one that suits them.
            "inline" runs them one after the other in the calling thread, for steps that take microseconds.
            "thread" uses a thread for each, for steps that wait.
            "process" uses worker processes, for steps that need much CPU time.
            "remote" uses the server or servers of `base_url`, with one batched request to each.
            "async" uses an event loop, for environments that are `native_async`.
        num_workers: the number of processes of the backend "process". By default each environment has its own, so
            that a crash affects no other environment.
        provider: runs the environments instead of a backend, for example a `WorkerPool` that several vector
            environments share, or a `RayPool` (`agentgym_verl.ray_hosts`). It stays open when the vector environment
            is closed.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
        infos: "arrays" (Gymnasium's form) or "list" (a dict for each environment).
        step_seconds: the time limit of a step or reset, which then ends as `env_error`; None means no limit.
        wrappers: applied to each environment, in this order. A wrapped remote environment runs in a thread, and its
            calls are not batched.
        **kwargs: for `gym.make`.

    Raises:
        UsageError: invalid arguments, or arguments that the environment refuses.
        EnvError: an infrastructure error while making the environments.
    """
    _check_numbers(num_envs, num_workers, step_seconds)
    check_choices(infos, autoreset_mode)
    spec = _spec_of(id, kwargs)
    chosen = _choose(spec.id, backend, num_workers, provider, kwargs)
    own = chosen == "process" and provider is None
    pool = WorkerPool(num_workers or num_envs) if own else None
    make = _wrapped(_maker(id, provider or pool, kwargs), wrappers)
    mode = "thread" if wrappers and chosen != "inline" else _MODES.get(chosen)
    on_close = pool.close if pool else _nothing
    try:
        runners = _make_runners(make, num_envs, mode, parallel=chosen in ("process", "remote"))
    except BaseException:
        on_close()
        raise
    made = TextVectorEnv(
        runners, autoreset_mode=autoreset_mode, infos=infos, step_seconds=step_seconds, on_close=on_close
    )
    made.spec = spec
    return made


def _check_numbers(num_envs: Any, num_workers: Any, step_seconds: Any) -> None:
    for name, count in (("num_envs", num_envs), ("num_workers", 1 if num_workers is None else num_workers)):
        if type(count) is not int or count < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, got {count!r}")
    if step_seconds is not None:
        check_seconds("step_seconds", step_seconds)


def _choose(
    env_id: str, backend: Backend | None, num_workers: int | None, provider: EnvProvider | None, kwargs: dict[str, Any]
) -> Backend:
    """The backend. Raises UsageError for arguments that exclude each other."""
    if provider is not None:
        if backend is not None or num_workers is not None or "base_url" in kwargs:
            raise UsageError(
                "provider determines where the environments run: give no backend, num_workers or base_url with it"
            )
        return "process"
    chosen = backend or _backend_for(env_class(env_id), kwargs)
    if chosen not in BACKENDS:
        raise UsageError(f"backend must be one of {', '.join(BACKENDS)}, got {chosen!r}")
    if (chosen == "remote") != ("base_url" in kwargs):
        raise UsageError('the backend "remote" needs base_url=..., and no other backend takes it')
    if num_workers is not None and chosen != "process":
        raise UsageError(f'num_workers is for the backend "process", not for {chosen!r}')
    return chosen


def _backend_for(kind: type[TextEnv], kwargs: dict[str, Any]) -> Backend:
    if "base_url" in kwargs:
        return "remote"
    if kind.native_async:
        return "async"
    if kind.heavy:
        return "process"
    return "thread" if kind.blocking else "inline"


def _spec_of(id: str, kwargs: dict[str, Any]) -> EnvSpec:
    """The spec that `gym.make_vec` sets on a vector environment. An id "module:Id" imports the module first."""
    spec = copy.deepcopy(gym.spec(import_id(id)))
    spec.kwargs.update(kwargs)
    return spec


def _maker(env_id: str, provider: EnvProvider | None, kwargs: dict[str, Any]) -> MakeEnv:
    if provider is not None:
        return lambda: make_remote_env(env_id, provider, kwargs)
    return lambda: gym.make(env_id, **kwargs)


def _wrapped(make: MakeEnv, wrappers: Sequence[Wrap]) -> MakeEnv:
    def made() -> Env:
        env = make()
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    return made if wrappers else make


def _make_runners(make: MakeEnv, count: int, mode: Mode | None, parallel: bool) -> list[EnvRunner]:
    """Make the runners, several at a time if `parallel`. If one fails, close the others and raise."""
    if not parallel:
        return _all_or_none([lambda: EnvRunner(make, mode)] * count)
    with ThreadPoolExecutor(min(count, _PARALLEL_OPENINGS)) as threads:
        futures = [threads.submit(EnvRunner, make, mode) for _ in range(count)]
    return _all_or_none([future.result for future in futures])


def _all_or_none(makers: Sequence[Callable[[], EnvRunner]]) -> list[EnvRunner]:
    runners, errors = list[EnvRunner](), list[Exception]()
    for make in makers:
        try:
            runners.append(make())
        except Exception as error:
            errors.append(error)
    if errors:
        for runner in runners:
            runner.close()
        raise errors[0]
    return runners


def _nothing() -> None:
    pass
