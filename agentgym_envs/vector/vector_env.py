"""`TextVectorEnv`: Gymnasium's vector API over runners, with `send` and `recv` as in EnvPool."""

from __future__ import annotations

import queue
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from agentgym_envs.errors import EpisodeOver, UsageError
from agentgym_envs.hosting.connection import Request
from agentgym_envs.vector.infos import batch_infos
from agentgym_envs.vector.runner import EnvRunner, Result, RoutedCall, close_all, submit
from agentgym_envs.vector.slots import Slot

Infos = Literal["arrays", "list"]
Batch = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Any]
_SlotCall = str | Request | None
"""An action, a reset, or None for a slot whose reset failed."""
Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
_AUTORESET = Request("reset")


class TextVectorEnv(gym.vector.VectorEnv[tuple[str, ...], Sequence[str], Any]):
    """Many text environments behind one `reset` and `step`.

    Observations are a tuple of strings. A failure of one environment, or a step that takes longer than
    `step_seconds`, ends that environment's episode (`truncated`, `info["stop_reason"] == "env_error"`). It affects no
    other, except those in the same worker process if that dies or must be ended. `autoreset_mode` is one of Gymnasium's
    three modes.

    `send` and `recv` are the two halves of `step`, as in the library EnvPool (arXiv 2206.10558). They let you act in
    the environments whose results are ready, so that slow environments do not delay the others.
    """

    def __init__(
        self,
        runners: Sequence[EnvRunner],
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        infos: Infos = "arrays",
        step_seconds: float | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Use `make_vec`, which makes the runners too.

        Args:
            runners: the environments; their spaces must be equal.
            autoreset_mode: determines when the next episode begins after one has ended.
            infos: "arrays" is Gymnasium's dict of arrays; "list" is a list with a dict for each environment.
            step_seconds: the time limit of a step or reset; None means no limit. Inline environments have no limit.
            on_close: called after the environments are closed.

        Raises:
            UsageError: there are no runners, or their spaces differ.
        """
        if not runners:
            raise UsageError("a vector environment needs at least one environment")
        self.autoreset_mode = check_choices(infos, autoreset_mode)
        self._slots = tuple(Slot(runner) for runner in runners)
        self._infos, self._seconds = infos, step_seconds
        self._shut = weakref.finalize(self, _shut, tuple(runners), on_close)  # also when garbage-collected, and at exit
        self.num_envs = len(runners)
        self._same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        first = runners[0].env
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = _common_spaces(runners)
        self.observation_space = _batched(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._all_indices = list(range(self.num_envs))
        self._arrivals: queue.SimpleQueue[tuple[int, int, Result]] = queue.SimpleQueue()
        self._running = 0
        self._errors: dict[int, Exception] = {}

    @property
    def envs(self) -> tuple[gym.Env[str, str], ...]:
        """The environments."""
        self._check_open()
        return tuple(slot.runner.env for slot in self._slots)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options = None,
    ) -> tuple[tuple[str, ...], Any]:
        """Start an episode in every environment, or in those of `options["reset_mask"]`, all at the same time.

        Args:
            seed: an int gives environment i the seed `seed + i`; a sequence gives each its own; with None each
                continues its own generator.
            options: one mapping for all (see `TextEnv.reset`), or a sequence with one for each. `"reset_mask"`, a
                boolean array of shape (num_envs,), selects the environments to reset; the others keep their last
                observation and have no info.

        Raises:
            UsageError: invalid seeds or options, including those that an environment refuses.
        """
        indices = self._start_reset(seed, options, None)
        self._wait(self.num_envs)
        self._raise_errors()
        infos = {index: self._slots[index].pop_result()[4] for index in indices}
        observations = tuple(slot.observation for slot in self._slots)
        if self._infos == "list":
            return observations, list(infos.values())
        return observations, batch_infos([infos.get(index, {}) for index in self._all_indices])

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options = None,
        env_ids: Iterable[int] | None = None,
    ) -> None:
        """Start episodes without waiting; `recv` returns the first observations.

        A result that `recv` has not returned yet is dropped.

        Args:
            seed: as in `reset`, by environment and not by position in `env_ids`.
            options: as in `reset`, by environment and not by position in `env_ids`.
            env_ids: the environments; by default all, or those of `options["reset_mask"]`.
        """
        self._start_reset(seed, options, env_ids)

    def step(self, actions: Sequence[str]) -> Batch:
        """Take an action in every environment and wait for all.

        Returns:
            Observations (num_envs strings), rewards (float64), terminations and truncations (bool), each of shape
            (num_envs,), and infos.

        Raises:
            UsageError: the number of actions is wrong, or an action is not a string. No step was started.
            EpisodeOver: an ended episode was not reset (autoreset mode "Disabled"), or no episode was started.
        """
        self.send(actions)
        self._wait(self.num_envs)
        return self._pack(self._all_indices)

    def send(self, actions: Sequence[str], env_ids: Iterable[int] | None = None) -> None:
        """Start a step in some environments (all by default) without waiting. Raises the errors of `step`.

        In autoreset mode "NextStep", an environment whose episode has ended ignores the action and is reset.
        """
        indices = self._indices(env_ids)
        if isinstance(actions, str) or len(actions) != len(indices):
            raise UsageError(f"{len(indices)} environments need as many actions, got {_count(actions)}")
        self._start(indices, [self._call_for(index, action) for index, action in zip(indices, actions, strict=True)])

    def recv(self, min_num: int | None = None, timeout: float | None = None) -> Batch:
        """Wait for `min_num` results (by default all running steps) and return every result that is ready.

        The results are in the order of their environments. `infos["env_id"]` holds the indices of these environments;
        with `infos="list"`, each dict has a key `env_id`. `min_num` is at most the number of running steps. After
        `timeout` seconds the results that are ready are returned, possibly no results at all.
        """
        self._check_open()
        self._wait(self.num_envs if min_num is None else min_num, timeout)
        indices = [index for index, slot in enumerate(self._slots) if slot.result is not None]
        *batch, infos = self._pack(indices)
        if self._infos == "arrays":
            infos["env_id"] = np.array(indices, dtype=np.int64)
        else:
            infos = [{"env_id": index, **info} for index, info in zip(indices, infos, strict=True)]
        return (*batch, infos)

    def render(self) -> tuple[Any, ...]:
        """Render each environment."""
        self._indices(None)
        return tuple(slot.runner.env.render() for slot in self._slots)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute; no step may be running."""
        self._indices(None)
        values = [slot.runner.env.get_wrapper_attr(name) for slot in self._slots]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in values)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment to one value, or to the values of a list or tuple."""
        self._indices(None)
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise UsageError(f"{self.num_envs} environments need as many values, got {len(each)}")
        for slot, value in zip(self._slots, each, strict=True):
            slot.runner.env.set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment; running calls are given up."""
        self._shut()

    def __reduce__(self) -> Any:
        raise TypeError("a vector environment cannot be pickled or copied; make it where it is needed, by make_vec")

    def _check_open(self) -> None:
        if self.closed:
            raise EpisodeOver("this vector environment is closed; make a new one")

    def _indices(self, env_ids: Iterable[int] | None) -> list[int]:
        """The indices of the selected environments. Raises UsageError if a step of one of them is running."""
        self._check_open()
        indices = self._all_indices
        if env_ids is not None:
            indices = [int(index) for index in env_ids]
            if len(set(indices)) != len(indices) or not all(0 <= index < self.num_envs for index in indices):
                raise UsageError(f"env_ids must be distinct numbers from 0 to {self.num_envs - 1}, got {indices}")
        if self._running and (busy := [index for index in indices if self._slots[index].request is not None]):
            raise UsageError(f"steps of the environments {busy} are running; call recv() first")
        return indices

    def _start_reset(
        self, seed: int | Sequence[int | None] | None, options: Options, env_ids: Iterable[int] | None
    ) -> list[int]:
        """Start episodes and return the indices of their environments."""
        mask, per_env = _split_mask(options, self.num_envs)
        if mask is not None and env_ids is not None:
            raise UsageError("env_ids and options['reset_mask'] both select the environments to reset; give one")
        seeds = _per_env_seeds(seed, self.num_envs)
        indices = self._indices(env_ids if mask is None else np.flatnonzero(mask))
        for index in indices:
            self._slots[index].result = self._slots[index].final = None
        self._start(indices, [Request("reset", seed=seeds[index], options=per_env[index]) for index in indices])
        return indices

    def _call_for(self, index: int, action: str) -> _SlotCall:
        """The call of a step: the action, a reset if the episode is over, or None if the last reset failed."""
        slot = self._slots[index]
        if slot.result is not None:
            raise UsageError(f"environment {index} has a result that was not received; call recv() first")
        if slot.state == "running":
            if not isinstance(action, str):
                raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
            return action
        if slot.state == "stuck":
            return None
        if slot.state == "none":
            raise EpisodeOver(f"environment {index} has no episode; call reset() first")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise EpisodeOver(f"the episode of environment {index} is over; reset it with options['reset_mask']")
        return _AUTORESET

    def _start(self, indices: Iterable[int], calls: Iterable[_SlotCall]) -> None:
        routed: list[RoutedCall] = []
        for index, call in zip(indices, calls, strict=True):
            slot = self._slots[index]
            if call is None:
                assert slot.stuck_result is not None
                self._accept(index, slot, slot.stuck_result)
            elif slot.inline:
                self._accept(
                    index, slot, slot.runner.step(call) if isinstance(call, str) else slot.runner.run_inline(call)
                )
            elif one := self._start_request(index, slot, Request("step", call) if isinstance(call, str) else call):
                routed.append(one)
        submit(routed)

    def _start_request(self, index: int, slot: Slot, request: Request) -> RoutedCall | None:
        slot.request, slot.number = request, slot.number + 1
        self._running += 1
        if self._seconds is not None:
            slot.deadline = time.monotonic() + self._seconds
        return slot.runner.start(request, partial(self._arrive, index, slot.number))

    def _arrive(self, index: int, number: int, result: Result) -> None:
        self._arrivals.put((index, number, result))

    def _finish_request(self, index: int, number: int, result: Result) -> None:
        slot = self._slots[index]
        if slot.request is None or slot.number != number:
            return  # the request was given up at the same moment
        self._running -= 1
        slot.request = slot.deadline = None
        self._accept(index, slot, result)

    def _accept(self, index: int, slot: Slot, result: Result) -> None:
        if isinstance(result, Exception):
            self._errors[index] = result
        elif slot.accept(result, self._same_step):
            self._start([index], [_AUTORESET])

    def _wait(self, count: int, timeout: float | None = None) -> None:
        """Accept results until `count` are ready, no step is running, or the time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        self._accept_arrivals()
        while self._running and (count >= self.num_envs or sum(s.result is not None for s in self._slots) < count):
            if end is not None and time.monotonic() >= end:
                return
            try:
                self._finish_request(*self._arrivals.get(timeout=self._seconds_until(end)))
                self._accept_arrivals()
            except queue.Empty:
                self._give_up_late_requests()

    def _accept_arrivals(self) -> None:
        while not self._arrivals.empty():
            self._finish_request(*self._arrivals.get())

    def _seconds_until(self, end: float | None) -> float | None:
        """The time until `end` or the next deadline; None if there is neither."""
        moments = [] if end is None else [end]
        if self._seconds is not None:
            moments += [slot.deadline for slot in self._slots if slot.deadline is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _give_up_late_requests(self) -> None:
        now = time.monotonic()
        for index, slot in enumerate(self._slots):
            if slot.request is not None and slot.deadline is not None and slot.deadline <= now:
                self._finish_request(index, slot.number, slot.runner.give_up(slot.request, self._seconds))

    def _raise_errors(self) -> None:
        if self._errors:
            errors, self._errors = self._errors, {}
            index, error = min(errors.items())
            raise type(error)(f"environment {index}: {error}") from error

    def _pack(self, indices: Sequence[int]) -> Batch:
        self._raise_errors()
        results = [self._slots[index].pop_result() for index in indices]
        observations, rewards, terminations, truncations, infos = zip(*results, strict=True) if results else ((),) * 5
        return (
            observations,
            np.fromiter(rewards, np.float64, len(results)),
            np.fromiter(terminations, np.bool_, len(results)),
            np.fromiter(truncations, np.bool_, len(results)),
            batch_infos(infos) if self._infos == "arrays" else list(infos),
        )


def _shut(runners: Sequence[EnvRunner], on_close: Callable[[], None]) -> None:
    close_all(runners)
    on_close()


def check_choices(infos: Any, autoreset_mode: Any) -> AutoresetMode:
    """Parse the autoreset mode. Raises UsageError for an unknown mode or an unknown form of infos."""
    if infos not in ("arrays", "list"):
        raise UsageError(f"infos must be 'arrays' or 'list', got {infos!r}")
    try:
        return AutoresetMode(autoreset_mode)
    except ValueError:
        modes = ", ".join(mode.value for mode in AutoresetMode)
        raise UsageError(f"autoreset_mode must be one of {modes}, got {autoreset_mode!r}") from None


def _batched(space: gym.Space[Any], count: int) -> gym.Space[Any]:
    """The space of the tuple of all observations, also if one is a dict with an image."""
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Tuple([space] * count)
    return batch_space(space, count)


def _common_spaces(runners: Sequence[EnvRunner]) -> tuple[gym.Space[str], gym.Space[str]]:
    spaces = [(runner.env.observation_space, runner.env.action_space) for runner in runners]
    if differing := [index for index, pair in enumerate(spaces) if pair != spaces[0]]:
        raise UsageError(f"environments {differing} have other spaces than environment 0")
    return spaces[0]


def _split_mask(options: Options, size: int) -> tuple[NDArray[np.bool_] | None, list[dict[str, Any] | None]]:
    """The reset mask and the options of each environment."""
    if options is None:
        return None, [None] * size
    if isinstance(options, Mapping):
        rest = {key: value for key, value in options.items() if key != "reset_mask"}
        return _check_mask(options.get("reset_mask"), size), [rest or None] * size
    if len(options) != size:
        raise UsageError(f"{size} environments need as many options, got {len(options)}")
    if wrong := [row for row in options if not isinstance(row, Mapping | None)]:
        raise UsageError(f"the options of an environment are a mapping or None, got {wrong[0]!r:.80}")
    return None, [None if row is None else dict(row) for row in options]


def _check_mask(mask: Any, size: int) -> NDArray[np.bool_] | None:
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (size,) or not mask.any():
        raise UsageError(f"options['reset_mask'] must be a boolean array of shape ({size},) with a True, got {mask!r}")
    return mask


def _per_env_seeds(seed: int | Sequence[int | None] | None, size: int) -> list[int | None]:
    if seed is None:
        return [None] * size
    seeds = [seed + index for index in range(size)] if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != size:
        raise UsageError(f"{size} environments need as many seeds, got {len(seeds)}")
    if wrong := [one for one in seeds if one is not None and (not isinstance(one, int | np.integer) or one < 0)]:
        raise UsageError(f"a seed is a whole number of at least 0, or None, got {wrong[0]!r:.80}")
    return [None if one is None else int(one) for one in seeds]


def _count(actions: Any) -> str:
    return "one string" if isinstance(actions, str) else str(len(actions))
