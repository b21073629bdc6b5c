"""`agentgym eval`: how good a policy is, with intervals; a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from agentgym_envs.cli import report
from agentgym_envs.cli.common import (
    SHORT,
    EnvArgs,
    Interrupted,
    Json,
    MaxTurns,
    Overwrite,
    Split,
    choose_tasks,
    find_env,
    make_env,
    make_env_factory,
    names_of,
    parse_env_args,
    print_json,
    recorded_args,
    stderr,
    stdout,
)
from agentgym_envs.cli.policies import Batch, OnDone, Player, PolicyOptions, make_player, read_recorded
from agentgym_envs.cli.run_store import RunStore
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.evaluate import Evaluation, evaluate
from agentgym_envs.trajectory import Trajectory

EnvIds = Annotated[list[str], typer.Argument(metavar="ENV...", help=f"Environment ids, or names: {', '.join(SHORT)}.")]
PolicyName = Annotated[
    str, typer.Option("--policy", help="oracle, random, replay:FILE, openai:MODEL or hf:MODEL_PATH.")
]
BaseUrl = Annotated[str | None, typer.Option(help="openai: address of the server, up to and with /v1.")]
KeyEnv = Annotated[str, typer.Option(help="openai: the environment variable that holds the key.")]
Template = Annotated[Path | None, typer.Option(help="hf: a file with a Jinja chat template.")]
Groups = Annotated[str | None, typer.Option(help="Groups of tasks, separated by commas.")]
Tasks = Annotated[int | None, typer.Option(min=1, help="How many tasks, chosen by the seed; by default all.")]
Samples = Annotated[int, typer.Option("--samples", "-k", min=1, help="Episodes a task.")]
TurnTokens = Annotated[int, typer.Option(min=1, help="Token budget of an answer.")]
Tokens = Annotated[int, typer.Option(min=1, help="hf: token budget of an episode, observations included.")]
Temperature = Annotated[float, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Episodes at a time.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides tasks and starts, not what a model samples.")]
Out = Annotated[Path | None, typer.Option(help="A directory for trajectories.jsonl and eval.json.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the result; a run is resumed only under the same."""

    env: tuple[str, ...]
    env_args: dict[str, Any]
    policy: str
    base_url: str | None
    chat_template: str | None
    split: str
    groups: tuple[str, ...] | None
    tasks: int | None
    samples: int
    max_turns: int
    max_tokens: int
    max_turn_tokens: int
    temperature: float
    seed: int

    def recorded(self) -> dict[str, Any]:
        """What of them is written down and compared: an episode is the same wherever its environment runs."""
        return asdict(self) | {"env_args": recorded_args(self.env_args)}


