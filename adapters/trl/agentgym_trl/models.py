"""Loading models and tokenizers, with errors that say what is wrong."""

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
    tokenizer: Any, *, template: str | None = None, template_kwargs: dict[str, Any] | None = None
) -> ChatCodec:
    """A codec for multi-turn training; its `tokenizer` carries the template that is used.

    If the tokenizer's own template is not prefix-preserving, TRL's training template for that family (Qwen3, for
    example) takes its place, where TRL knows one. Raises TemplateError.
    """
    if template is not None:
        tokenizer.chat_template = template
    try:
        return ChatCodec(tokenizer, template_kwargs=template_kwargs)
    except TemplateError as error:
        training = _training_template(tokenizer) if template is None and tokenizer.chat_template else None
        if training is None:
            raise error from None
        tokenizer.chat_template = training
        return ChatCodec(tokenizer, template_kwargs=template_kwargs)


@contextmanager
def unsharded() -> Iterator[None]:
    """Under DeepSpeed's ZeRO-3, transformers would split a model over the processes while it loads it."""
    reference = deepspeed._hf_deepspeed_config_weak_ref
    config = reference() if reference is not None else None
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        if config is not None:
            deepspeed.set_hf_deepspeed_config(config)


def read_template(path: str | Path | None) -> str | None:
    """The chat template in a file, None if no file was named. Raises UsageError."""
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
    """An engine and codec for evaluation: the entry point "hf" of the group "agentgym.engines".

    The model is put on `best_device()`. `logprobs` asks for the log-probabilities of what is sampled, as `HFEngine`
    has them.
    """
    transformers_logging.disable_progress_bar()  # evaluation shows its own
    codec = make_codec(load_tokenizer(model), template=chat_template, template_kwargs=chat_template_kwargs)
    return HFEngine(load_model(model, dtype="auto").to(best_device()), codec.tokenizer, logprobs=logprobs), codec


def best_device() -> torch.device:
    """The accelerator of this machine (CUDA, MPS or another that torch knows), or the CPU if there is none."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cpu") if found is None else found


def _training_template(tokenizer: Any) -> str | None:
    try:
        found: str | None = get_training_chat_template(tokenizer)
    except ValueError:
        return None
    return found


def _check_model(model: str) -> None:
    """A directory must hold a model; anything else must be known to the hub or its cache."""
    path = Path(model)
    if path.exists() and not (path / "config.json").is_file():
        raise UsageError(f"{model!r} is not a model: there is no config.json in it")
    if path.exists():
        return
    try:
        AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{model!r} is neither a directory with a model nor a model that the hub gives: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300]
