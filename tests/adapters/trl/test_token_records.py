"""The recorded tokens of a run are those that it trained on."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.rollout.token_file import TokenFile, TokenRecord, tokens_path
from agentgym_envs.trajectory import line_mark
from tests.adapters.trl.small import Spy, first_batch, make_trainer


class Likely(Spy):
    """Returns log-probabilities like vLLM's generation: minus the id of the token, in thousandths."""

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        ids, _ = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        return ids, [[likely(token) for token in row] for row in ids]


@torch.no_grad()
def own_logprobs(model: Any, segment: Any) -> list[float]:
    """Those of the model in one pass, 0 where the mask is 0."""
    logits = model(torch.tensor([segment.prompt_ids + segment.ids])).logits[0, len(segment.prompt_ids) - 1 : -1]
    scores = logits.log_softmax(-1).gather(1, torch.tensor(segment.ids)[:, None])[:, 0]
    return (scores * torch.tensor(segment.mask)).tolist()


def likely(token: int) -> float:
    return -token / 1000 - 0.001


@pytest.mark.train
@pytest.mark.parametrize("trainer, reuse", [(Spy, True), (Spy, False), (Likely, True)])
def test_the_recorded_tokens_are_the_trained_ones(
    trainer: type[Spy], reuse: bool, tokenizer: Any, tmp_path: Path
) -> None:
    run = make_trainer(tmp_path, tokenizer, trainer=trainer, record_tokens=True, reuse_kv_cache=reuse)
    batch = first_batch(run)
    records = defaultdict[str, list[Any]](list)  # by mark and order, as several episodes may have equal texts
    for line in tokens_path(tmp_path / "trajectories" / "step-0.jsonl").read_text().splitlines():
        row = json.loads(line)
        records[row["of"]].append(row["segments"])
    for number, episode in enumerate(run.rollout.last):
        mark = line_mark(episode.trajectory.to_json().encode())
        (segment,) = (TokenRecord.from_json(fields, 2) for fields in records[mark].pop(0))
        assert segment.prompt_ids == episode.prompt_ids and segment.ids == episode.ids
        assert segment.mask == episode.assistant_mask and segment.rewards == episode.rewards
        assert "".join(segment.pieces) == tokenizer.decode(segment.ids, skip_special_tokens=False)
        trained = batch["completion_mask"][number] * batch["tool_mask"][number]
        assert trained.tolist()[: len(segment.mask)] == segment.mask
        if trainer is Likely:
            expected = [likely(token) * on for token, on in zip(segment.ids, segment.mask, strict=True)]
            assert segment.logprobs == pytest.approx(expected)
        elif reuse:
            assert segment.logprobs == pytest.approx(own_logprobs(run.model, segment), abs=1e-4)
        else:
            assert segment.logprobs is None, "transformers' generation gives none"
    assert number == 7 and not any(records.values())


@pytest.mark.train
def test_the_tokens_of_a_repeated_step_are_separate(tokenizer: Any, tmp_path: Path) -> None:
    for _ in range(2):
        first_batch(make_trainer(tmp_path, tokenizer, record_tokens=True))
    path = tmp_path / "trajectories" / "step-0.jsonl"
    for one in (path, path.with_name("step-0.replaced-1.jsonl")):
        lines = one.read_bytes().splitlines()
        assert len(lines) == 8 == len(tokens_path(one).read_bytes().splitlines())
        assert all(TokenFile(one).read(line_mark(line)) for line in lines)


@pytest.mark.train
def test_tokens_are_not_recorded_by_default(tokenizer: Any, tmp_path: Path) -> None:
    first_batch(make_trainer(tmp_path, tokenizer))
    assert [path.name for path in (tmp_path / "trajectories").iterdir()] == ["step-0.jsonl"]
