"""Checks before verl starts: verl itself would fail minutes later, or hang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from io import StringIO
from typing import Any
from warnings import catch_warnings, simplefilter

from hydra.errors import HydraException
from omegaconf import OmegaConf

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.rollout import ChatCodec
from agentgym_envs.rollout.mixture import gym_make
from agentgym_verl.cli.overrides import one_line
from agentgym_verl.dataset import members_of
from agentgym_verl.rows import TaskRow
from agentgym_verl.settings import EpisodeSettings, read_settings, schedule_of

_NEED_GROUPS = ("grpo", "rloo", "reinforce_plus_plus_baseline")


def check_config(config: Any, train: Sequence[TaskRow], val: Sequence[TaskRow]) -> None:
    """Check that a run of this configuration can start.

    Raises:
        UsageError: a setting, schedule, size or model is invalid, or verl would not find our agent loop. A chat
            template that cannot be trained on raises TemplateError.
    """
    from agentgym_verl.plugin import check_registered

    check_registered()
    if not config.trainer.use_v1:
        raise UsageError("trainer.use_v1=false: verl's older trainer does not pass the step to episodes; leave it out")
    settings = read_settings(OmegaConf.to_container(config.agentgym, resolve=True))
    for env_id in sorted({row.env_id for row in (*train, *val)}):
        schedule_of(settings, env_id)
    if not val and (config.trainer.test_freq > 0 or config.trainer.val_before_train):
        raise UsageError("there is no task to validate on")
    _check_agent(settings, (*train, *val))
    _check_sizes(config, len(train))
    _check_separate(config)
    _check_lengths(config)
    rewrites = _check_codec(config, [*train, *val], forks=not settings.keep_thoughts)
    if rewrites or settings.agent_rewrites:
        _check_several_contexts(config)
    _check_with_verl(config)  # with a critic it loads the tokenizer, so check that one first


def context_length(config: Any) -> int:
    """The max tokens of a prompt and its response."""
    return int(config.data.max_prompt_length) + int(config.data.max_response_length)


def _check_agent(settings: EpisodeSettings, rows: Sequence[TaskRow]) -> None:
    """Check that the agent can think in the grammar of every environment."""
    agent = settings.agent_options
    if agent is None:
        return
    for row in {row.kind: row for row in rows}.values():
        env = gym_make(row.env_id, row.with_default_grammar(agent.grammar).env_kwargs)
        try:
            agent.instructions(text_env(env).grammar)
        finally:
            env.close()


def _check_several_contexts(config: Any) -> None:
    """Refuse what verl does with a row and cannot do with several rows of one episode."""
    instead = "leave it out, or give every episode one context (agentgym.context=full, agentgym.keep_thoughts=true)"
    refused = {
        "actor_rollout_ref.rollout.enable_rollout_routing_replay": "verl's server reports the experts of one sequence",
        "distillation.enabled": "verl asks the teacher about the last context of an episode only",
        "algorithm.use_pf_ppo": "verl resamples rows",
    }
    for key, reason in refused.items():
        if OmegaConf.select(config, key):
            raise UsageError(f"{key}: {reason}, and an episode may have several contexts; {instead}")
    groups = config.algorithm.get("filter_groups")
    if groups and groups.get("enable") and groups.get("metric") == "reward":
        raise UsageError(
            "algorithm.filter_groups.metric=reward compares the rewards of contexts, and an episode may have several; "
            "set it to score, which is the episode's"
        )


def _check_sizes(config: Any, rows: int) -> None:
    batch, actor = int(config.data.train_batch_size), config.actor_rollout_ref.actor
    mini, episodes = int(actor.ppo_mini_batch_size), int(config.actor_rollout_ref.rollout.n)
    if rows < batch:
        raise UsageError(
            f"a step has {batch} tasks (data.train_batch_size), and there are only {rows}; --tasks {batch} repeats "
            "them with new seeds"
        )
    if batch % mini:
        raise UsageError(
            f"data.train_batch_size ({batch}) must be a multiple of actor_rollout_ref.actor.ppo_mini_batch_size "
            f"({mini})"
        )
    processes = int(config.trainer.nnodes) * int(config.trainer.n_gpus_per_node)
    processes //= int(actor.get("ulysses_sequence_parallel_size") or 1)
    if mini * episodes % max(processes, 1):
        raise UsageError(
            f"an optimizer step has {mini * episodes} episodes (ppo_mini_batch_size {mini} x rollout.n {episodes}), "
            f"which {processes} processes cannot divide evenly; change actor_rollout_ref.actor.ppo_mini_batch_size"
        )
    if episodes < 2 and config.algorithm.adv_estimator in _NEED_GROUPS:
        raise UsageError(
            f"{config.algorithm.adv_estimator} compares episodes: actor_rollout_ref.rollout.n must be at least 2"
        )


def _check_separate(config: Any) -> None:
    """Check what mode separate_async needs."""
    if config.trainer.v1.trainer_mode != "separate_async":
        return
    batch, actor = int(config.data.train_batch_size), config.actor_rollout_ref.actor
    mini, syncs = int(actor.ppo_mini_batch_size), int(config.trainer.v1.separate_async.parameter_sync_step)
    if batch != mini * syncs:
        raise UsageError(
            f"mode separate_async needs data.train_batch_size ({batch}) = ppo_mini_batch_size ({mini}) x "
            f"trainer.v1.separate_async.parameter_sync_step ({syncs})"
        )
    bypass = config.algorithm.rollout_correction.get("bypass_mode")
    if syncs > 1 and not bypass and actor.strategy == "fsdp2" and actor.fsdp_config.param_offload:
        raise UsageError(
            "mode separate_async with strategy=fsdp2 and fsdp_config.param_offload=true (of actor_rollout_ref.actor): "
            "verl saves offloaded weights without a copy, and loses optimizer steps when it restores them; set "
            "strategy=fsdp or param_offload=false"
        )


def _check_lengths(config: Any) -> None:
    actor, context = config.actor_rollout_ref.actor, context_length(config)
    limit = int(actor.ppo_max_token_len_per_gpu) * int(actor.get("ulysses_sequence_parallel_size") or 1)
    if actor.use_dynamic_bsz and context > limit:
        raise UsageError(
            f"an episode may have {context} tokens (data.max_prompt_length + data.max_response_length), more than "
            f"actor_rollout_ref.actor.ppo_max_token_len_per_gpu ({limit}); increase it"
        )
    model_len = config.actor_rollout_ref.rollout.max_model_len
    if model_len is not None and model_len < context:
        raise UsageError(
            f"actor_rollout_ref.rollout.max_model_len ({model_len}) is less than data.max_prompt_length + "
            f"data.max_response_length ({context})"
        )


def _check_with_verl(config: Any) -> None:
    """Run the first checks of verl's own `main_ppo`."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    with _as_usage_errors(), redirect_stdout(StringIO()), catch_warnings():
        simplefilter("ignore")  # main_ppo repeats the warnings
        validate_config(config, need_reference_policy(config), need_critic(config))


