"""Sampled ids are the trained ids, the mask covers exactly them, and all other ids are those of the template."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.rollout import (
    ChatCodec,
    Generation,
    Limits,
    TokenBuilder,
    TokenTrajectory,
    encode_trajectory,
)
from agentgym_envs.rollout.tokens import mask_of_spans, spans_of_mask
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.tiny import make_tokenizer
from tests.rollout.families import FAMILIES, NO_END, UP, Family, roll, spans

SAYS = ["Go to the door.", "A door.", "A wall. 9 < 10 & ü 門", "Done."]
WORDS = ["up", "  go north\n", "open door 門"]
CODECS = {name: ChatCodec(family.tokenizer()) for name, family in FAMILIES.items()}
any_family = pytest.mark.parametrize("name", FAMILIES)


def answers_of(codec: ChatCodec, family: Family) -> list[list[int]]:
    """The words as a model's answers: with a thought if the family has one, then the end token."""
    return [codec.encode_answer(family.thought + word.strip()) for word in WORDS]


def whole_conversation(codec: ChatCodec, trajectory: Trajectory) -> list[int]:
    """The ids of the finished conversation when the tokenizer renders all of it."""
    messages = [*trajectory.messages(), {"role": "user", "content": trajectory.final_observation}]
    if not codec.system_role:
        messages[1]["content"] = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        messages = messages[1:]
    text = codec.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return list(codec.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_the_tiny_template_gives_the_literal_tokens() -> None:
    tokenizer = make_tokenizer(["Count on!", "one two three", "go", "four"] * 20)
    roles = tokenizer.convert_tokens_to_ids(["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"])
    assert roles == [572, 574, 575, 576]
    codec = ChatCodec(tokenizer)
    answers = [
        [314, 572],  # one <|end|>
        [536],  # " two", truncated: no <|end|>
        [281, 281, 572],  # gogo <|end|>
    ]
    tokens = roll(
        codec, answers, ["one two", "go", "four", "four"], instructions="Count on!", rewards=[0.25, 0.0, 0.75]
    )
    assert tokens.prompt_ids == [
        *(574, 256, 503, 0, 572),  # <|system|> Count " on" ! <|end|>
        *(575, 314, 536, 572),  # <|user|> one " two" <|end|>
        576,  # <|assistant|>
    ]
    assert tokens.ids == [
        *(314, 572),  # sampled
        *(575, 281, 572, 576),  # <|user|> go <|end|> <|assistant|>
        536,  # sampled
        *(572, 575, 276, 572, 576),  # the end token that was not sampled, <|user|> four <|end|> <|assistant|>
        *(281, 281, 572),  # sampled
    ]
    assert tokens.assistant_mask == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1]
    assert tokens.turn_spans == ((0, 2), (6, 7), (12, 15))
    assert tokens.rewards == [0, 0.25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.75]
    assert tokens.logprobs == [-0.5, -0.5, 0, 0, 0, 0, -0.5, 0, 0, 0, 0, 0, -0.5, -0.5, -0.5]
    assert tokens.trajectory.actions == ["one", " two", "gogo"]
    assert [turn.info["finish"] for turn in tokens.trajectory.turns] == ["stop", "length", "stop"]
    assert (tokens.trajectory.score, tokens.trajectory.stop_reason) == (1.0, "success")
    recorded = encode_trajectory(tokens.trajectory, codec)
    assert (recorded.ids, recorded.assistant_mask) == (tokens.ids, tokens.assistant_mask)


def test_chatml_gives_the_literal_tokens() -> None:
    start, end, newline = 258, 259, 10  # <|im_start|>, <|im_end|>
    tokens = roll(CODECS["qwen2.5"], [[UP, end], [UP, 33, end]], ["a", "b", "c"], instructions="s")
    system, user, assistant = [*b"system"], [*b"user"], [*b"assistant"]
    assert tokens.prompt_ids == [
        *(start, *system, newline, 115, end, newline),  # s
        *(start, *user, newline, 97, end, newline),  # a
        *(start, *assistant, newline),
    ]
    between = [newline, start, *user, newline, 98, end, newline, start, *assistant, newline]  # b
    assert tokens.ids == [UP, end, *between, UP, 33, end]
    assert tokens.assistant_mask == [1, 1, *[0] * len(between), 1, 1, 1]


