"""The table of environments. To add a scenario, add a row.

Gymnasium's entry points are the names `<id>` and `vector <id>` of this module, which `__getattr__` resolves. So every
id supports `base_url` (the remote environment on a server) and `gym.make_vec` without code in the scenario.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError

DEFAULT_MAX_TURNS = 30


class Registration(NamedTuple):
    """One environment id. `max_turns` is the default turn limit of an episode: the oracle's longest plans fit in it."""

    id: str
    entry_point: str
    summary: str
    max_turns: int = DEFAULT_MAX_TURNS


REGISTRATIONS = (
    Registration("AgentGym/TextCraft-v0", "agentgym_envs.textcraft.env:TextCraftEnv", "craft an item from recipes", 50),
    Registration(
        "AgentGym/BabyAI-v0", "agentgym_envs.babyai.env:BabyAIEnv", "a grid world of rooms, described in words", 50
    ),
    Registration("AgentGym/SciWorld-v0", "agentgym_envs.sciworld.env:SciWorldEnv", "experiments in ScienceWorld", 800),
    Registration("AgentGym/Search-v0", "agentgym_envs.search.env:SearchEnv", "answer questions by searching a corpus"),
    Registration(
        "AgentGym/SearchRetry-v0",
        "agentgym_envs.search.env:SearchRetryEnv",
        "as Search, but a wrong answer does not end the episode",
    ),
    Registration(
        "AgentGym/SearchPages-v0",
        "agentgym_envs.search.pages_env:SearchPagesEnv",
        "as Search, but searches show snippets of pages, which can be opened",
    ),
    Registration("AgentGym/WebArena-v0", "agentgym_envs.webarena.env:WebArenaEnv", "work on six web sites"),
    Registration("AgentGym/MiniWoB-v0", "agentgym_envs.webarena.miniwob.env:MiniWoBEnv", "small tasks on web pages"),
    Registration(
        "AgentGym/WebArenaPixels-v0", "agentgym_envs.webarena.pixels:WebArenaPixelsEnv", "as WebArena, with screenshots"
    ),
    Registration(
        "AgentGym/MiniWoBPixels-v0", "agentgym_envs.webarena.pixels:MiniWoBPixelsEnv", "as MiniWoB, with screenshots"
    ),
    Registration(
        "AgentGym/WebArenaOfficial-v0",
        "agentgym_envs.webarena.official.env:WebArenaOfficialEnv",
        "WebArena's 812 tasks, on sites that you run",
    ),
    Registration(
        "AgentGym/TextCraftCoop-v0",
        "agentgym_envs.multiagent.joint_envs:TextCraftCoopEnv",
        "craft an item as a team of agents that talk",
        50,
    ),
    Registration(
        "AgentGym/PlannerActor-v0",
        "agentgym_envs.multiagent.joint_envs:PlannerActorEnv",
        "any of these environments, for a planner and an actor",
    ),
)
_ENTRY_POINTS: dict[str, str] = {}
_VECTOR = "vector "


def env_ids() -> tuple[str, ...]:
    """All ids of this suite."""
    return tuple(row.id for row in REGISTRATIONS)


def default_max_turns(id: str) -> int:
    """The default turn limit of an id, also written as "module:id"."""
    name = id.rpartition(":")[2]
    return next((row.max_turns for row in REGISTRATIONS if row.id == name), DEFAULT_MAX_TURNS)


def register_all() -> None:
    """Register all ids with Gymnasium. Repeated calls are allowed."""
    for row in REGISTRATIONS:
        if row.id not in gym.registry:
            register(row.id, row.entry_point)


def register(id: str, entry_point: str) -> None:
    """Register your own `TextEnv`, so that it can be served, vectorized and reached by `base_url`.

    `entry_point` is "module:Class". Registering the same class twice is allowed: a worker process registers an id
    before it imports the module that registers it too. Gymnasium's passive checker and order enforcement are off:
    `TextEnv` itself refuses a step without a reset, and the two wrappers would cost more than a step.
    """
    if not isinstance(entry_point, str) or entry_point.count(":") != 1:
        raise UsageError(f'entry_point must be "module:Class", got {entry_point!r}')
    if _ENTRY_POINTS.get(id) == entry_point and id in gym.registry:
        return
    _ENTRY_POINTS[id] = entry_point
    gym.register(
        id,
        f"{__name__}:{id}",
        vector_entry_point=f"{__name__}:{_VECTOR}{id}",
        disable_env_checker=True,
        order_enforce=False,
    )


def short_names(ids: Sequence[str]) -> dict[str, str]:
    """Short names of ids, such as `TextCraft` for `AgentGym/TextCraft-v0`, where they are unique."""
    short = {env_id: env_id.rpartition("/")[2].rpartition("-v")[0] or env_id for env_id in ids}
    count = Counter(short.values())
    return {env_id: name if count[name] == 1 else env_id for env_id, name in short.items()}


def entry_point_of(id: str) -> str | None:
    """The "module:Class" to `register` an id in another process; None if it was registered in another way."""
    return _ENTRY_POINTS.get(id)


def env_class(id: str) -> type[TextEnv]:
    """The class of an id; "module:Id" imports the module first.

    Raises UsageError if it is not a `TextEnv`, and Gymnasium's errors for an unknown id.
    """
    spec = gym.spec(import_id(id))
    entry_point = _ENTRY_POINTS.get(spec.id, spec.entry_point)
    found = load_object(entry_point) if isinstance(entry_point, str) else entry_point
    if not (isinstance(found, type) and issubclass(found, TextEnv)):
        raise UsageError(f"{id!r} is not an environment of this suite (a TextEnv), but {found!r}")
    return found


def has_slow_oracle(id: str) -> bool:
    """`TextEnv.slow_oracle` of a registered id; False for any other name, or if its extra is missing."""
    name = id.rpartition(":")[2]
    try:
        return name in gym.registry and env_class(name).slow_oracle
    except (ImportError, UsageError):
        return False


def __getattr__(name: str) -> Any:
    if name.removeprefix(_VECTOR) not in _ENTRY_POINTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith(_VECTOR):
        # By name, because vector environments are in a layer above this one.
        return partial(load_object("agentgym_envs.vector:make_vec"), name.removeprefix(_VECTOR))
    return partial(_make, name)


def import_id(id: str) -> str:
    """Import the module of a "module:Id", so that it can register the id. Returns the id without the module."""
    module, _, name = id.rpartition(":")
    if module:
        importlib.import_module(module)
    return name


def _make(id: str, *, base_url: Any = None, **kwargs: Any) -> TextEnv:
    if base_url is None:
        return env_class(id)(**kwargs)
    made: TextEnv = load_object("agentgym_envs.http:remote_env")(id, base_url=base_url, **kwargs)
    return made


def load_object(path: str) -> Any:
    """Import the object at "module:name"."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)
