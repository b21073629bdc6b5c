"""TRL's own SFTTrainer reads an exported data set, and trains on the same tokens as `agentgym train sft`."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import datasets
import pytest
from trl import SFTConfig, SFTTrainer

from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.formats import FORMATS, ExportCounts, ExportOptions
from agentgym_envs.rollout import encode_trajectory
from agentgym_trl.collator import IGNORED, rows_of
from agentgym_trl.models import make_codec
from tests.adapters.trl.small import demonstrations, make_small_model, settings

MARKED = (  # the template of the small models, with the marks from which TRL makes a mask
    "{% for message in messages %}<|{{ message['role'] }}|>{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
    "{% else %}{{ message['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.train
def test_trl_trains_on_the_tokens_and_the_mask_of_the_episodes(tokenizer: Any, tmp_path: Path) -> None:
    marked = copy(tokenizer)
    marked.chat_template = MARKED
    episodes = [ExportEpisode(shown) for shown in demonstrations()]
    FORMATS["hf-dataset"].load()(episodes, tmp_path / "out", ExportOptions(), ExportCounts())
    loaded = datasets.load_dataset(str(tmp_path / "out"), "episodes", split="train", cache_dir=str(tmp_path / "cache"))
    known = {k: v for k, v in settings(tmp_path).items() if k not in ("max_completion_length", "num_generations")}
    config = SFTConfig(**known, max_length=None, assistant_only_loss=True)
    trainer = SFTTrainer(make_small_model(tokenizer), args=config, train_dataset=loaded, processing_class=marked)
    codec = make_codec(tokenizer)
    for row, one in zip(trainer.train_dataset, episodes, strict=True):
        (wanted,) = rows_of(encode_trajectory(one.trajectory, codec))
        assert (list(row["input_ids"]), list(row["labels"])) == (wanted["input_ids"], wanted["labels"])
        assert IGNORED in wanted["labels"]