def test_llama_3_gives_the_literal_tokens() -> None:
    bos, start, end, eot = 257, 259, 260, 261
    tokens = roll(CODECS["llama-3"], [[UP], [UP, eot]], [" a\n", "b ", "c"], instructions="s")
    assert tokens.prompt_ids == [
        *(bos, start, *b"system", end, 10, 10, 115, eot),  # s
        *(start, *b"user", end, 10, 10, 97, eot),  # a, without the spaces that the template trims away
        *(start, *b"assistant", end, 10, 10),
    ]
    between = [
        eot,
        start,
        *b"user",
        end,
        10,
        10,
        98,
        eot,
        start,
        *b"assistant",
        end,
        10,
        10,
    ]  # the truncated end, then b
    assert tokens.ids == [UP, *between, UP, eot]
    assert tokens.assistant_mask == [1, *[0] * len(between), 1, 1]


def test_a_template_that_shows_no_end_gets_the_end_token() -> None:
    codec = ChatCodec(NO_END.tokenizer())
    eos = 258
    tokens = roll(codec, [[UP, eos], [UP]], ["a", "b", "c"], instructions="s")
    assert tokens.prompt_ids == [*b"System: s\nUser: a\nAssistant: "]
    between = [*b"\nUser: b\nAssistant: "]
    assert tokens.ids == [UP, eos, *between, UP]
    assert tokens.assistant_mask == [1, 1, *[0] * len(between), 1]


@any_family
def test_ids_equal_those_of_the_rendered_conversation(name: str) -> None:
    codec = CODECS[name]
    answers = answers_of(codec, FAMILIES[name])
    tokens = roll(codec, answers, SAYS, rewards=[0.5, 0.25, 0.25])
    assert tokens.trajectory.actions == [FAMILIES[name].thought + word.strip() for word in WORDS]
    whole = whole_conversation(codec, tokens.trajectory)
    ids = tokens.prompt_ids + tokens.ids
    assert ids == whole[: len(ids)]
    assert [run for mask, run in spans(tokens) if mask] == answers


@any_family
def test_the_ids_between_answers_are_those_of_the_template(name: str) -> None:
    codec, family = CODECS[name], FAMILIES[name]
    tokens = roll(codec, answers_of(codec, family), SAYS)
    rendered = codec.tokenizer.decode(whole_conversation(codec, tokens.trajectory))
    texts = [codec.tokenizer.decode(run) for mask, run in spans(tokens) if not mask]
    assert len(texts) == 2
    for text, said, answer, following in zip(texts, SAYS[1:], WORDS, WORDS[1:], strict=False):
        assert text.count(said) == 1
        context = f"{answer.strip()}{codec.turn_end}{text}{family.thought}{following.strip()}"
        assert rendered.count(context) == 1


@any_family
def test_a_truncated_answer_gets_an_end_token_with_mask_0(name: str) -> None:
    codec = CODECS[name]
    whole = roll(codec, [[UP, codec.turn_end_id], [UP, codec.turn_end_id]], SAYS[:3])
    truncated = roll(codec, [[UP], [UP]], SAYS[:3])
    assert truncated.ids == whole.ids[:-1]
    assert truncated.assistant_mask[:2] == [1, 0]
    assert whole.assistant_mask[:2] == [1, 1]
    assert [turn.info["finish"] for turn in truncated.trajectory.turns] == ["length", "length"]


def test_an_answer_that_stops_with_another_token_also_gets_the_end_token() -> None:
    """Otherwise a template whose next header ends an answer would lose that header."""
    codec = CODECS["headers-only"]
    eos, user, assistant = 258, 260, 261
    tokens = roll(codec, [[UP, eos], [UP, user]], ["a", "b", "c"])
    assert tokens.ids == [UP, eos, user, 98, assistant, UP, user]
    assert tokens.assistant_mask == [1, 1, 0, 0, 0, 1, 1]


@any_family
@pytest.mark.parametrize("rewards", [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.125, 0.0, 0.0]])
def test_rewards_are_on_the_last_token_of_their_answer(name: str, rewards: list[float]) -> None:
    codec = CODECS[name]
    tokens = roll(codec, answers_of(codec, FAMILIES[name]), SAYS, rewards=rewards)
    lasts = [i for i, m in enumerate(tokens.assistant_mask) if m and [*tokens.assistant_mask, 0][i + 1] == 0]
    assert [tokens.rewards[i] for i in lasts] == rewards
    assert sum(tokens.rewards) == tokens.trajectory.score == sum(rewards)


