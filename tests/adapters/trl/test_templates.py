"""With the chat templates of public models, supervised training has the mask of reinforcement learning.

The mask of reinforcement learning is recorded by `play` while an engine samples ids. That of supervised training is
made from the text of the recorded trajectory. The templates of Qwen, Llama, Gemma and Phi are those of the installed
TRL, which has them as the models ship them. SmolLM2's is not among them: ours has its structure (ChatML, with a default
system message). The plain one is ours, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import TemplateError
from agentgym_envs.rollout import ChatCodec, TokenTrajectory, encode_trajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.collator import IGNORED, MultiTurnCollator, rows_of
from agentgym_trl.models import make_codec
from tests.rollout.families import FAMILIES, MISTRAL, Family, roll, trl_template
from tests.trying import examples

QWEN, LLAMA, PLAIN, SMOLLM2 = FAMILIES["qwen3-training"], FAMILIES["llama-3"], FAMILIES["with-eos"], FAMILIES["smollm2"]
THOUGHT = "<think>\nI must go.\n</think>\n\n"


class Case(NamedTuple):
    """A tokenizer with its template, the variables of the template, and the beginning of answers."""

    tokenizer: Any
    kwargs: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    thought: str = ""


def like(family: Family, template: str) -> Any:
    """The tokenizer of a family with another of TRL's templates."""
    tokenizer = family.tokenizer()
    tokenizer.chat_template = trl_template(template)
    return tokenizer


def shipped(template: str, *special: str, bos: str = "<s>", eos: str = "</s>") -> Any:
    """A tokenizer for one of TRL's templates, with its special tokens."""
    named = {"bos_token": bos, "eos_token": eos}
    return Family(trl_template(template), (bos, eos, *special), named, ("<think>", "</think>")).tokenizer()


def gemma(template: str) -> Any:
    return shipped(template, "<start_of_turn>", "<end_of_turn>", bos="<bos>", eos="<eos>")


