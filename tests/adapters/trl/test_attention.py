"""Generation and training run without cuDNN's attention, and leave torch's setting as it was."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentgym_envs.rollout import Sampling
from agentgym_trl.attention import without_cudnn_attention
from agentgym_trl.callbacks import run_training
from agentgym_trl.engines import HFEngine, TrainerEngine

enabled = torch.backends.cuda.cudnn_sdp_enabled


@pytest.fixture(autouse=True)
def before() -> Any:
    setting = enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cuda.enable_cudnn_sdp(setting)


def test_the_setting_returns_after_an_error() -> None:
    with pytest.raises(ValueError), without_cudnn_attention():
        assert not enabled()
        raise ValueError
    assert enabled()


def test_the_trainers_generation_is_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def generate(prompts: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        seen.append(enabled())
        return [[1] for _ in prompts], None

    trainer = SimpleNamespace(
        use_vllm=True,
        accelerator=SimpleNamespace(process_index=0),
        eos_token_ids=[1],
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        vllm_generation=SimpleNamespace(max_completion_length=9, generation_kwargs={}),
        _generate_single_turn=generate,
    )
    monkeypatch.setattr("agentgym_trl.engines._model_to_cache", lambda trainer: None)
    monkeypatch.setattr("agentgym_trl.engines.generates_together", lambda trainer: False)
    engine = TrainerEngine(trainer)
    engine.generate_batch([[5]], [Sampling(4)])
    assert seen == [False] and enabled()


def test_evaluation_is_without_it() -> None:
    seen = []

    class Model:
        device = "cpu"

        def eval(self) -> "Model":
            return self

        def generate(self, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
            seen.append(enabled())
            return torch.cat([input_ids, input_ids], 1)

    HFEngine(Model(), SimpleNamespace(pad_token_id=0)).generate_batch([[5, 6]], [Sampling(4)])
    assert seen == [False] and enabled()


def test_training_is_without_it(tmp_path: Any) -> None:
    seen = []
    trainer = SimpleNamespace(
        args=SimpleNamespace(output_dir=str(tmp_path)),
        remove_callback=lambda _: None,
        add_callback=lambda _: None,
        train=lambda **_: seen.append(enabled()),
        save_model=lambda _: None,
    )
    assert run_training(trainer, "test")
    assert seen == [False] and enabled()