ODD = {
    "bytes spelled one by one": [117, 112],  # "up" is the single token 256
    "only the end token": [],
    "special tokens in the middle": [258, UP, 257, 259, UP],
    "a whole forged turn": [259, 10, 258, *b"user\nhi", 259, 10, 258, *b"assistant\n"],
    "half a character": [0xE9, 0x96],
    "bytes that are no text": [0xFF, 0xC0, 0x80],
    "leading and trailing space": [32, 10, UP, 10, 32],
}


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_ids_are_kept_as_sampled(odd: list[int], ended: bool) -> None:
    codec = CODECS["qwen2.5"]
    answer = odd + [259] * ended or [0]
    tokens = roll(codec, [answer, answer], ["a", "b", "c"])
    between = codec.encode_observation("b")
    end = [] if answer[-1] == 259 else [259]
    assert tokens.ids == [*answer, *end, *between, *answer]
    assert tokens.assistant_mask == [*[1] * len(answer), *[0] * len(end + between), *[1] * len(answer)]


def test_the_action_is_the_text_of_the_sampled_ids() -> None:
    codec = CODECS["qwen2.5"]
    tokens = roll(codec, [[117, 112, 259], [*b" up\n", 258, 259]], ["a", "b", "c"])
    assert tokens.trajectory.actions == ["up", " up\n"]


ids = st.integers(0, 259)


@st.composite
def episodes(draw: st.DrawFn) -> dict[str, Any]:
    turns = draw(st.integers(1, 5))
    return {
        "answers": draw(st.lists(st.lists(ids, min_size=1, max_size=12), min_size=turns, max_size=turns)),
        "says": draw(st.lists(st.text(max_size=8), min_size=turns + 1, max_size=turns + 1)),
        "limits": Limits(draw(st.integers(1, 6)), draw(st.integers(1, 200)), draw(st.integers(1, 12))),
    }


@given(episodes())
def test_any_episode_has_consistent_masks_and_rewards(episode: dict[str, Any]) -> None:
    codec, limits = CODECS["qwen2.5"], episode["limits"]
    tokens = roll(codec, **episode)
    turns = len(tokens.trajectory.turns)
    answers = [run for mask, run in spans(tokens) if mask]
    assert len(tokens.ids) == len(tokens.assistant_mask) == len(tokens.rewards) == len(tokens.logprobs or []) > 0
    assert tokens.assistant_mask[0] == tokens.assistant_mask[-1] == 1
    assert len(tokens.ids) <= limits.max_tokens
    assert 1 <= len(answers) == turns <= limits.max_turns
    for answer, said in zip(answers, episode["answers"], strict=False):
        assert 1 <= len(answer) <= limits.max_turn_tokens
        assert answer == said[: len(answer)]
    assert [set(run) for mask, run in spans_of(tokens.logprobs or [], tokens.assistant_mask)] == [
        {-0.5} if mask else {0.0} for mask, _ in spans(tokens)
    ]
    check_stop(tokens, episode, codec)


def spans_of(values: list[float], mask: list[int]) -> list[tuple[int, list[float]]]:
    runs: list[tuple[int, list[float]]] = []
    for value, m in zip(values, mask, strict=True):
        if not runs or runs[-1][0] != m:
            runs.append((m, []))
        runs[-1][1].append(value)
    return runs


def check_stop(tokens: TokenTrajectory, episode: dict[str, Any], codec: ChatCodec) -> None:
    """The stop reason is the environment's if it ended the episode, otherwise the first limit that was reached."""
    limits, turns = episode["limits"], len(tokens.trajectory.turns)
    reason = tokens.trajectory.stop_reason
    if turns == len(episode["answers"]):
        assert reason == "failure"
    elif turns == limits.max_turns:
        assert reason == "turn_limit"
    else:
        assert reason == "token_limit"
        next_between = codec.encode_observation(tokens.trajectory.final_observation)
        end = tokens.ids[-1] != codec.turn_end_id
        assert len(tokens.ids) + end + len(next_between) + 1 > limits.max_tokens


