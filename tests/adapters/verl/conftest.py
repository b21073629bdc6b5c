"""These tests need verl, but neither a network nor a GPU.

`import verl` takes ten seconds of CPU and changes the process. So a fixture imports it, not the collection of tests,
and restores what it changed.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rollout.families import FAMILIES

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")


@pytest.fixture(scope="session")
def stub() -> Any:
    """The module `stub`, which imports verl."""
    if importlib.util.find_spec("verl") is None:
        pytest.skip("verl is not installed")
    with _put_back(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # verl warns about every engine that is not installed
        return importlib.import_module("tests.adapters.verl.stub")


@pytest.fixture(scope="session")
def base_config() -> Any:
    """verl's own configuration, as `main_ppo` composes it."""
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    from hydra import compose, initialize_config_dir

    folder = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        return compose("ppo_trainer")


@pytest.fixture(scope="module")
def parsed_once() -> Iterator[None]:
    """Parse each of verl's forty YAML files once, not in every composition: the parser is slow."""
    from omegaconf import OmegaConf

    known: dict[str, Any] = {}

    def load(file: Any) -> Any:
        text = file.read() if hasattr(file, "read") else Path(file).read_text(encoding="utf-8")
        if text not in known:
            known[text] = OmegaConf.to_container(parse(io.StringIO(text)))
        return OmegaConf.create(known[text])

    with pytest.MonkeyPatch.context() as patch:
        parse = OmegaConf.load
        patch.setattr(OmegaConf, "load", staticmethod(load))
        yield


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Qwen's chat template and special tokens; every byte is a token, and "up" is one."""
    return FAMILIES["qwen2.5"].tokenizer()


@pytest.fixture(autouse=True)
def forget_runners() -> Iterator[None]:
    """Forget the episode runner: a process has one per run, and here every test has its own."""
    yield
    if module := sys.modules.get("agentgym_verl.episode_runner"):
        while module._runners:
            module._runners.popitem()[1][1].close()


@pytest.fixture(scope="session")
def model_path(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a model that verl's worker reads: its tokenizer and its configuration."""
    from transformers import Qwen2Config

    path = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(path)
    config = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096, "architectures": ["Qwen2ForCausalLM"]}
    Qwen2Config(**config).save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def first_worker(stub: Any, base_config: Any, model_path: Path) -> Any:
    return stub.Worker(stub.configured(base_config, model_path), stub.StubServer([]))


@pytest.fixture
def make_worker(stub: Any, base_config: Any, model_path: Path, first_worker: Any) -> Any:
    """Makes verl's worker: `make_worker(script, ..., settings of agentgym, of the rollout)`."""

    def make(*scripts: Any, agentgym: Any = None, server: Any = None, **rollout: Any) -> Any:
        config = stub.configured(base_config, model_path, agentgym, **rollout)
        return first_worker.like(config, server or stub.StubServer(*scripts))

    return make


@pytest.fixture
def answer_in_order(stub: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with a worker and its numbers of groups and members: the scripts go to the members, group by group."""
    from agentgym_verl.episode_runner import EpisodeRunner

    once = EpisodeRunner._once

    async def named(self: Any, engine: Any, spec: Any) -> Any:
        engine._request_id = spec.meta["uid"]
        return await once(self, engine, spec)

    def fix(worker: Any, groups: int, members: int) -> None:
        monkeypatch.setattr(EpisodeRunner, "_once", named)
        worker.server.name(*(f"{group}_{member}" for group in range(groups) for member in range(members)))

    return fix


@contextmanager
def _put_back() -> Iterator[None]:
    environ, hook = dict(os.environ), sys.excepthook
    handlers, level = list(logging.root.handlers), logging.root.level
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environ)
        sys.excepthook = hook
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
