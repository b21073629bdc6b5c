"""Environments as tools of TRL's own trainer: texts, images, rewards and failures, and a step of a vision model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.hosting.images import to_png
from agentgym_envs.image_observations import ImageObservations
from tests.rollout.families import Family, trl_template
from tests.toy import CountEnv

COUNT, SEEN = "Toy/ToolCount-v0", "Toy/Seen-v0"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
NAMED = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


class SeenEnv(ImageObservations, CountEnv):
    """Counts, and shows the number of the turn as the brightness of an image."""

    image_size = (64, 64)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        image = to_png(np.full((64, 64, 3), 40 * self._turn, np.uint8))
        return {**super()._info(details), "screenshot": image}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gym.register(SEEN, entry_point=SeenEnv)
    gym.register(COUNT, entry_point=CountEnv)
    yield
    del gym.registry[SEEN], gym.registry[COUNT]


def brightness(parts: Any) -> tuple[int, str]:
    """Return the shade of the image and the text of a content."""
    image, text = parts
    assert (image["type"], text["type"]) == ("image", "text")
    return image["image"].getpixel((0, 0))[0], text["text"]


def test_an_episode_is_played_through_the_tool() -> None:
    from agentgym_trl import make_tool_environment

    env = make_tool_environment(COUNT)()
    first = env.reset(task="count/2", seed=1, prompt="unused", group="small")
    assert isinstance(first, str) and "Count up with the command: up" in first and "Count to 2" in first
    assert env.act("down") == "Unknown command: down" and env.act("up") == "1" and env.get_reward() == 0.5
    assert env.act("up") == "2\n\nThe episode is over." and env.act("up") == "The episode is over."
    assert env.get_reward() == 1.0
    assert "Count to 3" in env.reset(task="count/3", seed=1) and env.get_reward() == 0.0


def test_observations_with_an_image_are_parts_of_a_message() -> None:
    from agentgym_trl import make_tool_environment

    env = make_tool_environment(SEEN)()
    shade, text = brightness(env.reset(task="count/2", seed=1))
    assert shade == 0 and "Count to 2" in text
    assert brightness(env.act("up")) == (40, "1")


def test_limits_and_failures_end_the_episode() -> None:
    from agentgym_trl import make_tool_environment

    env = make_tool_environment(COUNT, max_turns=2)()
    env.reset(task="count/9")
    assert env.act("up") == "1" and env.act("up") == "2\n\nThe episode is over."
    env.reset(task="count/9")
    env.act("crash")
    assert env.get_reward() is None and env.act("up") == "The episode is over."
    env.reset(task="count/0")
    assert env.get_reward() is None and env.act("up") == "The episode is over."


def test_invalid_settings_are_refused() -> None:
    from agentgym_trl import make_tool_environment

    with pytest.raises(UsageError, match="max_turns must be at least 1, got 0"):
        make_tool_environment(COUNT, max_turns=0)
    with pytest.raises(UsageError, match="grammar='react' has no effect"):
        make_tool_environment(COUNT, grammar="react")
    assert make_tool_environment("AgentGym/WebArenaPixels-v0").__name__ == "WebArenaPixels"


def make_processor() -> Any:
    """Qwen3-VL's processor with a token a byte. Its video processor needs torchvision, and no test has videos."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor

    class Processor(Qwen3VLProcessor):  # type: ignore[misc]
        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            return None if name == "video_processor" else super().check_argument_for_proper_class(name, argument)

    template = trl_template("qwen3_vl")
    family = Family(template, (*SPECIAL, *VISION), NAMED, ordinary=("<tool_call>", "</tool_call>"))
    images = Qwen2VLImageProcessorPil(min_pixels=32 * 32, max_pixels=64 * 64, patch_size=16)
    return Processor(images, family.tokenizer(), None, chat_template=template)


def make_vision_model(tokenizer: Any) -> Any:
    """A Qwen3-VL of 170,000 parameters with random weights."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64}
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    text |= {"head_dim": 16, "max_position_embeddings": 4096, "tie_word_embeddings": True, **sizes}
    text |= {"rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}
    vision: dict[str, Any] = {
        "depth": 2,
        "num_heads": 2,
        "out_hidden_size": 32,
        "num_position_embeddings": 256,
        **sizes,
    }
    vision |= {"deepstack_visual_indexes": [0, 1]}
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    ids = dict(zip(names, tokenizer.convert_tokens_to_ids(list(VISION)), strict=True))
    torch.manual_seed(1)
    return Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config=text, vision_config=vision, **ids))


def call(action: str) -> str:
    arguments = json.dumps({"name": "act", "arguments": {"action": action}})
    return f"<tool_call>\n{arguments}\n</tool_call><|im_end|>"


@pytest.mark.slow
def test_a_vision_model_is_trained_by_trl_on_the_images_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step of TRL's trainer. Its loss reads the image of every observation; one of two members wins."""
    import torch
    from trl import GRPOConfig, GRPOTrainer

    from agentgym_trl import make_dataset, make_tool_environment

    processor = make_processor()
    model = make_vision_model(processor.tokenizer)
    rows = make_dataset(SeenEnv(), 1, groups=["small"])
    config = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=2000,
        learning_rate=1e-2,
        beta=0.0,
        report_to=[],
        save_strategy="no",
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    factory = make_tool_environment(SEEN)
    trainer = GRPOTrainer(
        model, environment_factory=factory, train_dataset=rows, args=config, processing_class=processor
    )
    shown: list[list[list[int]]] = []

    def generate(prompt_ids: Any, images: Any, *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        """One member counts to the end, the other gives up; both stop then."""
        shown.append([[image.getpixel((0, 0))[0] for image in own] for own in images])
        texts = [processor.tokenizer.decode(ids) for ids in prompt_ids]
        done = ["The episode is over." in text for text in texts]
        acts = [call("up" if len(texts) == 1 or number == 0 else "give up") for number in range(len(texts))]
        answers = ["bye<|im_end|>" if over else act for over, act in zip(done, acts, strict=True)]
        return [processor.tokenizer.encode(answer) for answer in answers], None

    monkeypatch.setattr(trainer, "_generate_single_turn", generate)
    read: list[int] = []
    forward = model.forward

    def recording(*args: Any, image_grid_thw: Any = None, **kwargs: Any) -> Any:
        read.append(len(image_grid_thw))
        return forward(*args, image_grid_thw=image_grid_thw, **kwargs)

    monkeypatch.setattr(model, "forward", recording)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    trainer.train()
    target = int(rows[0]["task"].partition("/")[2])
    assert shown[0] == [[0], [0]] and shown[1] == [[0, 40], [0, 40]] and shown[2] == [[0, 40, 80]]
    assert len(shown) == target + 1 and sum(read) == (target + 1) + 2, "an image for each observation of both members"
    (logged,) = [row for row in trainer.state.log_history if "rewards/Seen/mean" in row]
    assert logged["rewards/Seen/mean"] == pytest.approx(0.5) and logged["tools/failure_frequency"] == 0
    changed = {name for name, weight in model.named_parameters() if not torch.equal(before[name], weight)}
    assert any("visual" in name for name in changed), "the gradient reaches the tower that reads images"
