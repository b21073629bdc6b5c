"""`OraclePolicy`: the environment's oracle as a policy, without defects or with known ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Self

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.trajectory import Message

DETOUR_TURNS = 2
"""Length of a detour in turns."""
_REDRAWS = 8
"""Draws of a random command that differs from the oracle's; after these, an equal one is played."""


@dataclass(frozen=True, slots=True)
class Defects:
    """Probabilities of the defects of a turn; `OraclePolicy` defines them. At most one occurs in a turn."""

    idle: float = 0.0
    slip: float = 0.0
    detour: float = 0.0
    forget: float = 0.0

    def __post_init__(self) -> None:
        """Raises UsageError if a value is no probability, or if they sum to more than 1."""
        for name, rate in asdict(self).items():
            if not 0 <= rate <= 1:
                raise UsageError(f"{name} must be between 0 and 1, got {rate}")
        if (total := sum(asdict(self).values())) > 1 + 1e-9:
            raise UsageError(
                f"the rates of defects sum to {total:g}; at most one occurs per turn, so make them at most 1"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `idle=0.5,slip=0.1`. Raises UsageError."""
        names = [field.name for field in fields(cls)]
        rates: dict[str, float] = {}
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            if name not in names or name in rates:
                raise UsageError(f"oracle:{text} must name each of {', '.join(names)} at most once, got {name!r}")
            try:
                rates[name] = float(value)
            except ValueError:
                raise UsageError(f"oracle:{text} needs a rate from 0 to 1, as in {name}=0.5, got {value!r}") from None
        return cls(**rates)

    def draw(self, rng: random.Random) -> str:
        """Draw the defect of a turn: its name, or "" for none. Takes one number from `rng`."""
        drawn, end = rng.random(), 0.0
        for name, rate in asdict(self).items():
            end += rate
            if drawn < end:
                return str(name)
        return ""


class OraclePolicy:
    """Follows the environment's oracle, with known defects if wanted: a teacher for studies and demonstrations.

    In each turn at most one defect begins, with these probabilities:

    - `idle`: the turn is wasted. The policy writes `idle_action` and keeps its plan.
    - `slip`: the policy plays a random command of the environment in place of the oracle's.
    - `detour`: it plays `DETOUR_TURNS` random commands, one per turn and without another defect.
    - `forget`: it loses its plan and repeats one of its earlier commands of the episode, drawn uniformly. In the first
      turn there is none, and it follows the oracle.

    Random commands are those of `TextEnv.random_command`, redrawn if they equal the oracle's next command. After
    `slip`, `detour` and `forget` the oracle makes a new plan from the state that was reached. If it finds none there,
    the policy plays random commands.
    """

    def __init__(
        self,
        *,
        idle: float = 0.0,
        slip: float = 0.0,
        detour: float = 0.0,
        forget: float = 0.0,
        idle_action: str = "wait",
        seed: int = 0,
    ) -> None:
        """Equal seeds give equal defects in equal episodes.

        `idle_action` is the command of a wasted turn. Only SciWorld knows "wait", and lets time pass; elsewhere the
        state does not change. Raises UsageError for a rate out of range, or rates that sum to more than 1.
        """
        self._defects, self._idle_action = Defects(idle, slip, detour, forget), idle_action
        self._rng = random.Random(seed)
        self._plan: Iterator[str] | None = None
        self._next: str | None = None
        self._played: list[str] = []
        self._detour_turns, self._astray = 0, False

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """Return the next command of the plan, or that of a defect. When the plan runs out, the oracle makes a new one.

        Raises NoOracle if the oracle has no plan, unless a defect led there.
        """
        command = self._command(env)
        self._played.append(command)
        return env.grammar.format(command)

    def _command(self, env: TextEnv) -> str:
        defect = "detour" if self._detour_turns else self._defects.draw(self._rng)
        if defect == "idle":
            return self._idle_action
        if defect == "forget" and self._played:
            self._stray()
            return self._rng.choice(self._played)
        if defect in ("slip", "detour"):
            self._detour_turns = (self._detour_turns or DETOUR_TURNS) - 1 if defect == "detour" else 0
            return self._random_command(env)
        return self._planned(env, peek=False) or env.random_command(self._rng)

    def _random_command(self, env: TextEnv) -> str:
        """Draw a command that is not the oracle's, and drop the plan."""
        planned = self._planned(env, peek=True)
        self._stray()
        command = env.random_command(self._rng)
        for _ in range(_REDRAWS):
            if command != planned:
                break
            command = env.random_command(self._rng)
        return command

    def _stray(self) -> None:
        """Drop the plan, because the next command is not the oracle's."""
        self._plan, self._next, self._astray = None, None, True

    def _planned(self, env: TextEnv, *, peek: bool) -> str | None:
        """Return the next command of the plan; None if there is no plan after a defect. `peek` keeps it for later."""
        if self._next is None:
            self._next = next(self._plan, None) if self._plan is not None else None
        if self._next is None:
            try:
                self._plan = env.oracle()
            except NoOracle:
                if not self._astray:
                    raise
                return None
            self._next = next(self._plan)
        command = self._next
        if not peek:
            self._next = None
        return command
