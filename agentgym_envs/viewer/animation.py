"""An episode as an animated GIF: web pages by their screenshots, BabyAI by its grid, and the others by their text."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.image_files import read_image
from agentgym_envs.image_observations import decode
from agentgym_envs.rollout.replay import CannotReplay, make_replay_env, observations, refusing_replay, replayed_states
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import grammar_of, read_answer
from agentgym_envs.viewer.frames import Frame, draw_frame

MAX_FRAMES = 200
"""The most frames; of a longer episode the first and the last turns are shown."""
SECONDS_PER_FRAME = 1.6
_LAST_SECONDS, _REPLAY_SECONDS = 3.5, 60.0
_COLORS, _MAX_EARLIER = 128, 30


class Picture(NamedTuple):
    """The picture of a state, and the box of the next action's target in it."""

    image: Any
    box: Sequence[float] | None = None


def animate(
    trajectory: Trajectory, folder: Path, on_frame: Callable[[int, int], Any] = lambda done, all: None
) -> bytes:
    """Make an animated GIF of an episode, one frame per turn and one of its end.

    Args:
        trajectory: the episode.
        folder: the folder of its record, in which its images are.
        on_frame: called with the number of finished frames, and that of all.
    """
    from PIL import Image

    pictures = _pictures(trajectory, folder)
    numbers = _shown(len(trajectory.turns) + 1)
    frames = list[Any]()
    for number in numbers:
        drawn = draw_frame(_frame(trajectory, number, pictures(number)))
        frames.append(drawn.quantize(_COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))
        on_frame(len(frames), len(numbers))
    written = io.BytesIO()
    times = [int(1000 * SECONDS_PER_FRAME)] * (len(frames) - 1) + [int(1000 * _LAST_SECONDS)]
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, disposal=1)
    return written.getvalue()


def _shown(count: int) -> list[int]:
    """The states to show."""
    if count <= MAX_FRAMES:
        return list(range(count))
    half = MAX_FRAMES // 2
    return [*range(half), *range(count - half, count)]


def _frame(trajectory: Trajectory, number: int, picture: Picture | None) -> Frame:
    turns, texts = trajectory.turns, observations(trajectory)
    fields: dict[str, Any] = {"title": trajectory.env_id, "goal": trajectory.task.goal, "text": texts[number]}
    fields |= {"turns": len(turns), "score": _score(trajectory, number)}
    if picture is not None:
        fields |= {"picture": picture.image, "box": picture.box}
    else:
        fields["before"] = _transcript(trajectory, number)
    if number == len(turns):
        why = trajectory.stop_reason.replace("_", " ")
        outcome = "solved" if trajectory.success else f"not solved: {why}"
        return Frame(**fields, action=outcome, turn=number, outcome=trajectory.success)
    thought, command = read_answer(turns[number].action, grammar_of(trajectory))
    return Frame(**fields, action=command or turns[number].action, thought=thought, turn=number + 1)


def _transcript(trajectory: Trajectory, number: int) -> str:
    """The end of the episode before a state: observations, and actions in lines that begin with "› "."""
    grammar = grammar_of(trajectory)
    parts = list[str]()
    for turn in trajectory.turns[max(0, number - _MAX_EARLIER) : number]:
        command = read_answer(turn.action, grammar)[1] or turn.action
        parts += [turn.observation.strip("\n"), "", "› " + " ".join(command.split()), ""]
    return "\n".join(parts)


def _score(trajectory: Trajectory, number: int) -> float:
    """The score before a turn, and at the end."""
    return (
        trajectory.score if number == len(trajectory.turns) else sum(turn.reward for turn in trajectory.turns[:number])
    )


def _pictures(trajectory: Trajectory, folder: Path) -> Callable[[int], Picture | None]:
    """A function that returns the picture of a state: that of the record, or of the replayed world."""
    from agentgym_envs.viewer.panels import panels_of

    panel = panels_of(trajectory)
    if panel["kind"] == "webarena":
        return lambda number: _screenshot(panel["states"][number], folder)
    if panel["kind"] == "babyai":
        return _grids(trajectory).get
    return lambda number: None


def _screenshot(state: Mapping[str, Any], folder: Path) -> Picture | None:
    from PIL import Image

    image = read_image(folder, state["image"])
    return None if image is None else Picture(Image.fromarray(decode(image)), state["box"])


def _grids(trajectory: Trajectory) -> Mapping[int, Picture]:
    """The grids of a replayed episode; none if it cannot be replayed."""
    from PIL import Image

    try:
        with (
            refusing_replay(),
            closing(make_replay_env(trajectory.env_id, trajectory.env_kwargs, render_mode="rgb_array")) as env,
        ):
            states = replayed_states(env, trajectory, _REPLAY_SECONDS)
            return {number: Picture(Image.fromarray(state.env.render())) for number, state in enumerate(states)}
    except CannotReplay:
        return {}
