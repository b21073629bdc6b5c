"""bfloat16 only where the machine supports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentgym_trl import config


@pytest.mark.parametrize("supported", [True, False])
def test_bfloat16_is_the_default_where_the_machine_supports_it(
    supported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "is_torch_bf16_gpu_available", lambda: supported)
    monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: supported)
    made = config.AgentConfig(output_dir=str(tmp_path), report_to="none")
    assert made.bf16 is supported
    assert config.AgentConfig(output_dir=str(tmp_path), report_to="none", bf16=False).bf16 is False
    assert config.AgentConfig(output_dir=str(tmp_path), report_to="none", use_cpu=True).bf16 is False
    assert config.AgentConfig(output_dir=str(tmp_path), report_to="none", fp16=True).bf16 is False


def test_bfloat16_can_be_asked_for_on_a_cpu(tmp_path: Path) -> None:
    assert config.AgentConfig(output_dir=str(tmp_path), report_to="none", use_cpu=True, bf16=True).bf16 is True
