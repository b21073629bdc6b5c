"""`agentgym eval`: how good a policy is, with intervals; a run that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.cli.common import (
    find_env,
    json_object,
    names_of,
    parse_env_args,
    print_json,
    stdout,
)
from agentgym_envs.cli.evaluating import options as opt
from agentgym_envs.cli.evaluating.agents import check_plays_alone, choose_agent, recorded_agent
from agentgym_envs.cli.evaluating.notes import notes
from agentgym_envs.cli.evaluating.planning import Plan, make_plan
from agentgym_envs.cli.evaluating.running import keeping, play
from agentgym_envs.cli.evaluating.settings import Settings
from agentgym_envs.cli.evaluating.task_files import TaskFile, read_task_file
from agentgym_envs.cli.policies import Player, PolicyOptions, check_policy, has_tokens, make_player
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
    tries: opt.Tries = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.KeyEnv = "OPENAI_API_KEY",
    chat_template: opt.Template = None,
    chat_template_kwargs: opt.TemplateKwargs = None,
    split: opt.SplitName = None,
    groups: opt.Groups = None,
    tasks: opt.Tasks = None,
    skip_unknown: opt.SkipUnknown = False,
    samples: opt.Samples = 1,
    max_turns: opt.LimitOfTurns = 30,
    max_tokens: opt.MaxTokens = 8192,
    max_turn_tokens: opt.TurnTokens = 512,
    temperature: opt.Temperature = 1.0,
    concurrency: opt.Concurrency = 32,
    retries: opt.Retries = 2,
    seed: opt.Seed = 0,
    env_arg: opt.EnvArgs = None,
    out: opt.Out = None,
    tokens: opt.Tokens = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    suite: opt.Suite = False,
    as_json: opt.Json = False,
) -> None:
    """Evaluate a policy: success, score and turns per group of tasks, with 95 % intervals over tasks.

    Episodes go to trajectories.jsonl in --out as they end, so that a run that was stopped goes on with --resume.
    """
    _check_out(out, check_policy(policy, base_url), resume=resume, overwrite=overwrite, tokens=tokens)
    guide = choose_agent(policy, agent, context, tries)
    settings = Settings(
        env=_envs([*(env or ()), *(more_env or ())], guide),
        env_args=_env_args(env_arg, guide),
        policy=policy,
        agent=recorded_agent(guide),
        base_url=base_url,
        chat_template=None if chat_template is None else _read(chat_template),
        chat_template_kwargs=json_object("--chat-template-kwargs", chat_template_kwargs),
        split=split or "test",
        groups=names_of(groups),
        tasks=_tasks(tasks, groups),
        samples=samples,
        max_turns=max_turns,
        max_tokens=max_tokens,
        max_turn_tokens=max_turn_tokens,
        temperature=temperature,
        seed=seed,
    )
    plan = make_plan(settings, skip_unknown=skip_unknown)
    store = _store(settings, plan, out, resume, overwrite, tokens)
    with keeping(plan, store, notes(settings, plan, split_given=split is not None)):
        play(plan, store, lambda: _player(settings, guide, api_key_env, tokens), concurrency, retries)
        _report(store, plan, suite, as_json)


def _player(settings: Settings, agent: Agent | None, api_key_env: str, tokens: bool) -> Player:
    options = PolicyOptions(
        settings.temperature,
        settings.max_turn_tokens,
        settings.base_url,
        api_key_env,
        settings.chat_template,
        settings.chat_template_kwargs,
        settings.seed,
        tokens,
    )
    return make_player(settings.policy, options, agent)


def _envs(names: Sequence[str], guide: Agent | None) -> tuple[str, ...]:
    if not names:
        raise UsageError("no environment was named; say which: agentgym eval textcraft --policy oracle, for example")
    found = tuple(dict.fromkeys(find_env(name) for name in names))
    if guide is not None:
        check_plays_alone(guide, found)
    return found


def _env_args(pairs: Sequence[str] | None, agent: Agent | None) -> dict[str, Any]:
    """What was typed, and the form of answers that the agent writes in unless another was asked for."""
    return ({} if agent is None else {"grammar": agent.grammar}) | parse_env_args(pairs)


def _tasks(text: str | None, groups: str | None) -> int | TaskFile | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        if groups is not None:
            raise UsageError(
                "--groups chooses among the tasks of a split, and --tasks FILE names them: give one"
            ) from None
        return read_task_file(text)
    if count < 1:
        raise UsageError(f"--tasks {count} would play nothing; give at least 1")
    return count


def _store(settings: Settings, plan: Plan, out: Path | None, resume: bool, overwrite: bool, tokens: bool) -> RunStore:
    from agentgym_envs.cli import reports

    fixed = {**settings.recorded(), "task_digests": plan.digests}
    notes = {"versions": reports.versions(), "group_order": plan.group_order, "skipped_tasks": plan.skipped}
    return RunStore(out, fixed, notes, resume=resume, overwrite=overwrite, tokens=tokens)


def _report(store: RunStore, plan: Plan, suite: bool, as_json: bool) -> None:
    """Write the reports, and print what was asked for."""
    from rich.markup import escape

    from agentgym_envs.cli import reports

    report = reports.make_report(list(store.episodes.values()), plan.group_order, suite=suite)
    table = None if report.suite is None else report.suite.to_json()
    store.write_metrics(report.evaluation.to_json(), table, complete=True)
    report = report.of_run(store.result)
    if store.directory is not None:
        reports.write_all(store.directory, report)
    if as_json:
        print_json({**store.result, "out": None if store.directory is None else str(store.directory)})
        return
    console = stdout()
    reports.print_report(console, report)
    if suite and report.suite is not None:
        reports.print_suite(console, report.suite)
    if store.directory is not None:
        where = f"trajectories.jsonl, eval.json and report.html are in {store.directory}"
        console.print(f"[dim]{escape(where)}[/]", soft_wrap=True)


def _check_out(out: Path | None, policy: str, *, resume: bool, overwrite: bool, tokens: bool) -> None:
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: choose one of them")
    if out is None and (resume or overwrite):
        raise UsageError("--resume and --overwrite say what to do with the run in --out DIR, and there is no --out")
    if tokens and not has_tokens(policy):
        raise UsageError(f"--tokens writes what a model in this process sampled (hf:), and {policy} is none")
    if tokens and out is None:
        raise UsageError("--tokens writes into --out DIR, and there is no --out")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the chat template {path} cannot be read: {error}") from None