def eval_command(
    env: EnvIds,
    policy: PolicyName,
    base_url: BaseUrl = None,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    chat_template: Template = None,
    split: Split = "test",
    groups: Groups = None,
    tasks: Tasks = None,
    samples: Samples = 1,
    max_turns: MaxTurns = 30,
    max_tokens: Tokens = 8192,
    max_turn_tokens: TurnTokens = 512,
    temperature: Temperature = 1.0,
    concurrency: Concurrency = 32,
    seed: Seed = 0,
    env_arg: EnvArgs = None,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Evaluate a policy: success, score and turns per group of tasks, with 95 % intervals over tasks.

    Episodes go to DIR/trajectories.jsonl as they end, so that a run that was stopped goes on with --resume.
    """
    _check_out(out, resume, overwrite)
    settings = Settings(
        env=tuple(dict.fromkeys(find_env(name) for name in env)),
        env_args=parse_env_args(env_arg),
        policy=policy,
        base_url=base_url,
        chat_template=None if chat_template is None else _read(chat_template),
        split=split,
        groups=names_of(groups),
        tasks=tasks,
        samples=samples,
        max_turns=max_turns,
        max_tokens=max_tokens,
        max_turn_tokens=max_turn_tokens,
        temperature=temperature,
        seed=seed,
    )
    batches, order, digests = plan(settings)
    store = RunStore(out, {**settings.recorded(), "task_digests": digests}, resume=resume, overwrite=overwrite)
    options = PolicyOptions(temperature, max_turn_tokens, base_url, api_key_env, settings.chat_template, seed)
    evaluation = _run(batches, store, lambda: make_player(policy, options), concurrency, order)
    _show(evaluation, store, as_json)


def plan(settings: Settings) -> tuple[list[Batch], list[str], dict[str, str]]:
    """What is to be played, the order of the groups in the report, and the hashes of the task tables."""
    batches: list[Batch] = []
    order: dict[str, None] = {}
    digests = {}
    recorded = read_recorded(settings.policy.partition(":")[2]) if settings.policy.startswith("replay:") else None
    for env_id in settings.env:
        made = make_env(env_id, settings.env_args)
        table = text_env(made).tasks
        order |= dict.fromkeys(table.groups)
        digests[env_id] = table.digest
        if recorded is None:
            batches.append(_plan_tasks(env_id, settings, table))
        else:
            batches += _plan_replay(env_id, settings, recorded)
        made.close()
    if not any(batch.specs for batch in batches):
        raise UsageError(f"{settings.policy} holds no episode of {', '.join(settings.env)}")
    return batches, list(order), digests


def _plan_tasks(env_id: str, settings: Settings, table: Any) -> Batch:
    from agentgym_envs.rollout import EpisodeSpec

    tasks = choose_tasks(table, settings.tasks, split=settings.split, groups=settings.groups, seed=settings.seed)
    meta = {"policy": settings.policy}
    specs = [EpisodeSpec(task.id, settings.seed + sample, meta) for task in tasks for sample in range(settings.samples)]
    return _batch(env_id, settings, specs, settings.max_turns)


def _plan_replay(env_id: str, settings: Settings, recorded: Sequence[Trajectory]) -> list[Batch]:
    """The recorded episodes; one that was cut is cut again after as many turns, so that its actions do not run out."""
    from agentgym_envs.rollout import EpisodeSpec

    by_limit: dict[int, list[EpisodeSpec]] = {}
    for episode in recorded:
        if episode.env_id == env_id:
            _check_replay(episode, settings)
            turns = len(episode.turns) if episode.truncated else settings.max_turns
            spec = EpisodeSpec(episode.task.id, episode.seed, {"policy": settings.policy})
            by_limit.setdefault(min(turns, settings.max_turns), []).append(spec)
    return [_batch(env_id, settings, specs, turns) for turns, specs in sorted(by_limit.items())]


def _check_replay(episode: Trajectory, settings: Settings) -> None:
    if dict(episode.env_kwargs) != recorded_args(settings.env_args):
        arguments = " ".join(f"--env-arg {key}={json.dumps(value)}" for key, value in episode.env_kwargs.items())
        raise UsageError(
            f"{episode.task.id} was recorded with {arguments or 'no --env-arg'}; its actions mean nothing under "
            "another, so give the same"
        )


def _batch(env_id: str, settings: Settings, specs: list[Any], max_turns: int) -> Batch:
    from agentgym_envs.rollout import Limits

    limits = Limits(max_turns, settings.max_tokens, settings.max_turn_tokens)
    return Batch(env_id, make_env_factory(env_id, settings.env_args), specs, limits)


def _run(
    batches: list[Batch], store: RunStore, make: Callable[[], Player], concurrency: int, order: list[str]
) -> Evaluation:
    """Play what is not played yet. Whatever stops it, what was played is kept and named in the message."""
    wanted = sum(len(batch.specs) for batch in batches)
    try:
        with _progress(wanted, store) as advance:
            _play(batches, store, make, concurrency, advance)
        evaluation = evaluate(store.episodes.values(), group_order=order)
        store.write_metrics(evaluation.to_json(), complete=True)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {store.kept(wanted)}") from None
    except (AgentGymError, OSError) as error:
        if store.episodes:
            error.add_note(store.kept(wanted))
        raise
    finally:
        store.close()
    return evaluation


def _play(batches: list[Batch], store: RunStore, make: Callable[[], Player], concurrency: int, advance: OnDone) -> None:
    from agentgym_envs.rollout import run_sync

    left = [_left_of(batch, store) for batch in batches]
    if not any(batch.specs for batch in left):
        return
    player = make()

    def done(trajectory: Trajectory) -> None:
        store.add(trajectory)
        advance(trajectory)

    async def everything() -> None:
        try:
            for batch in left:
                await player.play(batch, concurrency, done)
        finally:
            await player.close()

    run_sync(everything())


def _left_of(batch: Batch, store: RunStore) -> Batch:
    specs = [spec for spec in batch.specs if not store.is_done(batch.env_id, spec.task or "", spec.seed)]
    return Batch(batch.env_id, batch.make_env, specs, batch.limits)


@contextmanager
def _progress(wanted: int, store: RunStore) -> Iterator[OnDone]:
    """A bar on stderr with the success so far, if somebody watches."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    usable = [episode for episode in store.episodes.values() if episode.usable]
    count, solved = len(usable), sum(episode.success for episode in usable)
    text = TextColumn("success {task.fields[share]}")
    columns = (MofNCompleteColumn(), BarColumn(), text, TimeElapsedColumn(), "left", TimeRemainingColumn())
    console = stderr()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=wanted, completed=count, share="–")

        def advance(trajectory: Trajectory) -> None:
            nonlocal count, solved
            count += trajectory.usable
            solved += trajectory.success
            bar.update(task, completed=count, share=f"{100 * solved / count:.1f}%" if count else "–")

        yield advance


def _show(evaluation: Evaluation, store: RunStore, as_json: bool) -> None:
    if as_json:
        print_json({**store.result, "out": None if store.directory is None else str(store.directory)})
        return
    from rich.markup import escape

    console = stdout()
    report.print_evaluation(console, evaluation)
    if failure := next((episode.error for episode in store.episodes.values() if episode.error), None):
        console.print("[yellow]one failure:[/]", escape(failure), soft_wrap=True)
    if store.directory is not None:
        console.print(f"[dim]trajectories and eval.json are in {store.directory}[/]", soft_wrap=True)


def _check_out(out: Path | None, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: choose one of them")
    if out is None and (resume or overwrite):
        raise UsageError("--resume and --overwrite say what to do with the run in --out DIR, and there is no --out")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the chat template {path} cannot be read: {error}") from None
