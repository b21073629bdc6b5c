"""Episodes for the viewer: arbitrary ones by Hypothesis, and small distinct ones."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agentgym_envs import Task, Trajectory, Turn
from agentgym_envs.trajectory import TrajectoryWriter

TEXT = st.text(st.characters(codec=None), max_size=20)  # includes lone surrogates
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-5, 5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=2)
INFOS = st.builds(
    lambda more, known: {**more, **known}, OBJECTS, st.fixed_dictionaries({}, optional={"invalid_action": VALUES})
)
METAS = st.builds(
    lambda more, known: {**more, **known},
    OBJECTS,
    st.fixed_dictionaries(
        {}, optional={name: VALUES for name in ("step", "training", "policy", "agent", "max_turns", "attempts")}
    ),
)
EPISODES = st.builds(
    Trajectory,
    env_id=TEXT,
    task=st.builds(Task, TEXT, st.sampled_from(["train", "test"]), TEXT, TEXT, OBJECTS),
    seed=st.integers(0, 2**70),
    instructions=TEXT,
    turns=st.lists(st.builds(Turn, TEXT, TEXT, NUMBERS, INFOS), max_size=3).map(tuple),
    final_observation=TEXT,
    score=NUMBERS,
    success=st.booleans(),
    stop_reason=st.sampled_from(["success", "failure", "turn_limit", "env_error"]),
    error=st.none() | TEXT,
    env_kwargs=OBJECTS,
    meta=METAS,
)


def record(name: str = "t/1", *actions: str, **fields: Any) -> Trajectory:
    """An episode of a task; each observation is the previous action reversed."""
    seen = ["Begin.", *(action[::-1] for action in actions)]
    infos = [{"invalid_action": None, "score": 0.0}] * len(actions)
    turns = tuple(Turn(*turn) for turn in zip(seen, actions, [0.0] * len(actions), infos, strict=False))
    known: dict[str, Any] = {"env_id": "A-v0", "seed": 0, "score": 0.0, "success": False, "stop_reason": "failure"}
    task = Task(name, "test", fields.pop("group", "easy"), fields.pop("goal", f"solve {name}"), {"key": [1]})
    return Trajectory(
        task=task, instructions="Be brief.", turns=turns, final_observation=seen[-1], **{**known, **fields}
    )


def save(path: Path, *episodes: Trajectory) -> Path:
    """Append them to a file."""
    with TrajectoryWriter(path) as writer:
        for episode in episodes:
            writer.write(episode)
    return path


def save_log(path: Path, *records: Any) -> Path:
    """Write a log in the format of AgentGym-RL's trainer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(records), indent=4))
    return path


def logged(item: int, reward: float, *said: str, rules: str = "Craft with these crafting commands.") -> dict[str, Any]:
    """A record of such a log. After the rules, `said` alternates between the environment and the model."""
    texts = [rules, "OK. I'll follow your instructions and try my best to solve the task.", *said]
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return {"item_id": item, "conversations": messages, "reward": reward}
