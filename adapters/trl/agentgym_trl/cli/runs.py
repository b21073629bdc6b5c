"""The steps that all training commands share: claim the run directory, train, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from trl import ModelConfig, get_quantization_config

from agentgym_envs.rollout.mixture import read_env_kwargs
from agentgym_envs.rollout.run_directory import check_run_directory
from agentgym_trl.callbacks import run_training
from agentgym_trl.cli.arguments import EnvArguments
from agentgym_trl.held_out import BEST
from agentgym_trl.run_directory import claim_run_directory, last_checkpoint


def model_name(model_args: ModelConfig, args: Any) -> str:
    """The name of the model. Also writes the settings for loading it to `args.model_init_kwargs`."""
    dtype = model_args.dtype if model_args.dtype not in (None, "auto") else None
    settings = {
        "revision": model_args.model_revision,
        "attn_implementation": model_args.attn_implementation,
        "quantization_config": get_quantization_config(model_args),
    }
    given = {key: value for key, value in {**settings, "dtype": dtype}.items() if value is not None}
    args.model_init_kwargs = {**given, **(args.model_init_kwargs or {})}
    return str(model_args.model_name_or_path)


def run_settings(args: Any, algorithm: str, env: EnvArguments, model: ModelConfig, **more: Any) -> dict[str, Any]:
    """The settings that identify this run. Raises UsageError if its directory holds another run."""
    settings = {
        "algorithm": algorithm,
        "env": env.env if len(env.env) > 1 else env.env[0],
        "env_kwargs": read_env_kwargs(env.env_kwargs),
        "model": model.model_name_or_path,
        "split": env.split,
        "groups": env.groups,
        "seed": args.seed,
        **({"tools": True} if env.tools else {}),
        **more,
    }
    if args.process_index == 0:  # a late process would find the directory claimed already
        check_run_directory(args.output_dir, settings, resume=env.resume)
    return settings


def run(trainer: Any, settings: dict[str, Any], *, resume: bool) -> int:
    """Claim the directory, train and report. Returns 0, or 130 if training was interrupted."""
    main = trainer.accelerator.is_main_process
    console = Console(stderr=True, quiet=not main)
    out = trainer.args.output_dir
    if main:  # only now: a run that cannot start leaves no directory behind
        claim_run_directory(out, settings, resume=resume)
    trainer.accelerator.wait_for_everyone()
    if not run_training(trainer, settings["algorithm"], console=console, checkpoint=last_checkpoint(out)):
        step = trainer.state.global_step
        console.print(f"[yellow]Stopped at step {step}.[/] To continue, run the same command with --resume.")
        return 130
    console.print(f"[green]Done:[/] the model and the other files of the run are in {out}")
    if getattr(trainer.args, "keep_best", False):
        console.print(f"The model with the highest held-out success is in {Path(out) / BEST}")
    return 0
