"""The device of a model for evaluation, and of its inputs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentgym_envs.rollout import Sampling
from agentgym_trl import models
from agentgym_trl.engines import HFEngine

META = torch.device("meta")  # a device other than the CPU that every machine has


@pytest.mark.parametrize(("there", "expected"), [(True, META), (False, torch.device("cpu"))])
def test_the_best_device_is_an_accelerator_if_there_is_one(
    there: bool, expected: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: META)
    assert models.best_device() == expected


def test_a_model_is_put_on_the_best_device(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "best_device", lambda: META)
    engine, _ = models.load_engine(str(model_path))
    assert {weight.device for weight in engine.model.parameters()} == {META}


class Recorder:
    """A model on another device that answers with its end token and records the devices of its inputs."""

    device = META

    def __init__(self, end: int) -> None:
        self._end, self.seen = end, dict[str, torch.device]()

    def eval(self) -> Recorder:
        return self

    def generate(self, *, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> torch.Tensor:
        self.seen |= {"ids": input_ids.device, "mask": attention_mask.device}
        return torch.full((len(input_ids), input_ids.size(1) + 1), self._end)

    def forward(self, ids: torch.Tensor) -> None: ...

    def __call__(self, ids: torch.Tensor) -> Any:
        self.seen["scored"] = ids.device
        return SimpleNamespace(logits=torch.zeros(1, ids.size(1), 8))


def test_the_inputs_of_a_model_are_on_its_device() -> None:
    model = Recorder(end=3)
    engine = HFEngine(model, SimpleNamespace(pad_token_id=0), logprobs=True)
    found = asyncio.run(engine.generate([1, 2], Sampling(4, 1.0, stop_ids=(3,))))
    assert model.seen == {"ids": META, "mask": META, "scored": META}
    assert (found.ids, found.finish) == ([3], "stop")
    assert found.logprobs == pytest.approx([-torch.tensor(8.0).log().item()])