CASES = {
    "Qwen2.5": Case(like(QWEN, "qwen2_5")),
    "Qwen3, thinking": Case(like(QWEN, "qwen3_training"), thought=THOUGHT),
    "Qwen3, not thinking": Case(like(QWEN, "qwen3_training"), {"enable_thinking": False}),
    "Qwen3-Instruct-2507": Case(like(QWEN, "qwen3_instruct_2507")),
    "Qwen3.5, thinking": Case(like(QWEN, "qwen3_5_think_training"), thought=THOUGHT.removeprefix("<think>\n")),
    "Llama-3": Case(like(LLAMA, "llama3")),
    "Llama-3.2": Case(like(LLAMA, "llama3_2")),
    "Gemma": Case(gemma("gemma")),
    "Gemma-3": Case(gemma("gemma3")),
    "Phi-3": Case(shipped("phi3", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")),
    "SmolLM2": Case(SMOLLM2.tokenizer()),
    "Mistral": Case(MISTRAL.tokenizer()),
    "plain": Case(PLAIN.tokenizer()),
}
CODECS = {name: ChatCodec(case.tokenizer, template_kwargs=case.kwargs) for name, case in CASES.items()}
SAYS = ["Go to the door.", "A door. 9 < 10 & ü 門", "A wall.", "Done."]
WORDS = ["up", "go up", "open door 門"]
every_template = pytest.mark.parametrize("name", CASES)


def answers(name: str, thought: str = "", words: list[str] = WORDS) -> list[str]:
    return [(thought or CASES[name].thought) + word for word in words]


def play_and_read(
    name: str, texts: list[list[int]], observations: list[str]
) -> tuple[TokenTrajectory, TokenTrajectory]:
    """The played episode, and the episode that supervised training makes of the recorded text."""
    played = roll(CODECS[name], texts, observations)
    return played, encode_trajectory(Trajectory.from_json(played.trajectory.to_json()), CODECS[name])


def trained_texts(codec: ChatCodec, row: Any) -> list[str]:
    """The texts of the labels, one per run of labels, the end token included."""
    runs: list[list[int]] = [[]]
    for label in row["labels"]:
        if label == IGNORED:
            runs.append([])
        else:
            runs[-1].append(label)
    return [codec.decode(run[:-1]) + str(codec.tokenizer.decode(run[-1:])) for run in runs if run]


@every_template
def test_the_mask_is_that_of_reinforcement_learning(name: str) -> None:
    codec = CODECS[name]
    played, read = play_and_read(name, [codec.encode_answer(text) for text in answers(name)], SAYS)
    assert (read.prompt_ids, read.ids, read.assistant_mask) == (played.prompt_ids, played.ids, played.assistant_mask)
    row = rows_of(read)[0]
    mask = [0] * len(played.prompt_ids) + played.assistant_mask
    assert [int(label != IGNORED) for label in row["labels"]] == mask
    batch = MultiTurnCollator(0)([read])
    assert (batch["labels"][0] != IGNORED).int().tolist() == mask
    assert trained_texts(codec, row) == [text + codec.turn_end for text in answers(name)]


@every_template
def test_the_tokens_are_those_of_the_rendered_conversation(name: str) -> None:
    case, codec = CASES[name], CODECS[name]
    _, read = play_and_read(name, [codec.encode_answer(text) for text in answers(name)], SAYS)
    messages = [*read.trajectory.messages(), {"role": "user", "content": SAYS[-1]}]
    if not codec.system_role:
        messages[1]["content"] = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        del messages[0]
    whole = case.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **case.kwargs)
    ids = rows_of(read)[0]["input_ids"]
    assert ids == case.tokenizer(whole, add_special_tokens=False)["input_ids"][: len(ids)]


@every_template
def test_thoughts_are_kept(name: str) -> None:
    """Also in earlier turns, and with templates without support for thoughts."""
    thought = CASES[name].thought or THOUGHT
    codec, texts = CODECS[name], answers(name, thought)
    played, read = play_and_read(name, [codec.encode_answer(text) for text in texts], SAYS)
    assert read.assistant_mask == played.assistant_mask and read.ids == played.ids
    assert played.trajectory.actions == texts
    assert trained_texts(codec, rows_of(read)[0]) == [text + codec.turn_end for text in texts]
    assert codec.tokenizer.decode(rows_of(read)[0]["input_ids"]).count("I must go.") == len(texts)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@every_template
@examples(20)
@given(words=st.lists(TEXT, min_size=3, max_size=3), observations=st.lists(TEXT, min_size=4, max_size=4))
def test_any_text_has_the_mask_of_reinforcement_learning(name: str, words: list[str], observations: list[str]) -> None:
    codec = CODECS[name]
    played, read = play_and_read(name, [codec.encode_answer(text) for text in answers(name, words=words)], observations)
    assert rows_of(read)[0] == rows_of(played)[0]


@every_template
def test_other_tokens_of_the_same_text_have_the_same_text_in_the_loss(name: str) -> None:
    """A model may sample other tokens for a word than the tokenizer; the trained text is the same."""
    codec = CODECS[name]
    spelled = [[*b"u", *b"p", codec.turn_end_id]] * 3  # "up" is one token
    played, read = play_and_read(name, spelled, SAYS)
    assert read.ids != played.ids
    assert (
        trained_texts(codec, rows_of(read)[0])
        == trained_texts(codec, rows_of(played)[0])
        == ["up" + codec.turn_end] * 3
    )


TRAINING = {"qwen3": "qwen3_training", "qwen3_5_think": "qwen3_5_think_training", "qwen3_6": "qwen3_6_training"}


@pytest.mark.parametrize("template", [*TRAINING, "deepseek_r1_distill"])
def test_a_template_that_drops_thoughts_is_refused_with_a_hint(template: str) -> None:
    tokenizer = shipped(template, "<|im_start|>", "<|im_end|>", "<｜User｜>", "<｜Assistant｜>")
    with pytest.raises(TemplateError, match=r"prefix-preserving.*<family>_training\.jinja \(--chat-template FILE\)"):
        ChatCodec(tokenizer)
    with pytest.raises(TemplateError, match="prefix-preserving"):
        make_codec(tokenizer, template=trl_template(template), keep_thoughts=True)  # the user's own is not replaced


@pytest.mark.parametrize("template", [*TRAINING, "deepseek_r1_distill"])
def test_a_thinking_model_reads_the_text_of_its_template(template: str) -> None:
    codec = make_codec(shipped(template, "<|im_start|>", "<|im_end|>", "<｜User｜>", "<｜Assistant｜>"))
    generated = codec.tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False, add_generation_prompt=True
    )
    thought = THOUGHT.removeprefix("<think>\n") if "<think>" in generated else THOUGHT
    played = roll(codec, [codec.encode_answer(thought + word) for word in WORDS], SAYS)
    contexts = played.contexts()
    assert codec.rewrites and len(contexts) == len(WORDS)
    for turn, context in enumerate(contexts):
        messages = played.trajectory.messages()[: 2 * turn + 2]
        text = codec.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert context.prompt_ids == codec.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert codec.decode(context.ids) == thought + WORDS[turn]


@pytest.mark.parametrize(("template", "training"), TRAINING.items())
def test_its_training_template_is_used(template: str, training: str) -> None:
    codec = make_codec(like(QWEN, template), keep_thoughts=True)
    assert codec.tokenizer.chat_template == trl_template(training)
    ChatCodec(like(QWEN, training))
