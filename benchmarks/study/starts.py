"""The shared start of a seed's horizons: tasks, an untrained model, a warm start and its success."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from rich.console import Console

from agentgym_envs.errors import UsageError
from benchmarks.study.budget import Deadline
from benchmarks.study.measuring import digest, play
from benchmarks.study.settings import Kind, StudySettings

WAYS = {"sampled": 1.0, "greedy": 0.0}  # temperatures
_SPLITS = {"demonstrations": "train", "train": "train", "test": "test"}


def make_start(settings: StudySettings, home: Path, deadline: Deadline) -> bool:
    """Make what is not there yet, under `home`. Returns whether all is there: the deadline may come before."""
    home.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[StudySettings, Path, Path], object]] = {
        "tasks.json": _tasks,
        "tiny": _tiny,
        "warm": _warm,
        "start.json": _measure,
    }
    for name, make in parts.items():
        if (home / name).exists():
            continue
        if deadline.passed:
            return False
        whole(home / name, partial(make, settings, home))
    return True


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


def draw(settings: StudySettings, count: int, split: str, seed: int) -> list[list[Any]]:
    """For each kind `count` oracle episodes, of tasks whose prompt is short and which the long limit suffices for."""
    from agentgym_envs.core import text_env
    from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync

    tasks, found = text_env(settings.make()).tasks, []
    for kind in settings.kinds:
        chosen = tasks.sample(kind.draws * count, split=split, groups=[kind.group], seed=seed)
        specs = [EpisodeSpec(task.id, seed + number) for number, task in enumerate(chosen)]
        played = run_sync(play_many_text(specs, settings.make, OraclePolicy, limits=Limits(settings.long)))
        fits = [one for one in played if one.success and _is_of(kind, one, settings.max_prompt_chars)]
        if len(fits) < count:
            raise UsageError(
                f"of {len(chosen)} tasks only {len(fits)} of the kind {kind.name!r} fit, and {count} are needed: raise "
                "max_prompt_chars, or the kind's draws"
            )
        found.append(fits[:count])
    return found


def _is_of(kind: Kind, episode: Any, chars: int) -> bool:
    return kind.minimum <= len(episode.turns) <= kind.maximum and len(episode.turns[0].observation) <= chars


def _tasks(settings: StudySettings, home: Path, part: Path) -> None:
    """Training and held-out tasks, the kinds by turns, so that every step has as many of each."""
    from agentgym_envs.rollout.mixture import DrawnTask
    from agentgym_trl.dataset import as_dataset

    rows = {}
    for name, count, seed in (
        ("train", settings.tasks, settings.seed + 1_000_000),
        ("test", settings.eval_tasks, 1),  # the same for all seeds
    ):
        mixed = chain.from_iterable(zip(*draw(settings, count, _SPLITS[name], seed), strict=True))
        drawn = as_dataset([DrawnTask("", one.task, one.seed) for one in mixed]).to_list()
        rows[name] = [{**row, "group": kind.name} for row, kind in zip(drawn, cycle(settings.kinds), strict=False)]
    part.write_text(json.dumps(rows) + "\n", encoding="utf-8")


def _tiny(settings: StudySettings, home: Path, part: Path) -> None:
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    corpus = environment_corpus(settings.make, 400, groups=settings.groups)
    save_tiny_model(part, corpus, seed=settings.seed)


def _warm(settings: StudySettings, home: Path, part: Path) -> None:
    """Imitate the oracle for a while: the demo's own stage."""
    from agentgym_trl.demo import stages
    from benchmarks.invented_worlds import InventedWorlds

    shown = draw(settings, settings.demonstrations, _SPLITS["demonstrations"], settings.seed)
    recipe = InventedWorlds(
        seed=settings.seed,
        warm_steps=settings.warm_steps,
        warm_batch=settings.warm_batch,
        warm_learning_rate=settings.warm_learning_rate,
    )
    stages.warm_start(home / "tiny", part, [one for group in shown for one in group], recipe, Console(stderr=True))


def _measure(settings: StudySettings, home: Path, part: Path) -> None:
    rows = read_json(home / "tasks.json")["test"]
    found = {way: digest(play(home / "warm", settings, rows, t), settings.limits) for way, t in WAYS.items()}
    part.write_text(json.dumps(found) + "\n", encoding="utf-8")
