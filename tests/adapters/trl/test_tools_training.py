"""Training with native tools: the tokens of TRL's batch, demonstrations, and the option `--tools`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.errors import TemplateError
from agentgym_envs.grammar import ToolCall, ToolsGrammar
from agentgym_envs.rollout import Generation
from agentgym_trl.demonstrations import oracle_demonstrations
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.models import make_codec
from agentgym_trl.sft import sft_dataset
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import DEPTH, ENV, ScoredCraft, first_batch, make_trainer
from tests.adapters.trl.test_cli import SMALL, agentgym, refused, train
from tests.graded import KWARGS
from tests.rollout.families import FAMILIES, trl_template

__all__ = ["agentgym", "train"]
pytestmark = pytest.mark.train
TEMPLATE = (  # the tiny model's own, with tools
    "{% for m in messages %}<|{{ 'user' if m.role == 'tool' else m.role }}|>{% if loop.first and tools %}"
    "{{ tools | tojson }}{% endif %}{% if m.role == 'tool' %}<result>{{ m.content }}</result>{% else %}{{ m.content }}"
    "{% endif %}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)  # fmt: skip


def tools_craft() -> ScoredCraft:
    return ScoredCraft(grammar="tools")


def family(template: str) -> Any:
    tokenizer = FAMILIES["qwen3-training"].tokenizer()
    tokenizer.chat_template = trl_template(template)
    return tokenizer


@pytest.mark.parametrize("template", ["qwen2_5", "qwen3"])
def test_results_of_calls_are_masked_and_in_the_role_tool(
    template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A thinking model as it is shipped keeps its thoughts between calls, so that an episode has one context."""
    tokenizer = family(template)
    thought = "<think>\nhm\n</think>\n\n" if template == "qwen3" else ""
    words = thought + str(ToolCall("", "act", {"action": "look"}))
    answer = [*tokenizer.encode(words), tokenizer.eos_token_id]

    def answers(engine: TrainerEngine, prompts: Any, samplings: Any) -> list[Generation]:
        return [Generation(answer, "stop") for _ in prompts]

    monkeypatch.setattr(TrainerEngine, "generate_batch", answers)
    options: dict[str, Any] = {"max_turns": "3", "max_turn_tokens": 200, "max_completion_length": 2000}
    trainer = make_trainer(tmp_path, tokenizer, tools_craft, trainer=AgentTrainer, **options)
    batch = first_batch(trainer)
    assert "contexts" not in batch
    for row, episode in enumerate(trainer.rollout.last):
        assert '"name": "act"' in tokenizer.decode(episode.prompt_ids)
        mask = (batch["tool_mask"] * batch["completion_mask"])[row].bool()
        ids = batch["completion_ids"][row]
        assert ids[mask].tolist() == answer * len(episode.turn_spans)
        shown = tokenizer.decode(ids[~mask & batch["completion_mask"][row].bool()])
        assert shown.count("user\n<tool_response>\n") == len(episode.turn_spans) - 1 == 2
    trainer.train()


def test_demonstrations_call_tools_in_the_format_of_the_template() -> None:
    shown = oracle_demonstrations(lambda: gym.make(ENV, grammar="tools", **KWARGS), 2, groups=DEPTH)
    tokenizer = replace(FAMILIES["llama-3"], template=trl_template("llama3_1")).tokenizer()
    (row, _) = sft_dataset(shown, make_codec(tokenizer))
    labels = [token for token in row["labels"] if token >= 0]
    assert tokenizer.decode(labels).startswith('{"name": "act", "parameters": {"action": "')
    assert "<|start_header_id|>ipython" in tokenizer.decode(row["input_ids"]) or len(shown[0].turns) == 1


def test_a_template_without_tools_is_refused_before_training(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="the chat template cannot be used with native tools"):
        make_trainer(tmp_path, tokenizer, tools_craft)


def test_the_option_selects_native_tools(train: Any, tmp_path: Path) -> None:
    refused(train("grpo", "--tools"), "the chat template cannot be used with native tools", "grammar tool_call")
    kwargs = json.dumps({**KWARGS, "grammar": "react"})
    refused(train("grpo", "--tools", "--env-kwargs", kwargs), "--tools selects the grammar 'tools'", "'react'")
    (tmp_path / "tools.jinja").write_text(TEMPLATE)
    done = train("grpo", "--tools", "--chat-template", tmp_path / "tools.jinja", "--max_steps", 1)
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "out" / "run.json").read_text())["tools"] is True
    first = json.loads((tmp_path / "out" / "trajectories" / "step-0.jsonl").read_text().splitlines()[0])
    assert first["env_kwargs"]["grammar"] == "tools" and first["meta"]["tools"] == ToolsGrammar().tools
    again = train("grpo", "--chat-template", tmp_path / "tools.jinja", "--resume")
    refused(again, "holds another run: its tools is")


def test_demonstrations_of_the_oracle_call_tools(agentgym: Any, model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "tools.jinja").write_text(TEMPLATE)
    play = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH, "--tasks", 4]
    words = [
        "--chat_template_path",
        tmp_path / "tools.jinja",
        "--tools",
        *SMALL,
        "--max_steps",
        1,
        "--model",
        model_path,
    ]
    assert agentgym("train", "sft", *play, *words, "--out", "a").code == 0
    refused(
        agentgym("train", "sft", *play, *words, "--out", "b", "--chat_template_path", tmp_path / "x"), "cannot be read"
    )
