import pickle

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.spaces import Utf8Text
from tests.toy import CountEnv


@pytest.mark.parametrize("text", ["", "a", "You see: a {chest}, 3 planks.\n", "漢字🙂", "\x00", "x" * 50])
def test_the_space_contains_text_up_to_its_length(text: str) -> None:
    assert text in Utf8Text(50)


@pytest.mark.parametrize("other", ["x" * 51, "\ud800", "ok \udfff", b"bytes", None, 3, ["a"]])
def test_long_texts_and_other_types_are_not_members(other: object) -> None:
    assert other not in Utf8Text(50)


@given(st.text(st.characters(codec=None)))
def test_the_space_contains_exactly_the_encodable_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        assert text not in Utf8Text(1000)
    else:
        assert text in Utf8Text(1000)


def test_length_is_counted_in_characters() -> None:
    assert "🙂🙂" in Utf8Text(2)
    assert "🙂🙂🙂" not in Utf8Text(2)


@pytest.mark.parametrize("length", [0, -1])
def test_the_length_must_be_positive(length: int) -> None:
    with pytest.raises(ValueError, match=f"max_length >= 1, got {length}"):
        Utf8Text(length)


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_samples_are_members_and_follow_the_seed(seed: int, length: int) -> None:
    one, two = Utf8Text(length, seed=seed), Utf8Text(length, seed=seed)
    samples = [one.sample() for _ in range(5)]
    assert all(type(text) is str and text in one for text in samples)
    assert samples == [two.sample() for _ in range(5)]


def test_samples_vary() -> None:
    space = Utf8Text(100, seed=0)
    assert len({space.sample() for _ in range(20)}) == 20


def test_samples_have_any_length_up_to_the_maximum() -> None:
    space = Utf8Text(3, seed=0)
    assert {len(space.sample()) for _ in range(50)} == {1, 2, 3}


def test_sample_refuses_a_mask() -> None:
    with pytest.raises(ValueError, match="neither a mask nor a probability"):
        Utf8Text(3).sample(mask="abc")  # type: ignore[arg-type]


def test_equal_spaces_have_equal_hash_and_repr() -> None:
    assert Utf8Text(5) == Utf8Text(5, seed=1)
    assert hash(Utf8Text(5)) == hash(Utf8Text(5))
    assert Utf8Text(5) != Utf8Text(6)
    assert Utf8Text(5) != gym.spaces.Text(5)
    assert repr(Utf8Text(5)) == "Utf8Text(5)"


def test_json_and_pickle_preserve_samples_and_space() -> None:
    space = Utf8Text(9, seed=4)
    samples = [space.sample(), "漢\n"]
    assert space.from_jsonable(space.to_jsonable(samples)) == samples
    assert pickle.loads(pickle.dumps(space)) == space
    assert not space.is_np_flattenable


def test_text_environments_run_in_a_gymnasium_vector() -> None:
    envs = gym.vector.SyncVectorEnv([CountEnv, CountEnv])
    observations, infos = envs.reset(seed=3, options={"task": "count/2"})
    assert observations in envs.observation_space
    assert infos["task_id"].tolist() == ["count/2", "count/2"]
    observations, rewards, terminated, *_ = envs.step(["up", "down"])
    assert observations == ("1", "Unknown command: down")
    assert rewards.tolist() == [0.5, 0.0]
    assert not terminated.any()
    envs.close()
