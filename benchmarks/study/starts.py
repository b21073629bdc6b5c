"""The beginnings of the arms of a seed: tasks, an untrained model, warm starts and their success."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

from rich.console import Console

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import DrawnTask, draw_from
from agentgym_envs.trajectory import Trajectory
from benchmarks.study.budget import Deadline
from benchmarks.study.measuring import measure
from benchmarks.study.settings import FIRST_SEED, STARTS, Kind, StudySettings

_HELD_OUT = 9_000_000
"""The seed of the held-out tasks of the results."""
_VALIDATION = 8_000_000
"""That of the pilot seeds, which are below `FIRST_SEED`."""


def make_starts(settings: StudySettings, home: Path, deadline: Deadline) -> bool:
    """Make what is not there yet, under `home`. Returns whether all is there: the deadline may come before."""
    parts: dict[Path, Callable[[StudySettings, Path], object]] = {home / "tasks.json": _tasks, home / "tiny": _tiny}
    for start in STARTS:
        own = home / slug(start)
        parts |= {own / "warm": partial(_warm, start), own / "start.json": _measure}
    for path, make in parts.items():
        if path.exists():
            continue
        if deadline.passed:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        whole(path, partial(make, settings))
    return True


def slug(name: str) -> str:
    """The name of an arm or a warm start in paths."""
    return re.sub(r"\W+", "-", name)


def whole(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file or directory under another name, and give it its own once it is complete."""
    part = path.with_name(f"{path.name}.part")
    for old in (part, path):
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    make(part)
    part.rename(path)


def write_json(path: Path, value: Any) -> None:
    whole(path, lambda part: part.write_text(json.dumps(value) + "\n", encoding="utf-8"))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def draw(settings: StudySettings, kinds: Sequence[Kind], count: int, split: str, seed: int) -> list[list[DrawnTask]]:
    """For each kind `count` tasks whose prompt is short enough and whose distance to the goal is that of the kind."""
    from agentgym_envs.core import text_env
    from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync

    env, found = text_env(settings.make()), []
    for kind in kinds:
        chosen = draw_from(env, kind.draws * count, split=split, groups=(kind.group,), seed=seed)
        specs = [EpisodeSpec(item.task.id, item.seed) for item in chosen]
        played = run_sync(play_many_text(specs, settings.make, OraclePolicy, limits=Limits(settings.long)))
        fits = [
            item
            for item, one in zip(chosen, played, strict=True)
            if one.success and _is_of(kind, one, settings.max_prompt_chars)
        ]
        if len(fits) < count:
            raise UsageError(
                f"of {len(chosen)} tasks only {len(fits)} of the kind {kind.name!r} fit, and {count} are needed: raise "
                "max_prompt_chars, or the kind's draws"
            )
        found.append(fits[:count])
    return found


def mixed(drawn: Sequence[Sequence[DrawnTask]]) -> list[DrawnTask]:
    """The kinds by turns, so that every step has as many of each."""
    return list(chain.from_iterable(zip(*drawn, strict=True)))


def _is_of(kind: Kind, episode: Any, chars: int | None) -> bool:
    fits = chars is None or len(episode.turns[0].observation) <= chars
    return fits and len(episode.turns) == kind.turns


def _tasks(settings: StudySettings, part: Path) -> None:
    """Training and held-out tasks."""
    from agentgym_trl.dataset import as_dataset

    held_out = (settings.eval_split, _HELD_OUT) if settings.seed >= FIRST_SEED else (settings.pilot_split, _VALIDATION)
    rows = {}
    for name, size, split, seed in (
        ("train", settings.tasks, "train", settings.seed + 1_000_000),
        ("test", settings.eval_tasks, *held_out),
    ):
        drawn = as_dataset(mixed(draw(settings, settings.kinds, size, split, seed))).to_list()
        rows[name] = [{**row, "group": kind.name} for row, kind in zip(drawn, cycle(settings.kinds), strict=False)]
    part.write_text(json.dumps(rows) + "\n", encoding="utf-8")


def demonstrations(settings: StudySettings, start: str) -> list[Trajectory]:
    """The careless teacher's episodes for a warm start."""
    from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync
    from agentgym_trl.exploration import derive_seed

    kinds = [kind for kind in settings.kinds if kind.is_short or start == "all lengths"]
    drawn = mixed(draw(settings, kinds, settings.demonstrations, "train", settings.seed))
    numbers = count()

    def teacher() -> OraclePolicy:
        return OraclePolicy(idle=settings.idle, seed=derive_seed(settings.seed, next(numbers)))

    specs = [EpisodeSpec(item.task.id, item.seed) for item in drawn]
    limits = Limits(settings.teacher_turns)
    return run_sync(play_many_text(specs, settings.make, teacher, limits=limits, concurrency=1))


def _tiny(settings: StudySettings, part: Path) -> None:
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    corpus = environment_corpus(settings.make, 400, groups=settings.groups)
    texts = [
        text
        for t in demonstrations(settings, "all lengths")
        for turn in t.turns
        for text in (turn.observation, turn.action)
    ]
    save_tiny_model(
        part,
        [*corpus, *texts],
        seed=settings.seed,
        closed=True,
        embedding_std=settings.embedding_std,
        hidden_size=settings.hidden_size,
        layers=settings.layers,
        heads=settings.heads,
    )


def _warm(start: str, settings: StudySettings, part: Path) -> None:
    """Imitate the careless teacher for a while: the quick start's own stage."""
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings

    recipe = DemoSettings(
        seed=settings.seed,
        warm_steps=settings.warm_steps,
        warm_batch=settings.warm_batch,
        warm_learning_rate=settings.warm_learning_rate,
    )
    stages.warm_start(part.parents[1] / "tiny", part, demonstrations(settings, start), recipe, Console(stderr=True))


def _measure(settings: StudySettings, part: Path) -> None:
    rows = read_json(part.parents[1] / "tasks.json")["test"]
    found = measure(part.parent / "warm", settings, rows)
    part.write_text(json.dumps(found) + "\n", encoding="utf-8")
