"""Load models and tokenizers, with usage errors for those that do not load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.integrations import deepspeed
from transformers.utils import logging as transformers_logging
from trl.chat_template_utils import get_training_chat_template

from agentgym_envs.errors import TemplateError, UsageError
from agentgym_envs.rollout import ChatCodec
from agentgym_trl.engines import HFEngine


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model (a directory, or a name on the hub), padding on the left. Raises UsageError."""
    _check_model(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    except (OSError, ValueError) as error:
        raise UsageError(f"the tokenizer of {model!r} does not load: {_first_line(error)}") from None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(model: str, **kwargs: Any) -> Any:
    """A causal language model (a directory, or a name on the hub). Raises UsageError."""
    _check_model(model)
    try:
        return AutoModelForCausalLM.from_pretrained(model, **kwargs)
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {model!r} does not load: {_first_line(error)}") from None


def make_codec(
    tokenizer: Any,
    *,
    template: str | None = None,
    template_kwargs: dict[str, Any] | None = None,
    keep_thoughts: bool = False,
) -> ChatCodec:
    """A codec for multi-turn training; sets the template of its `tokenizer`.

    If the template drops the thoughts of earlier answers, as those of thinking models do, an episode has several
    contexts. With `keep_thoughts`, a tokenizer's own template of this kind is replaced by TRL's training template for
    the model family (such as Qwen3), and an episode has one. Raises TemplateError.
    """
    if template is not None:
        tokenizer.chat_template = template
    try:
        return ChatCodec(tokenizer, template_kwargs=template_kwargs, forks=not keep_thoughts)
    except TemplateError as error:
        training = _training_template(tokenizer) if keep_thoughts and template is None else None
        if training is None:
            raise error from None
        tokenizer.chat_template = training
        return ChatCodec(tokenizer, template_kwargs=template_kwargs)


@contextmanager
def unsharded() -> Iterator[None]:
    """Load models whole: with DeepSpeed's ZeRO-3, transformers would shard them over the processes."""
    reference = deepspeed._hf_deepspeed_config_weak_ref
    config = reference() if reference is not None else None
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        if config is not None:
            deepspeed.set_hf_deepspeed_config(config)


def read_template(path: str | Path | None) -> str | None:
    """Read a chat template from a file; None for no file. Raises UsageError."""
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the chat template {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the chat template {path} cannot be read: it is not UTF-8 text") from None


def load_engine(
    model: str,
    *,
    chat_template: str | None = None,
    chat_template_kwargs: dict[str, Any] | None = None,
    logprobs: bool = False,
) -> tuple[HFEngine, ChatCodec]:
    """Make an engine and a codec for evaluation: the entry point "hf" of the group "agentgym.engines".

    The model is on `best_device()`. `logprobs` is the option of `HFEngine`.
    """
    transformers_logging.disable_progress_bar()  # evaluation has its own
    codec = make_codec(load_tokenizer(model), template=chat_template, template_kwargs=chat_template_kwargs)
    return HFEngine(load_model(model, dtype="auto").to(best_device()), codec.tokenizer, logprobs=logprobs), codec


def best_device() -> torch.device:
    """The accelerator of this machine (CUDA, MPS or another that torch supports), or the CPU."""
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cpu") if device is None else device


def _training_template(tokenizer: Any) -> str | None:
    if not tokenizer.chat_template:
        return None
    try:
        template: str | None = get_training_chat_template(tokenizer)
    except ValueError:
        return None
    return template


def _check_model(model: str) -> None:
    """Raise UsageError unless it is a directory with a model, or a model on the hub or in its cache."""
    path = Path(model)
    if path.exists() and not (path / "config.json").is_file():
        raise UsageError(f"{model!r} is not a model: there is no config.json in it")
    if path.exists():
        return
    try:
        AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{model!r} is neither a directory with a model nor a model on the hub: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300]