@contextmanager
def _as_usage_errors() -> Iterator[None]:
    try:
        yield
    except (AssertionError, ValueError, TypeError, NotImplementedError, HydraException) as error:
        raise UsageError(f"verl rejects the configuration: {one_line(error)}") from error


def _check_codec(config: Any, rows: Sequence[TaskRow], forks: bool) -> bool:
    """Check that the model's chat template can be trained on, and shows native tools if the tasks have them.

    Models in a remote file system are skipped. Returns True if the template rewrites earlier messages.
    """
    from transformers import AutoTokenizer

    model = config.actor_rollout_ref.model
    path = model.tokenizer_path or model.path
    if "://" in path:
        return False
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=bool(model.trust_remote_code))
    except (OSError, ValueError) as error:
        raise UsageError(f"the tokenizer of {path!r} does not load: {str(error).strip().splitlines()[0]}") from None
    if model.custom_chat_template:
        tokenizer.chat_template = model.custom_chat_template
    template_kwargs = dict(config.data.get("apply_chat_template_kwargs") or {})
    codec = ChatCodec(tokenizer, template_kwargs=template_kwargs, forks=forks)
    for member in members_of([row for row in rows if row.env_kwargs.get("grammar") == "tools"]):
        with closing(member.make()) as env:
            codec.with_tools(tools_of(text_env(env).grammar))
    return codec.rewrites
