"""The private parts of TRL that `agentgym_trl` overrides, calls or relies on.

If one of these fails with a new TRL: read the message, fix the module that it names, and then raise the upper bound of
`trl` in pyproject.toml. test_gradient.py and test_rollout.py test the behaviour behind the names.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from trl import GRPOConfig, GRPOTrainer, SFTTrainer

from agentgym_trl.config import CHOICES
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import make_trainer

SEAMS = {
    "_calculate_rewards": (
        ["self", "inputs", "prompts", "completions", "completion_ids_list"],
        "AgentTrainer._calculate_rewards keeps its result, (episodes of all processes, reward functions)",
    ),
    "_generate_and_score_completions": (
        ["self", "inputs"],
        "AgentTrainer._generate_and_score_completions replaces output['advantages']",
    ),
    "_get_per_token_logps_and_entropies": (
        [
            *("self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy"),
            *(
                "compute_aux_loss",
                "pixel_values",
                "image_grid_thw",
                "num_images",
                "pixel_attention_mask",
                "spatial_shapes",
            ),
            *("num_tiles", "image_sizes", "token_type_ids", "mm_token_type_ids", "image_position_ids"),
        ],
        "AgentTrainer takes the log-probabilities of the loss from its result, the first of three",
    ),
    "_prepare_inputs": (["self", "generation_batch"], "AgentTrainer._prepare_inputs trims the micro-batch it returns"),
    "_generate_single_turn": (
        ["self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images"],
        "TrainerEngine.generate_batch calls it as (prompts, None, {}, num_generations=1)",
    ),
}


def source(function: Any) -> str:
    return inspect.getsource(inspect.unwrap(function))


def test_the_installed_trl_has_the_required_version() -> None:
    required = [Requirement(text) for text in requires("agentgym-envs") or [] if Requirement(text).name == "trl"]
    assert version("trl") in required[0].specifier, "the facts below were read in another TRL"
    bounds = {specifier.operator for specifier in required[0].specifier}
    assert "<" in bounds, "trl must have an upper bound: private methods are overridden"


@pytest.mark.parametrize("name", SEAMS)
def test_the_private_methods_have_their_signatures(name: str) -> None:
    parameters, use = SEAMS[name]
    method = getattr(GRPOTrainer, name, None)
    assert method is not None, f"GRPOTrainer.{name} is gone; {use}"
    found = list(inspect.signature(inspect.unwrap(method)).parameters)
    assert found == parameters, f"GRPOTrainer.{name} now takes {found}; {use}"


def test_our_overrides_replace_existing_methods() -> None:
    ours = {name for name in vars(AgentTrainer) if name in SEAMS}
    assert ours == {
        "_calculate_rewards",
        "_generate_and_score_completions",
        "_get_per_token_logps_and_entropies",
        "_prepare_inputs",
    }


@pytest.mark.parametrize(
    "function, text, use",
    [
        ("_generate", 'extra_fields.pop("env_mask"', "rollout.columns hands the mask over as `env_mask`"),
        ("_generate", "self.rollout_func(", "Rollout.__call__ is called with (prompts, trainer)"),
        (
            "_generate_single_turn",
            "self.vllm_generation.generate(",
            "TrainerEngine._limit_holder names vllm_generation",
        ),
        ("_compute_loss", 'completion_mask * inputs["tool_mask"]', "only sampled tokens enter the loss"),
        ("_compute_loss", "advantages.dim() == 1", "an estimator may return (B,) or (B, T)"),
        ("_generate_and_score_completions", "self._calculate_rewards(", "AgentTrainer reads the rewards there"),
        ("_calculate_rewards", "gather(rewards_per_func)", "AgentTrainer._returns expects those of all processes"),
        ("_calculate_rewards", '"log_metric"', "Rollout.reward logs the metrics of a rollout through it"),
    ],
)
def test_the_trl_source_still_has_the_lines_we_rely_on(function: str, text: str, use: str) -> None:
    assert text in source(getattr(GRPOTrainer, function)), f"GRPOTrainer.{function} has no {text!r} any more; {use}"


def test_weights_are_synced_before_the_rollout() -> None:
    text = source(GRPOTrainer._generate)
    use = "ServerEngine samples from the server as soon as the rollout begins"
    assert 0 < text.find("self.vllm_generation.sync_weights()") < text.find("self.rollout_func("), use


def test_vllm_limits_an_answer_by_the_attribute_that_we_set() -> None:
    from trl.generation import vllm_generation

    text = source(vllm_generation.VLLMGeneration.generate)
    use = "TrainerEngine._limit_holder sets vllm_generation.max_completion_length before every call"
    assert "max_completion_length = self.max_completion_length" in text, use
    assert text.count('"max_tokens": max_completion_length') == 2, use  # server and colocate


def test_sft_uses_given_labels() -> None:
    text = inspect.getsource(inspect.getmodule(SFTTrainer) or SFTTrainer)
    assert '"labels"' in text, "sft_dataset makes the labels; test_sft.py proves that they arrive unchanged"


def test_the_attribute_we_set_limits_an_answer(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer)
    holder, name = TrainerEngine(trainer)._limit_holder()
    message = "TrainerEngine._limit_holder no longer names what bounds generation with transformers"
    assert (holder, name) == (trainer.generation_config, "max_new_tokens"), message
    assert getattr(holder, name) == trainer.args.max_completion_length, message
    setattr(holder, name, 3)
    ids, logprobs = trainer._generate_single_turn([[5, 6, 7], [5]], None, {}, num_generations=1)
    assert [len(row) for row in ids] == [3, 3] and logprobs is None, message


def test_settings_that_we_read_exist(tmp_path: Path, tokenizer: Any) -> None:
    trainer = make_trainer(tmp_path, tokenizer)
    used = ("num_generations", "num_generations_eval", "scale_rewards", "reward_weights", "use_vllm", "rollout_func")
    assert not [name for name in used if not hasattr(trainer, name)]
    fields = GRPOConfig.__dataclass_fields__
    needed = ("max_completion_length", "generation_batch_size", "chat_template_kwargs", "multi_objective_aggregation")
    assert not [name for name in needed if name not in fields]


@pytest.mark.parametrize("name", CHOICES)
def test_the_choices_equal_those_of_trl(name: str) -> None:
    texts = {f: source(getattr(GRPOTrainer, f)) for f in ("_compute_loss", "_generate_and_score_completions")}
    in_rollout = name in ("scale_rewards", "vllm_importance_sampling_mode")
    text = texts["_generate_and_score_completions" if in_rollout else "_compute_loss"]
    assert not [choice for choice in CHOICES[name] if f'"{choice}"' not in text], "mend config.CHOICES"
    found = set(re.findall(rf'self\.{name} == "(\w+)"', text))
    for group in re.findall(rf"self\.{name} in \[([^\]]*)\]", text):
        found |= set(re.findall(r'"(\w+)"', group))
    assert found <= set(CHOICES[name]), f"TRL knows another {name}; add it to config.CHOICES"
