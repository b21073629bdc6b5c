"""`TextVectorEnv`: Gymnasium's vector API over runners, with EnvPool's `send` and `recv`."""

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
from agentgym_envs.hosting.remote_env import Request
from agentgym_envs.vector.infos import columns
from agentgym_envs.vector.runner import EnvRunner, Result, ToPost, close_all, submit
from agentgym_envs.vector.slots import Slot

Infos = Literal["arrays", "list"]
Batch = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Any]
Call = str | Request | None
"""An action, a reset, or nothing where a reset has failed."""
Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
_AUTORESET = Request("reset")


class TextVectorEnv(gym.vector.VectorEnv[tuple[str, ...], Sequence[str], Any]):
    """Many text environments behind one `reset` and `step`.

    Observations are a tuple of strings. A failure of one environment, or a step that takes longer than
    `step_seconds`, ends that environment's episode (`truncated`, `info["stop_reason"] == "env_error"`) and touches no
    other. Episodes that ended are reset as `autoreset_mode` says, in Gymnasium's three ways.

    `send` and `recv` are the two halves of `step`, after EnvPool (arXiv 2206.10558): act where an answer is there
    already, and wait for as many environments as one wants, so that stragglers hold up nobody.
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
        """See `make_vec`, which makes the runners too.

        Args:
            runners: the environments; they must agree in their spaces.
            autoreset_mode: when an episode that ended is followed by the next.
            infos: "arrays" is Gymnasium's dict of arrays; "list" is a list of dicts, one an environment.
            step_seconds: how long a step or reset may take; None is for ever. Inline environments have no limit.
            on_close: called after the environments are closed.

        Raises:
            UsageError: no runners, or spaces that differ.
        """
        if not runners:
            raise UsageError("a vector environment needs at least one environment")
        self.autoreset_mode = check_choices(infos, autoreset_mode)
        self._slots = tuple(Slot(runner) for runner in runners)
        self._infos, self._seconds = infos, step_seconds
        self._shut = weakref.finalize(self, _shut, tuple(runners), on_close)  # also if it is forgotten, and at exit
        self.num_envs = len(runners)
        self._same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        first = runners[0].env
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = _common_spaces(runners)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._everywhere = list(range(self.num_envs))
        self._arrivals: queue.SimpleQueue[tuple[int, int, Result]] = queue.SimpleQueue()
        self._under_way = 0
        self._wrong: dict[int, Exception] = {}

    @property
    def envs(self) -> tuple[gym.Env[str, str], ...]:
        """The environments, or their twins."""
        self._check_open()
        return tuple(slot.runner.env for slot in self._slots)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options = None,
    ) -> tuple[tuple[str, ...], Any]:
        """Begin an episode in every environment, or in those of `options["reset_mask"]`; all of them at once.

        Args:
            seed: an int gives environment i the seed `seed + i`; a sequence gives each its own; None lets each go on
                with its own generator.
            options: one mapping for all (see `TextEnv.reset`), or a sequence with one for each. `"reset_mask"`, a
                boolean array of shape (num_envs,), names those that are reset; only these are in what is returned
                as new, the others keep their last observation.

        Raises:
            UsageError: seeds or options that cannot be, also those that an environment refuses.
        """
        places = self._begin_reset(seed, options, None)
        self._wait(self.num_envs)
        self._raise_wrong()
        infos = {place: self._slots[place].deliver()[4] for place in places}
        observations = tuple(slot.observation for slot in self._slots)
        if self._infos == "list":
            return observations, list(infos.values())
        return observations, columns([infos.get(place, {}) for place in self._everywhere])

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options = None,
        env_ids: Iterable[int] | None = None,
    ) -> None:
        """Begin episodes without waiting; `recv` hands over the first observations.

        `seed` and `options` are as in `reset`, counted by environment, not by place in `env_ids`. Without `env_ids` it
        is all environments, or those of `options["reset_mask"]`. A result that nobody has taken yet is dropped.
        """
        self._begin_reset(seed, options, env_ids)

    def step(self, actions: Sequence[str]) -> Batch:
        """Take an action in every environment and wait for all.

        Returns:
            Observations (num_envs strings), rewards (float64), terminations and truncations (bool), each of shape
            (num_envs,), and infos.

        Raises:
            UsageError: not one action for each environment, or one that is no string. No step was begun then.
            EpisodeOver: an episode that ended was not reset (autoreset mode "Disabled"), or none was begun.
        """
        self.send(actions)
        self._wait(self.num_envs)
        return self._pack(self._everywhere)

    def send(self, actions: Sequence[str], env_ids: Iterable[int] | None = None) -> None:
        """Begin a step in some environments (all by default) without waiting; see `step` for what is raised.

        Where an episode has ended, the action is not used and the next episode begins (autoreset mode "NextStep").
        """
        places = self._places(env_ids)
        if isinstance(actions, str) or len(actions) != len(places):
            raise UsageError(f"{len(places)} environments need as many actions, got {_count(actions)}")
        self._begin(places, [self._call_for(place, action) for place, action in zip(places, actions, strict=True)])

    def recv(self, min_num: int | None = None, timeout: float | None = None) -> Batch:
        """Wait for `min_num` environments (by default all that were sent to) and take every result that is there.

        The results are in the order of their environments, which `infos["env_id"]` names (with `infos="list"`, the
        key `env_id` of each). `min_num` is cut down to as many as are under way. After `timeout` seconds what is
        there is returned, even if it is nothing.
        """
        self._check_open()
        self._wait(self.num_envs if min_num is None else min_num, timeout)
        places = [place for place, slot in enumerate(self._slots) if slot.row is not None]
        *batch, infos = self._pack(places)
        if self._infos == "arrays":
            infos["env_id"] = np.array(places, dtype=np.int64)
        else:
            infos = [{"env_id": place, **info} for place, info in zip(places, infos, strict=True)]
        return (*batch, infos)

    def render(self) -> tuple[Any, ...]:
        """What each environment renders."""
        self._places(None)
        return tuple(slot.runner.env.render() for slot in self._slots)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute; no step may be under way."""
        self._places(None)
        found = [slot.runner.env.get_wrapper_attr(name) for slot in self._slots]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment: one value for all, or a list or tuple of one for each."""
        self._places(None)
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise UsageError(f"{self.num_envs} environments need as many values, got {len(each)}")
        for slot, value in zip(self._slots, each, strict=True):
            slot.runner.env.set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment; calls under way are given up."""
        self._shut()

    def __reduce__(self) -> Any:
        raise TypeError("a vector environment cannot be pickled or copied; make it where it is needed, by make_vec")

    def _check_open(self) -> None:
        if self.closed:
            raise EpisodeOver("this vector environment is closed; make a new one")

    def _places(self, env_ids: Iterable[int] | None) -> list[int]:
        """The environments that are meant, none of which is under way."""
        self._check_open()
        places = self._everywhere if env_ids is None else [int(place) for place in env_ids]
        if env_ids is not None and (len(set(places)) != len(places) or not all(0 <= p < self.num_envs for p in places)):
            raise UsageError(f"env_ids must be distinct numbers from 0 to {self.num_envs - 1}, got {places}")
        if self._under_way and (busy := [place for place in places if self._slots[place].ask is not None]):
            raise UsageError(f"environments {busy} are under way; call recv() before anything else is asked of them")
        return places

    def _begin_reset(
        self, seed: int | Sequence[int | None] | None, options: Options, env_ids: Iterable[int] | None
    ) -> list[int]:
        """Begin episodes; returns where."""
        mask, rows = _split_mask(options, self.num_envs)
        if mask is not None and env_ids is not None:
            raise UsageError("env_ids and options['reset_mask'] both say which environments are reset; give one")
        seeds = _per_env_seeds(seed, self.num_envs)
        places = self._places(env_ids if mask is None else np.flatnonzero(mask))
        for place in places:
            self._slots[place].row = self._slots[place].final = None
        self._begin(places, [Request("reset", seed=seeds[place], options=rows[place]) for place in places])
        return places

    def _call_for(self, place: int, action: str) -> Call:
        """What a step comes to: the action, a reset where the episode is over, or nothing if it could not begin."""
        slot = self._slots[place]
        if slot.row is not None:
            raise UsageError(f"environment {place} has a result that was not taken; call recv() first")
        if slot.state == "running":
            if not isinstance(action, str):
                raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
            return action
        if slot.state == "stuck":
            return None
        if slot.state == "none":
            raise EpisodeOver(f"environment {place} has no episode; call reset() first")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise EpisodeOver(f"the episode of environment {place} is over; reset it with options['reset_mask']")
        return _AUTORESET

    def _begin(self, places: Iterable[int], calls: Iterable[Call]) -> None:
        to_post: list[ToPost] = []
        for place, call in zip(places, calls, strict=True):
            slot = self._slots[place]
            if call is None:
                assert slot.stuck_row is not None
                self._accept(place, slot, slot.stuck_row)
            elif slot.inline:
                self._accept(
                    place, slot, slot.runner.step(call) if isinstance(call, str) else slot.runner.attempt(call)
                )
            elif posted := self._begin_aside(place, slot, Request("step", call) if isinstance(call, str) else call):
                to_post.append(posted)
        submit(to_post)

    def _begin_aside(self, place: int, slot: Slot, ask: Request) -> ToPost | None:
        slot.ask, slot.number = ask, slot.number + 1
        self._under_way += 1
        if self._seconds is not None:
            slot.deadline = time.monotonic() + self._seconds
        return slot.runner.begin(ask, partial(self._arrive, place, slot.number))

    def _arrive(self, place: int, number: int, result: Result) -> None:
        self._arrivals.put((place, number, result))

    def _take(self, place: int, number: int, result: Result) -> None:
        slot = self._slots[place]
        if slot.ask is None or slot.number != number:
            return  # it came at the moment at which it was given up
        self._under_way -= 1
        slot.ask = slot.deadline = None
        self._accept(place, slot, result)

    def _accept(self, place: int, slot: Slot, result: Result) -> None:
        if isinstance(result, Exception):
            self._wrong[place] = result
        elif slot.take(result, self._same_step):
            self._begin([place], [_AUTORESET])

    def _wait(self, count: int, timeout: float | None = None) -> None:
        """Take results until `count` are ready, nothing is under way, or the time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        self._take_arrived()
        while self._under_way and (count >= self.num_envs or sum(s.row is not None for s in self._slots) < count):
            if end is not None and time.monotonic() >= end:
                return
            try:
                self._take(*self._arrivals.get(timeout=self._seconds_until(end)))
                self._take_arrived()
            except queue.Empty:
                self._give_up_late_ones()

    def _take_arrived(self) -> None:
        while not self._arrivals.empty():
            self._take(*self._arrivals.get())

    def _seconds_until(self, end: float | None) -> float | None:
        """How long there is to wait before something else must be done than to take what arrives."""
        moments = [] if end is None else [end]
        if self._seconds is not None:
            moments += [slot.deadline for slot in self._slots if slot.deadline is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _give_up_late_ones(self) -> None:
        now = time.monotonic()
        for place, slot in enumerate(self._slots):
            if slot.ask is not None and slot.deadline is not None and slot.deadline <= now:
                self._take(place, slot.number, slot.runner.give_up(slot.ask, self._seconds))

    def _raise_wrong(self) -> None:
        if self._wrong:
            wrong, self._wrong = self._wrong, {}
            place, error = min(wrong.items())
            raise type(error)(f"environment {place}: {error}") from error

    def _pack(self, places: Sequence[int]) -> Batch:
        self._raise_wrong()
        rows = [self._slots[place].deliver() for place in places]
        observations, rewards, terminations, truncations, infos = zip(*rows, strict=True) if rows else ((),) * 5
        return (
            observations,
            np.fromiter(rewards, np.float64, len(rows)),
            np.fromiter(terminations, np.bool_, len(rows)),
            np.fromiter(truncations, np.bool_, len(rows)),
            columns(infos) if self._infos == "arrays" else list(infos),
        )


def _shut(runners: Sequence[EnvRunner], on_close: Callable[[], None]) -> None:
    close_all(runners)
    on_close()


def check_choices(infos: Any, autoreset_mode: Any) -> AutoresetMode:
    """The autoreset mode. Raises UsageError if it or the form of the infos is none that there is."""
    if infos not in ("arrays", "list"):
        raise UsageError(f"infos must be 'arrays' or 'list', got {infos!r}")
    try:
        return AutoresetMode(autoreset_mode)
    except ValueError:
        modes = ", ".join(mode.value for mode in AutoresetMode)
        raise UsageError(f"autoreset_mode must be one of {modes}, got {autoreset_mode!r}") from None


def _common_spaces(runners: Sequence[EnvRunner]) -> tuple[gym.Space[str], gym.Space[str]]:
    spaces = [(runner.env.observation_space, runner.env.action_space) for runner in runners]
    if differing := [place for place, pair in enumerate(spaces) if pair != spaces[0]]:
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
    seeds = [seed + place for place in range(size)] if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != size:
        raise UsageError(f"{size} environments need as many seeds, got {len(seeds)}")
    if wrong := [one for one in seeds if one is not None and (not isinstance(one, int | np.integer) or one < 0)]:
        raise UsageError(f"a seed is a whole number of at least 0, or None, got {wrong[0]!r:.80}")
    return [None if one is None else int(one) for one in seeds]


def _count(actions: Any) -> str:
    return "one string" if isinstance(actions, str) else str(len(actions))
