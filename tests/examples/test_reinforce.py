"""The REINFORCE loop in plain PyTorch."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("minigrid")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reinforce() -> Any:
    return importlib.import_module("examples.reinforce")


def test_the_script_runs(reinforce: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["reinforce.py", "--steps", "2", "--batch", "4", "--warm", "32"])
    reinforce.main()
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["random play", "step 1", "step 2"]


def test_a_step_makes_better_answers_more_likely(reinforce: Any) -> None:
    """Two episodes with the same start and different answers: only the sampled tokens differ."""
    from agentgym_envs.rollout import (
        ChatCodec,
        EpisodeSpec,
        Limits,
        ReplayPolicy,
        TokenTrajectory,
        encode_trajectory,
        play_many_text,
        run_sync,
    )
    from agentgym_trl.tiny import make_model, make_tokenizer

    codec = ChatCodec(make_tokenizer(["turn left turn right"]))
    model = make_model(codec.tokenizer, hidden_size=32, layers=1)
    good, bad = (
        encode_trajectory(
            run_sync(play_many_text([EpisodeSpec(seed=0)], reinforce.MAKE, policy, limits=Limits(1)))[0], codec
        )
        for policy in (lambda: ReplayPolicy(["turn left"]), lambda: ReplayPolicy(["turn right"]))
    )

    def advantage() -> float:
        with torch.no_grad():
            return _logprob(model, good) - _logprob(model, bad)

    def _logprob(model: Any, one: TokenTrajectory) -> float:
        logits = model(input_ids=torch.tensor([one.prompt_ids + one.ids])).logits[0, len(one.prompt_ids) - 1 : -1]
        return float(logits.log_softmax(-1).gather(1, torch.tensor(one.ids)[:, None]).sum())

    before = advantage()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reinforce.step(model, optimizer, [good, bad], torch.tensor([1.0, -1.0]))
    assert advantage() > before + 0.01
