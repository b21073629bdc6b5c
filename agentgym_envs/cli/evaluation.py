"""`agentgym eval`: evaluate a policy, with intervals. An interrupted run can be resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from agentgym_envs.cli.common import json_object, names_of, print_json, stdout
from agentgym_envs.cli.envs import find_env, parse_env_args, with_native_tools
from agentgym_envs.cli.evaluating import options as opt
from agentgym_envs.cli.evaluating.agents import check_plays_alone, choose_agent, recorded_agent
from agentgym_envs.cli.evaluating.model_server import (
    KEY_VARIABLE,
    ModelServer,
    open_server,
    read_price,
    server_url,
)
from agentgym_envs.cli.evaluating.plan import EvalPlan, make_plan
from agentgym_envs.cli.evaluating.running import play, report_saved
from agentgym_envs.cli.evaluating.settings import EvalSettings
from agentgym_envs.cli.evaluating.task_files import TaskFile, read_task_file
from agentgym_envs.cli.evaluating.turn_limits import default_notes, turn_limits
from agentgym_envs.cli.evaluating.usage import usage_row
from agentgym_envs.cli.evaluating.warnings import option_warnings
from agentgym_envs.cli.label import label_missing, read_label_table
from agentgym_envs.cli.policies import PolicyOptions, PolicyPlayer, check_policy, has_tokens, make_player
from agentgym_envs.cli.run_store import RunStore
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.rollout import Agent


def eval_command(
    policy: opt.PolicyName,
    env: opt.EnvIds = None,
    more_env: opt.MoreEnvs = None,
    agent: opt.AgentName = None,
    context: opt.Context = None,
    attempts: opt.Attempts = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.KeyEnv = KEY_VARIABLE,
    price: opt.PriceText = None,
    requests_per_minute: opt.RequestRate = None,
    cassette: opt.CassetteFile = None,
    replay: opt.Replay = False,
    max_images: opt.MaxImages = None,
    chat_template: opt.Template = None,
    chat_template_kwargs: opt.TemplateKwargs = None,
    split: opt.SplitName = None,
    groups: opt.Groups = None,
    tasks: opt.Tasks = None,
    skip_unknown: opt.SkipUnknown = False,
    episodes_per_task: opt.EpisodesPerTask = 1,
    max_turns: opt.MaxTurns = None,
    max_tokens: opt.MaxTokens = 8192,
    max_turn_tokens: opt.TurnTokens = 512,
    temperature: opt.Temperature = 1.0,
    concurrency: opt.Concurrency = 32,
    retries: opt.Retries = 2,
    seed: opt.Seed = 0,
    env_arg: opt.EnvArgs = None,
    tools: opt.NativeTools = False,
    out: opt.Out = None,
    tokens: opt.Tokens = False,
    labels: opt.Labels = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    agentgym_rl: opt.AgentGymRL = False,
    by: opt.By = "group",
    as_json: opt.Json = False,
) -> None:
    """Evaluate a policy: success, score and turns per group of tasks, with 95 % intervals over tasks."""
    given = SimpleNamespace(**locals())
    guide = choose_agent(policy, agent, context, attempts)
    settings = _settings(given, guide)
    server = _server(given, settings)
    plan, store = _open(settings, skip_unknown, out, resume, overwrite, tokens, labels)
    limits = () if as_json or max_turns is not None else default_notes(settings.max_turns)
    notes = chain(limits, plan.notes, option_warnings(settings, plan, split_given=split is not None))
    with report_saved(plan, store, notes):
        play(plan, store, lambda: _player(settings, guide, server, tokens), concurrency, retries, server)
        usage = None if server is None else usage_row(store.episodes.values(), read_price(price, server.model))
        _report(store, plan, agentgym_rl, by, labels, as_json, usage)


def _settings(given: SimpleNamespace, guide: Agent | None) -> EvalSettings:
    """The settings of the options `given`. Raises UsageError."""
    env_ids = _envs([*(given.env or ()), *(given.more_env or ())], guide)
    return EvalSettings(
        policy=check_policy(given.policy, given.base_url),
        env=env_ids,
        env_args=_env_args(given.env_arg, guide, given.tools),
        agent=recorded_agent(guide),
        base_url=server_url(given.base_url) if given.policy.startswith("openai:") else given.base_url,
        chat_template=_read(given.chat_template),
        chat_template_kwargs=json_object("--chat-template-kwargs", given.chat_template_kwargs),
        split=given.split or "test",
        groups=names_of(given.groups),
        tasks=_tasks(given.tasks, given.groups),
        episodes_per_task=given.episodes_per_task,
        max_turns=turn_limits(given.max_turns, env_ids),
        max_tokens=given.max_tokens,
        max_turn_tokens=given.max_turn_tokens,
        temperature=given.temperature,
        seed=given.seed,
        max_images=given.max_images,
    )


def _server(given: SimpleNamespace, settings: EvalSettings) -> ModelServer | None:
    """The server of the model; None for a policy without one. Raises UsageError."""
    name, _, model = settings.policy.partition(":")
    if name == "openai" and settings.base_url is not None:
        read_price(given.price, model)
        return open_server(
            model, settings.base_url, given.api_key_env, given.cassette, given.replay, given.requests_per_minute
        )
    for option in ("price", "requests_per_minute", "cassette", "replay"):
        if getattr(given, option):
            raise UsageError(
                f"--{option.replace('_', '-')} is an option of --policy openai:MODEL, and the policy is "
                f"{settings.policy}: leave it out"
            )
    return None


def _player(settings: EvalSettings, agent: Agent | None, server: ModelServer | None, tokens: bool) -> PolicyPlayer:
    options = PolicyOptions(
        settings.temperature,
        settings.max_turn_tokens,
        server,
        settings.chat_template,
        settings.chat_template_kwargs,
        settings.seed,
        tokens,
        settings.max_images or 1,
    )
    return make_player(settings.policy, options, agent)


def _envs(names: Sequence[str], guide: Agent | None) -> tuple[str, ...]:
    if not names:
        raise UsageError("no environment was given; name one: agentgym eval textcraft --policy oracle, for example")
    found = tuple(dict.fromkeys(find_env(name) for name in names))
    if guide is not None:
        check_plays_alone(guide, found)
    return found


def _env_args(pairs: Sequence[str] | None, agent: Agent | None, tools: bool) -> dict[str, Any]:
    """The environment arguments; without a `grammar` or native tools, the grammar is that of the agent."""
    given = parse_env_args(pairs)
    if tools:
        return with_native_tools(given)
    return ({} if agent is None else {"grammar": agent.grammar}) | given


def _tasks(text: str | None, groups: str | None) -> int | TaskFile | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        if groups is not None:
            raise UsageError(
                "--groups selects tasks of a split, and --tasks FILE names the tasks: give one of them"
            ) from None
        return read_task_file(text)
    if count < 1:
        raise UsageError(f"--tasks {count} selects no task; give at least 1")
    return count


def _open(
    settings: EvalSettings,
    skip_unknown: bool,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    tokens: bool,
    labels: bool,
) -> tuple[EvalPlan, RunStore]:
    """Plan the episodes and open the directory of the run."""
    from agentgym_envs.cli import reports

    _check_out(out, settings.policy, resume=resume, overwrite=overwrite, tokens=tokens, labels=labels)
    plan = make_plan(settings, skip_unknown=skip_unknown)
    fixed = {**settings.recorded(), "task_digests": plan.digests}
    details = {"versions": reports.versions(), "group_order": plan.group_order, "skipped_tasks": plan.skipped}
    return plan, RunStore(out, fixed, details, resume=resume, overwrite=overwrite, tokens=tokens)


def _report(
    store: RunStore,
    plan: EvalPlan,
    agentgym_rl: bool,
    by: str,
    label: bool,
    as_json: bool,
    usage: Mapping[str, Any] | None,
) -> None:
    """Write the report files and print the result. With `label`, label the episodes first."""
    from rich.markup import escape

    from agentgym_envs.cli import reports

    if label:
        label_missing([store.record])
    labels = None if store.directory is None else read_label_table([store.record])
    report = reports.make_report(
        list(store.episodes.values()), plan.group_order, agentgym_rl=agentgym_rl, by=by, labels=labels
    )
    table = None if report.agentgym_rl_table is None else report.agentgym_rl_table.to_json()
    mistakes = None if report.mistakes is None else report.mistakes.to_json()
    store.write_metrics(report.evaluation.to_json(), table, mistakes, usage, complete=True)
    report = report.of_run(store.result)
    if store.directory is not None:
        reports.write_all(store.directory, report)
    if as_json:
        print_json({**store.result, "out": None if store.directory is None else str(store.directory)})
        return
    console = stdout()
    reports.print_title(console, report)
    reports.print_report(console, report)
    if agentgym_rl and report.agentgym_rl_table is not None:
        reports.print_agentgym_rl_table(console, report.agentgym_rl_table)
    if store.directory is not None:
        where = f"trajectories.jsonl, eval.json and report.html are in {store.directory}"
        console.print(f"[dim]{escape(where)}[/]", soft_wrap=True)


def _check_out(out: Path | None, policy: str, *, resume: bool, overwrite: bool, tokens: bool, labels: bool) -> None:
    if resume and overwrite:
        raise UsageError("--resume continues a run and --overwrite replaces it: give one of them")
    if out is None and (resume or overwrite):
        raise UsageError("--resume and --overwrite need the directory of a run: give --out DIR")
    if tokens and not has_tokens(policy):
        raise UsageError(f"--tokens needs a model that runs in this process (hf:), and {policy} does not")
    if labels and out is None:
        raise UsageError("--labels writes to the directory of the run: give --out DIR")
    if tokens and out is None:
        raise UsageError("--tokens writes to the directory of the run: give --out DIR")


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the chat template {path} cannot be read: {error}") from None
