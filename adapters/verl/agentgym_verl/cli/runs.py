"""A run of stock verl: compose, check, claim the run directory, start."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import typer
from omegaconf import OmegaConf

from agentgym_envs.cli.common import stderr
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import MixtureEnv
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
    "reinforce++-baseline": "reinforce_plus_plus_baseline",
    "ppo": "ppo",
}
_NAMES = "grpo, rloo, reinforce++, reinforce++-baseline, ppo"
_CONFIG = "config.yaml"
_METRICS = "metrics.jsonl"
_MAX_MODEL_LEN = "actor_rollout_ref.rollout.max_model_len"
_LOG_PATH = "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH"

_Rows = dict[str, list[TaskRow]]


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """The tasks of a run: from environments, from a dataset, or (if neither is given) from a scenario."""

    env: Sequence[str] | None
    env_kwargs: str | None
    native_tools: bool
    data: Path | None
    split: str
    eval_split: str | None
    tasks: int | None
    eval_tasks: int | None
    groups: Sequence[str] | None
    seed: int


@dataclass(frozen=True)
class VerlRun:
    """One run of `agentgym verl train`. Nothing is written before `start`.

    Raises:
        UsageError: from `show` and `start`, for an invalid configuration.
    """

    algorithm: str
    model: str
    out: Path
    selection: TaskSelection
    groups: Mapping[str, str | None]
    """The selected file of each config group."""
    settings: Mapping[str, Any]
    """Settings of the block `agentgym`."""
    verl_settings: Mapping[str, Any]
    """Settings of verl that have an option of ours."""
    user_overrides: Sequence[str]
    """The user's own overrides, which are applied last."""
    resume: bool = False

    def show(self) -> int:
        """Check everything, and print the command and its configuration."""
        from omegaconf import OmegaConf

        self._check()
        typer.echo(f"# {shown(self._command)}".replace("\n", "\n# "))
        typer.echo(OmegaConf.to_yaml(self._config, resolve=True), nl=False)
        return 0

    def start(self) -> int:
        """Check everything, claim the directory, write the data, train. Returns verl's exit code, 130 for Ctrl-C."""
        from omegaconf import OmegaConf

        environ = dict(os.environ)  # a copy, as importing verl changes it
        rows = self._check()
        console = stderr()
        claim_directory(self.out, self._identity, resume=self.resume)
        if self.selection.data is None and not self._has_data():
            write(self._data, rows, console)
        (self.out / _CONFIG).write_text(OmegaConf.to_yaml(self._config, resolve=True), encoding="utf-8")
        console.print(shown(self._command), markup=False, highlight=False, soft_wrap=True)
        code = launch(self._command, environ)
        if code:
            console.print("[yellow]verl stopped.[/] To continue, run the same command with --resume.")
        else:
            console.print(f"[green]Done.[/] Checkpoints and trajectories are in {self.out}; agentgym view opens it.")
        return code

    def _check(self) -> _Rows:
        """Check all that can be checked before verl starts; return the rows of each file of the dataset."""
        self._check_options()
        check_run_directory(self.out, self._identity, resume=self.resume)
        rows = self._rows()
        from agentgym_verl.cli.checks import check_config

        check_config(self._config, rows[dataset.TRAIN], rows[dataset.VAL])
        return rows

    def _check_options(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(f"there is no algorithm {self.algorithm!r}; choose from {_NAMES}")
        for group, name in self.groups.items():
            check_choice(f"--{group}", group, name)
        if self.groups["horizon"] and not self.groups["scenario"]:
            raise UsageError("--horizon selects settings of a --scenario; give a scenario, or --max-turns instead")
        selection = self.selection
        if selection.data and (selection.env or selection.env_kwargs or selection.native_tools):
            raise UsageError("--data has the tasks already; leave out --env, --env-kwargs and --tools")
        if not (selection.data or selection.env or self.groups["scenario"]):
            raise UsageError("no tasks were given: give --scenario, --env or --data")
        words = self.user_overrides
        if invalid := [word for word in words if word.startswith("-") or not ("=" in word or word[0] == "~")]:
            raise UsageError(
                f"verl's settings have the form KEY=VALUE, as in trainer.total_epochs=3; got {invalid[0]!r}"
            )

    @cached_property
    def _composed(self) -> tuple[Any, list[str]]:
        """The configuration and its overrides."""
        from omegaconf import OmegaConf

        given = [*self._overrides(), *self.user_overrides]
        config = compose_config(given)
        if (
            config.actor_rollout_ref.rollout.max_model_len is None
        ):  # the engine would reserve memory for the model's longest context
            context = int(config.data.max_prompt_length) + int(config.data.max_response_length)
            given.append(override(_MAX_MODEL_LEN, context))
            OmegaConf.update(config, _MAX_MODEL_LEN, context)  # composing again would take half a second
        return config, given

    @property
    def _config(self) -> Any:
        return self._composed[0]

    @property
    def _command(self) -> list[str]:
        return command_of(self._composed[1])

    @property
    def _model(self) -> str:
        """The model; a folder as an absolute path, which is the same in every process."""
        return str(Path(self.model).absolute()) if Path(self.model).is_dir() else self.model

    @property
    def _data(self) -> Path:
        return (self.selection.data or self.out / "data").absolute()

    def _overrides(self) -> list[str]:
        values = {
            "algorithm": ALGORITHMS[self.algorithm],
            **self.groups,
            "actor_rollout_ref.model.path": self._model,
            "data.train_files": self._data / dataset.TRAIN,
            "data.val_files": self._data / dataset.VAL,
            "data.seed": self.selection.seed,
            "run_dir": self.out,
            **{f"agentgym.{key}": value for key, value in self.settings.items()},
            **self.verl_settings,
            _LOG_PATH: self._metrics(),
            "hydra.run.dir": self.out / "hydra",
        }
        return [*overrides(values), "trainer.logger=[console,file]"]

    def _metrics(self) -> Path:
        """The file of verl's metrics; verl overwrites it, so a resumed run gets a new one."""
        number, path = 0, self.out / _METRICS
        while path.exists():
            number += 1
            path = self.out / f"{_METRICS}.{number}"
        return path

    @cached_property
    def _members(self) -> list[MixtureEnv]:
        """The environments of a run without a dataset."""
        paper, selection = self._config.get("paper"), self.selection
        kwargs, tools = selection.env_kwargs, selection.native_tools
        if selection.env or paper is None:
            return opt.members(selection.env or (), kwargs, tools=tools)
        if kwargs is None:
            kwargs = json.dumps(OmegaConf.to_container(paper.env_kwargs, resolve=True))
        return opt.members([paper.env], kwargs, tools=tools)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """The settings that identify this run in its directory."""
        selection = self.selection
        if selection.data is not None:
            tasks: dict[str, Any] = {"data": str(self._data)}
        else:
            tasks = {"env": [f"{member.id}:{member.weight:g}" for member in self._members]}
            tasks["env_kwargs"] = {member.id: dict(member.kwargs) for member in self._members}
            names = ("split", "eval_split", "tasks", "eval_tasks", "groups")
            tasks |= {name: getattr(selection, name) for name in names}
        scenario = {name: self.groups[name] for name in ("scenario", "horizon")}
        run = {"algorithm": ALGORITHMS[self.algorithm], "model": self._model}
        if self.settings.get("agent") is not None:
            run |= {name: self.settings[name] for name in ("agent", "context", "attempts")}
        return {**run, **scenario, **tasks, "seed": selection.seed}

    def _has_data(self) -> bool:
        return all((self._data / name).is_file() for name in (dataset.TRAIN, dataset.VAL))

    def _rows(self) -> _Rows:
        selection = self.selection
        if selection.data is not None or (self.resume and self._has_data()):
            rows = {name: dataset.read_rows(self._data / name) for name in (dataset.TRAIN, dataset.VAL)}
            for member in dataset.members_of([row for part in rows.values() for row in part]):
                member.make().close()
            return rows
        members = self._members
        options: Any = {"groups": selection.groups, "seed": selection.seed}
        enough = max(dataset.ENOUGH, int(self._config.data.train_batch_size))
        train = partial(dataset.draw_train, members, self._tasks(), split=selection.split, enough=enough, **options)
        val = partial(dataset.draw_val, members, selection.eval_tasks, split=selection.eval_split, **options)
        return draw({dataset.TRAIN: train, dataset.VAL: val}, stderr())

    def _tasks(self) -> int | None:
        """The number of tasks to train on; the paper's number applies to its own environment and groups only."""
        paper, selection = self._config.get("paper"), self.selection
        if selection.tasks is not None or selection.env or selection.groups or paper is None:
            return selection.tasks
        return None if paper.tasks is None else int(paper.tasks)
