"""`agentgym demos`: trajectories of the oracle, without or with defects, as training data."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import (
    EnvArgs,
    EnvId,
    Groups,
    Json,
    LenientMaxTurns,
    Overwrite,
    Seed,
    Split,
    check_writable,
    choose_tasks,
    lenient_max_turns,
    names_of,
    note,
    print_json,
    stderr,
)
from agentgym_envs.cli.envs import Env, find_env, make_env, parse_env_args
from agentgym_envs.cli.evaluating.turn_limits import default_notes, oracle_notes
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.cli.policies import check_policy, oracle_policy
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter

if TYPE_CHECKING:
    from agentgym_envs.rollout import EpisodeSpec

Out = Annotated[Path, typer.Option(help="The JSONL file to write, one trajectory per line.")]
Tasks = Annotated[int | None, typer.Option(min=1, help="Number of tasks; default: all tasks of the split.")]
Grammar = Annotated[
    str | None,
    typer.Option(help="Action format: bare, react, tag, fenced, tool_call, tools.", autocompletion=completion.grammars),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="oracle[:DEFECTS]",
        help="The demonstrator. Defects are rates per turn of idle, slip, detour and forget, as in "
        "oracle:idle=0.5,slip=0.1.",
    ),
]


def demos_command(
    env: EnvId,
    out: Out,
    policy: PolicyName = "oracle",
    split: Split = "train",
    tasks: Tasks = None,
    groups: Groups = None,
    grammar: Grammar = None,
    max_turns: LenientMaxTurns = None,
    seed: Seed = 0,
    env_arg: EnvArgs = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Record the oracle's solutions. Tasks that it does not solve within --max-turns are counted and left out."""
    _check_oracle(policy)
    arguments = parse_env_args(env_arg) | ({} if grammar is None else {"grammar": grammar})
    env_id = find_env(env)
    made, limit = make_env(env_id, arguments), lenient_max_turns(max_turns, env_id)
    chosen = choose_tasks(text_env(made).tasks, tasks, split=split, groups=names_of(groups), seed=seed)
    _clear(out, overwrite)
    limits = () if as_json or max_turns is not None else default_notes(limit)
    for text in (*limits, *oracle_notes(env_id, text_env(made).tasks, chosen, limit)):
        note(text)
    specs = _specs([task.id for task in chosen], seed, policy)
    counts: Counter[str] = Counter()
    with TrajectoryWriter(out) as writer:
        try:
            _record(made, specs, limit, writer, counts)
        except KeyboardInterrupt:
            saved = f"{counts['written']} of {len(chosen)} demonstrations are saved in {out}"
            raise Interrupted(f"interrupted; {saved}") from None
        except OSError as error:
            error.add_note(f"{counts['written']} of {len(chosen)} demonstrations are saved in {out}")
            raise
        finally:
            made.close()
    _summarise(out, counts, as_json)


def _clear(out: Path, overwrite: bool) -> None:
    check_writable("--out", out)
    if out.exists() and out.stat().st_size and not overwrite:
        raise UsageError(f"{out} already exists; choose another file, or pass --overwrite to replace it")
    if out.is_file():
        out.write_bytes(b"")


def _check_oracle(policy: str) -> None:
    if policy.partition(":")[0] != "oracle":
        raise UsageError(f"demos records the oracle, got --policy {policy}; eval --out records any policy")
    check_policy(policy, None)


def _specs(task_ids: list[str], seed: int, policy: str) -> list[EpisodeSpec]:
    from agentgym_envs.rollout import EpisodeSpec

    return [EpisodeSpec(task_id, seed, {"policy": policy}) for task_id in task_ids]


def _record(env: Env, specs: list[EpisodeSpec], max_turns: int, writer: TrajectoryWriter, counts: Counter[str]) -> None:
    from rich.progress import track

    for spec in track(specs, "demonstrations", console=stderr(), transient=True, disable=len(specs) < 50):
        try:
            trajectory = _demonstrate(env, spec, max_turns)
        except NoOracle:
            counts["without_oracle"] += 1
            continue
        if not trajectory.success:
            counts["unsolved"] += 1
            continue
        writer.write(trajectory)
        counts["written"] += 1


def _demonstrate(env: Env, spec: EpisodeSpec, max_turns: int) -> Trajectory:
    from agentgym_envs.rollout import Limits, play_text, run_sync

    policy = oracle_policy(spec.meta["policy"], spec.seed or 0)
    played = run_sync(play_text(env, policy, spec, limits=Limits(max_turns=max_turns)))
    return replace(played, times=None)  # the same tasks and seed give the same bytes, for checksums of training data


def _summarise(out: Path, counts: Counter[str], as_json: bool) -> None:
    reasons = {"without_oracle": "have no oracle", "unsolved": "were not solved within the turn limit"}
    if as_json:
        print_json({"out": str(out), **{name: counts[name] for name in ("written", *reasons)}})
        return
    typer.echo(f"{counts['written']} demonstrations in {out}")
    for name, reason in reasons.items():
        if counts[name]:
            typer.echo(f"left out: {counts[name]} tasks {reason}")
