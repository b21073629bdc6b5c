"""These tests need TRL, but neither a network nor a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.startup import without_optional_packages

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")

with without_optional_packages():
    pytest.importorskip("trl")

    import torch

    from agentgym_trl.tiny import make_tokenizer
    from tests.adapters.trl.small import corpus, save_model


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return make_tokenizer(corpus())


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a small untrained model."""
    return save_model(tmp_path_factory.mktemp("model") / "small")
