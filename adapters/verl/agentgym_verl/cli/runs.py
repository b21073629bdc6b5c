"""A run of stock verl: composed, checked, given a directory, and started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import typer

from agentgym_envs.cli.common import stderr
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import Member
from agentgym_envs.rollout.run_directory import check_run_directory, claim_directory
from agentgym_verl import dataset
from agentgym_verl.cli import options as opt
from agentgym_verl.cli.data import draw, write
from agentgym_verl.cli.launch import command_of, launch, shown
from agentgym_verl.cli.overrides import check_choice, compose_config, override, overrides
from agentgym_verl.rows import TaskRow

OUT = "--out"
ALGORITHMS = {
    "grpo": "grpo",
    "rloo": "rloo",
    "reinforce++": "reinforce_plus_plus",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "ppo": "ppo",
}
_CONFIG = "config.yaml"
_METRICS = "metrics.jsonl"
_MAX_MODEL_LEN = "actor_rollout_ref.rollout.max_model_len"
_LOG_PATH = "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH"

_Rows = dict[str, list[TaskRow]]


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """What is played: environments by name or a dataset, neither if a scenario says it; and which of their tasks."""

    env: Sequence[str] | None
    env_kwargs: str | None
    data: Path | None
    split: str
    eval_split: str | None
    tasks: int | None
    eval_tasks: int | None
    groups: Sequence[str] | None
    seed: int


@dataclass(frozen=True)
class VerlRun:
    """One run, as it was asked for. Nothing is written before `start`.

    Raises:
        UsageError: from `show` and `start`, for everything that cannot be.
    """

    algorithm: str
    model: str
    out: Path
    played: TaskSelection
    parts: Mapping[str, str | None]
    """The choices of the groups of configurations."""
    limits: Mapping[str, Any]
    """Settings of the block `agentgym`."""
    more: Sequence[str]
    """Overrides of the user's own; the last word."""
    resume: bool = False

    def show(self) -> int:
        """Check all, and print the command and the configuration that it comes to."""
        from omegaconf import OmegaConf

        self._check()
        typer.echo(f"# {shown(self._command)}".replace("\n", "\n# "))
        typer.echo(OmegaConf.to_yaml(self._config, resolve=True), nl=False)
        return 0

    def start(self) -> int:
        """Check all, claim the directory, write the data, and train. Returns verl's exit code, 130 after Ctrl-C."""
        from omegaconf import OmegaConf

        environ = dict(os.environ)  # as it is before verl is imported, which changes it
        rows = self._check()
        console = stderr()
        claim_directory(self.out, self._settings, resume=self.resume, option=OUT)
        if self.played.data is None and not self._has_data():
            write(self._data, rows, console)
        (self.out / _CONFIG).write_text(OmegaConf.to_yaml(self._config, resolve=True), encoding="utf-8")
        console.print(shown(self._command), markup=False, highlight=False, soft_wrap=True)
        code = launch(self._command, environ)
        if code:
            console.print("[yellow]verl stopped.[/] Go on with the same command and --resume.")
        else:
            console.print(f"[green]Done.[/] agentgym view {self.out} shows it; checkpoints are in it as well.")
        return code

    def _check(self) -> _Rows:
        """Everything that can be known before verl starts; returns what is played, for each file of the dataset."""
        self._check_words()
        check_run_directory(self.out, self._settings, resume=self.resume, option=OUT)
        rows = self._rows()
        from agentgym_verl.cli.checks import check_config

        check_config(self._config, rows[dataset.TRAIN], rows[dataset.VAL])
        return rows

    def _check_words(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(f"there is no algorithm {self.algorithm!r}; choose from grpo, rloo, reinforce++, ppo")
        for group, name in self.parts.items():
            check_choice(f"--{group}", group, name)
        if self.parts["horizon"] and not self.parts["scenario"]:
            raise UsageError("--horizon says which settings of a --scenario to take; name one, or give --rounds")
        if self.played.data and (self.played.env or self.played.env_kwargs):
            raise UsageError("--data says what is played already; leave out --env and --env-kwargs")
        if not (self.played.data or self.played.env or self.parts["scenario"]):
            raise UsageError("nothing to play was named: give --scenario, --env or --data")
        if strange := [word for word in self.more if word.startswith("-") or not ("=" in word or word[0] == "~")]:
            raise UsageError(
                f"verl's settings are given as KEY=VALUE, as in trainer.total_epochs=3; got {strange[0]!r}"
            )

    @cached_property
    def _composed(self) -> tuple[Any, list[str]]:
        """The configuration, and the overrides that make it."""
        from omegaconf import OmegaConf

        given = [*self._overrides(), *self.more]
        config = compose_config(given)
        if config.actor_rollout_ref.rollout.max_model_len is None:  # else the engine makes room for the model's longest
            context = int(config.data.max_prompt_length) + int(config.data.max_response_length)
            given.append(override(_MAX_MODEL_LEN, context))
            OmegaConf.update(config, _MAX_MODEL_LEN, context)  # as if composed once more, which takes half a second
        return config, given

    @property
    def _config(self) -> Any:
        return self._composed[0]

    @property
    def _command(self) -> list[str]:
        return command_of(self._composed[1])

    @property
    def _model(self) -> str:
        """The model; a folder by a path that means the same in every process."""
        return str(Path(self.model).absolute()) if Path(self.model).is_dir() else self.model

    @property
    def _data(self) -> Path:
        return (self.played.data or self.out / "data").absolute()

    def _overrides(self) -> list[str]:
        values = {
            "algorithm": ALGORITHMS[self.algorithm],
            **self.parts,
            "actor_rollout_ref.model.path": self._model,
            "data.train_files": self._data / dataset.TRAIN,
            "data.val_files": self._data / dataset.VAL,
            "data.seed": self.played.seed,
            "run_dir": self.out,
            **{f"agentgym.{key}": value for key, value in self.limits.items()},
            _LOG_PATH: self._metrics(),
            "hydra.run.dir": self.out / "hydra",
        }
        return [*overrides(values), "trainer.logger=[console,file]"]

    def _metrics(self) -> Path:
        """Where verl writes its metrics: it begins the file anew, so a run that goes on gets one more."""
        number, path = 0, self.out / _METRICS
        while path.exists():
            number += 1
            path = self.out / f"{_METRICS}.{number}"
        return path

    @cached_property
    def _members(self) -> list[Member]:
        """The environments, if no dataset says it."""
        paper = self._config.get("paper")
        if self.played.env or paper is None:
            return opt.members(self.played.env or (), self.played.env_kwargs)
        if self.played.env_kwargs is not None:
            return opt.members([paper.env], self.played.env_kwargs)
        return [Member(paper.env, dict(paper.env_kwargs))]

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """What makes this run another one than others."""
        asked = self.played
        if asked.data is not None:
            what: dict[str, Any] = {"data": str(self._data)}
        else:
            what = {"env": [f"{one.id}:{one.weight:g}" for one in self._members]}
            what["env_kwargs"] = {one.id: dict(one.kwargs) for one in self._members}
            names = ("split", "eval_split", "tasks", "eval_tasks", "groups")
            what |= {name: getattr(asked, name) for name in names}
        scenario = {name: self.parts[name] for name in ("scenario", "horizon")}
        return {"algorithm": ALGORITHMS[self.algorithm], "model": self._model, **scenario, **what, "seed": asked.seed}

    def _has_data(self) -> bool:
        return all((self._data / name).is_file() for name in (dataset.TRAIN, dataset.VAL))

    def _rows(self) -> _Rows:
        if self.played.data is not None or (self.resume and self._has_data()):
            rows = {name: dataset.read_rows(self._data / name) for name in (dataset.TRAIN, dataset.VAL)}
            for member in dataset.members_of([row for own in rows.values() for row in own]):
                member.make().close()
            return rows
        asked, members = self.played, self._members
        which: Any = {"groups": asked.groups, "seed": asked.seed}
        tasks, enough = self._tasks(), max(dataset.ENOUGH, int(self._config.data.train_batch_size))
        train = partial(dataset.draw_train, members, tasks, split=asked.split, enough=enough, **which)
        val = partial(dataset.draw_val, members, asked.eval_tasks, split=asked.eval_split, **which)
        return draw({dataset.TRAIN: train, dataset.VAL: val}, stderr())

    def _tasks(self) -> int | None:
        """How many tasks to train on, if it is said: the paper's number is meant for its environment only."""
        paper = self._config.get("paper")
        if self.played.tasks is not None or self.played.env or self.played.groups or paper is None:
            return self.played.tasks
        return None if paper.tasks is None else int(paper.tasks)