@given(st.lists(st.text(max_size=12), min_size=2, max_size=4), st.sampled_from(sorted(FAMILIES)))
def test_any_observation_is_rendered_as_the_template_does(says: list[str], name: str) -> None:
    codec = CODECS[name]
    answers = [codec.encode_answer(FAMILIES[name].thought + "up")] * (len(says) - 1)
    tokens = roll(codec, answers, says, instructions="Be brief.")
    ids = tokens.prompt_ids + tokens.ids
    assert ids == whole_conversation(codec, tokens.trajectory)[: len(ids)]


@any_family
def test_a_demonstration_is_encoded_like_a_rollout(name: str) -> None:
    codec = CODECS[name]
    played = roll(codec, answers_of(codec, FAMILIES[name]), SAYS, rewards=[0.5, 0.25, 0.25])
    encoded = encode_trajectory(played.trajectory, codec)
    assert encoded.logprobs is None
    for field in ("prompt_ids", "ids", "assistant_mask", "rewards", "turn_spans", "trajectory"):
        assert getattr(encoded, field) == getattr(played, field)


def test_a_demonstration_is_equal_after_writing_and_reading() -> None:
    codec = CODECS["qwen2.5"]
    trajectory = roll(codec, answers_of(codec, FAMILIES["qwen2.5"]), SAYS).trajectory
    assert encode_trajectory(Trajectory.from_json(trajectory.to_json()), codec) == encode_trajectory(trajectory, codec)


def test_spelled_special_tokens_do_not_end_a_demonstration() -> None:
    codec = CODECS["qwen2.5"]
    ids = codec.encode_answer("say <|im_end|> now")
    assert ids.count(259) == 1 and ids[-1] == 259
    assert codec.decode(ids) == "say <|im_end|> now"


def test_inconsistent_records_are_refused() -> None:
    trajectory = roll(CODECS["qwen2.5"], [[UP]], ["a", "b"]).trajectory
    with pytest.raises(ValueError, match="differ in length"):
        TokenTrajectory(trajectory, [1], [2, 3], [1], [0.0, 0.0], ())
    with pytest.raises(ValueError, match="differ in length"):
        TokenTrajectory(trajectory, [1], [2], [1], [0.0], ((0, 1),), [])
    with pytest.raises(ValueError, match="must belong to an answer"):
        TokenTrajectory(trajectory, [1], [2, 3], [1, 0], [0.0, 0.0], ((0, 1),))
    with pytest.raises(ValueError, match="reward may only lie"):
        TokenTrajectory(trajectory, [1], [2, 3], [0, 1], [1.0, 0.0], ((1, 2),))


@pytest.mark.parametrize(
    "turns", [(), ((0, 2),), ((0, 1), (1, 3)), ((2, 3), (0, 1)), ((0, 1), (2, 2), (2, 3)), ((0, 4),)]
)
def test_spans_that_do_not_match_the_mask_are_refused(turns: tuple[tuple[int, int], ...]) -> None:
    trajectory = roll(CODECS["qwen2.5"], [[UP]], ["a", "b"]).trajectory
    with pytest.raises(ValueError, match=r"the mask must be 1 exactly|turn spans must be in order"):
        TokenTrajectory(trajectory, [1], [2, 3, 4], [1, 0, 1], [0.0] * 3, turns)
    assert TokenTrajectory(trajectory, [1], [2, 3, 4], [1, 0, 1], [0.0] * 3, ((0, 1), (2, 3)))


@given(mask=st.lists(st.integers(0, 1), max_size=12))
def test_spans_and_masks_convert_into_each_other(mask: list[int]) -> None:
    assert mask_of_spans(list(spans_of_mask(mask)), len(mask)) == mask


def test_one_answer_without_logprobs_drops_all_logprobs() -> None:
    codec = CODECS["qwen2.5"]
    builder = TokenBuilder(codec, [1])
    builder.add_answer(Generation([UP, 259], "stop", [-1.0, -2.0]))
    builder.add_between(builder.between("b"))
    assert builder.logprobs[:2] == [-1.0, -2.0] and not any(builder.logprobs[2:])
    builder.add_answer(Generation([UP, 259], "stop"))
    trajectory = roll(codec, [[UP]], ["a", "b"]).trajectory
    assert builder.build(trajectory).logprobs is None
