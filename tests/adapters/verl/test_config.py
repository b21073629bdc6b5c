"""The packaged configurations are complete, consistent, and accepted by verl in every combination."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.registration import env_ids
from agentgym_envs.rollout.mixture import gym_make
from agentgym_verl.cli.overrides import CONFIG_DIR, choices, compose_config, override, overrides
from agentgym_verl.settings import EpisodeSettings, read_settings
from tests.trying import examples

# Rounds, every, batch, n, mini-batch, PPO epochs, epochs, prompt and response length, tokens of an answer: those of
# AgentGym-RL's scripts (examples/train/{AgentGym-RL,ScalingInter-RL}/*.sh).
PAPER = {
    ("textcraft", "fixed"): ("30", None, 32, 8, 8, 2, 30, 512, 10240, 512),
    ("textcraft", "scaling"): ("10,20,30", 100, 32, 8, 8, 2, 30, 512, 10240, 512),
    ("babyai", "fixed"): ("20", None, 16, 8, 8, 1, 10, 1024, 4096, 200),
    ("babyai", "scaling"): ("6,13,20", 100, 32, 4, 8, 2, 20, 512, 8192, 512),
    ("sciworld", "fixed"): ("20", None, 16, 8, 8, 1, 10, 1024, 4096, 200),
    ("sciworld", "scaling"): ("10,20,30", 100, 16, 8, 8, 1, 10, 1024, 8192, 200),
    ("search", "fixed"): ("5", None, 32, 4, 8, 2, 20, 1024, 8192, 512),
    ("search", "scaling"): ("5,8,10", 100, 32, 4, 8, 2, 20, 1024, 8192, 512),
    ("webarena", "fixed"): ("15", None, 32, 4, 4, 2, 25, 750, 14098, 512),
    ("webarena", "scaling"): ("8,12,15", 80, 32, 4, 4, 2, 25, 750, 14098, 512),
}
NEEDED = ["actor_rollout_ref.model.path=model", "data.train_files=train.parquet", "data.val_files=val.parquet"]
GROUPS: dict[str, list[tuple[str, ...]]] = {
    "settings": [(), *((f"scenario={s}", f"horizon={h}") for s, h in PAPER)],
    **{
        group: [(f"{group}={name}",) for name in choices(group)]
        for group in ("algorithm", "hardware", "engine", "mode")
    },
}


def read(name: str) -> Any:
    return yaml.safe_load((Path(CONFIG_DIR) / f"{name}.yaml").read_text(encoding="utf-8"))


def pairwise(groups: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Combinations with every pair of choices of two groups."""

    def pairs(one: tuple[Any, ...]) -> set[Any]:
        return set(itertools.combinations(enumerate(one), 2))

    every = list(itertools.product(*groups))
    left = set().union(*map(pairs, every))
    while left:
        best = max(every, key=lambda one: len(pairs(one) & left))
        left -= pairs(best)
        yield best


COMBINATIONS = list(pairwise(list(GROUPS.values())))


def core(combinations: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Combinations with every choice of algorithm, hardware, engine and mode."""
    left = {choice for one in combinations for choice in one[1:]}
    for one in combinations:
        if left & set(one):
            left -= set(one)
            yield one


CORE = set(core(COMBINATIONS))


def test_all_config_groups_have_their_files() -> None:
    assert choices("scenario") == ["babyai", "sciworld", "search", "textcraft", "webarena"]
    assert choices("horizon") == ["fixed", "scaling"]
    assert choices("algorithm") == ["grpo", "ppo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "rloo"]
    assert choices("hardware") == ["gpu1", "gpu8", "nodes"]
    assert choices("engine") == ["sglang", "vllm"]
    assert choices("mode") == ["colocate_async", "separate_async", "sync"]


def test_the_file_has_every_setting_with_its_default() -> None:
    block = read("agentgym")["agentgym"]
    assert list(block) == [field.name for field in fields(EpisodeSettings)]
    assert block.pop("trajectories") == "${run_dir}/trajectories"
    assert read_settings(block) == EpisodeSettings()


def test_a_run_resumes_from_a_checkpoint_if_there_is_one() -> None:
    assert read("agentgym")["trainer"]["resume_mode"] == "auto"


@pytest.mark.parametrize("scenario", choices("scenario"))
def test_the_numbers_of_a_scenario_are_consistent(scenario: str) -> None:
    paper = read(f"scenario/{scenario}")["paper"]
    assert paper["env"] in env_ids()
    for name in choices("horizon"):
        horizon = paper[name]
        assert horizon["max_model_len"] == horizon["max_prompt_length"] + horizon["max_response_length"] <= 16384
        assert horizon["groups_per_step"] == horizon["groups_per_update"] * horizon["updates_per_step"]


@pytest.mark.parametrize(
    "scenario", [pytest.param(s, marks=() if s == "textcraft" else pytest.mark.slow) for s in choices("scenario")]
)
def test_the_environment_of_a_scenario_accepts_its_arguments(scenario: str) -> None:
    paper = read(f"scenario/{scenario}")["paper"]
    gym_make(paper["env"], paper["env_kwargs"]).close()


@pytest.mark.slow
@examples(300)
@given(
    text=st.text(
        st.one_of(st.sampled_from("a1.,'\\\\${}=[]~ \"nulltruef:/é-+"), st.characters(codec="utf-8")), min_size=1
    )
)
@example(text="10,20,30")
@example(text="TextCraft=10;BabyAI=6,13")
@example(text="30")
@example(text="null")
@example(text="\\'${x}\\")
@example(text="\\${")
@example(text="a\\\n")
@example(text="a\\\\${b} \\'\\\\")
def test_an_override_keeps_its_value(text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    found = OverridesParser.create().parse_override(override("k", text)).value()
    assert OmegaConf.create({"k": found}).k == text


def test_none_values_produce_no_override() -> None:
    assert overrides({"a": None, "b": 0, "c": True, "+d.e": Path("/x")}) == ["b=0", "c=true", "+d.e=/x"]


@pytest.mark.rotating(always=3)
@pytest.mark.slow
@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("scenario, horizon", PAPER)
def test_the_settings_equal_those_of_the_paper(scenario: str, horizon: str) -> None:
    config = compose_config([*NEEDED, f"scenario={scenario}", f"horizon={horizon}"])
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    found = (
        config.agentgym.max_turns,
        config.agentgym.every,
        config.data.train_batch_size,
        rollout.n,
        actor.ppo_mini_batch_size,
        actor.ppo_epochs,
        config.trainer.total_epochs,
        config.data.max_prompt_length,
        config.data.max_response_length,
        config.agentgym.max_turn_tokens,
    )
    assert found == PAPER[scenario, horizon]
    assert (actor.optim.lr, actor.entropy_coeff, actor.use_kl_loss) == (1e-6, 0.001, True)
    assert (actor.kl_loss_coef, actor.kl_loss_type, config.algorithm.adv_estimator) == (0.001, "low_var_kl", "grpo")
    assert rollout.calculate_log_probs and not config.data.filter_overlong_prompts
    assert rollout.max_model_len == config.data.max_prompt_length + config.data.max_response_length


def keys_of(part: Any) -> Iterator[tuple[str, ...]]:
    if not isinstance(part, dict):
        yield ()
        return
    for key, value in part.items():
        yield from ((key, *rest) for rest in keys_of(value))


@pytest.mark.slow
@pytest.mark.usefixtures("stub")
def test_every_other_setting_exists_in_verl() -> None:
    """Hydra accepts any key of a file; one that verl does not have would silently have no effect."""
    from hydra import compose, initialize_config_module

    with initialize_config_module("verl.trainer.config", version_base=None):
        stock = compose("ppo_trainer")
    names = [str(path.relative_to(CONFIG_DIR).with_suffix("")) for path in Path(CONFIG_DIR).rglob("*.yaml")]
    found = {keys for name in names for keys in keys_of(read(name))}
    found = {keys for keys in found if keys[0] not in ("hydra", "defaults", "agentgym", "run_dir", "paper", "split")}
    assert len(found) > 60
    for *folder, name in found:
        node = stock
        for key in folder:
            node = node[key]
        assert name in set(node.keys()), (*folder, name)  # `in` is true for keys with a value


@pytest.mark.slow
@pytest.mark.usefixtures("stub", "parsed_once")
@pytest.mark.parametrize(
    "chosen",
    [pytest.param(one, marks=() if one in CORE else pytest.mark.rotating) for one in COMBINATIONS],
    ids=lambda chosen: " ".join(itertools.chain(*chosen)),
)
def test_verl_accepts_every_combination(chosen: tuple[tuple[str, ...], ...], model_path: Path) -> None:
    """Every pair of choices occurs, and each choice has its settings in all combinations."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    model = override("actor_rollout_ref.model.path", model_path)
    config = compose_config([*NEEDED, model, *itertools.chain(*chosen)])
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no critic
        critic, reference = need_critic(config), need_reference_policy(config)
        validate_config(config, reference, critic)
    algorithm, hardware, engine, mode = (part[0].partition("=")[2] for part in chosen[1:])
    assert config.algorithm.adv_estimator == {"ppo": "gae"}.get(algorithm, algorithm)
    assert critic == (algorithm == "ppo") and reference
    assert config.actor_rollout_ref.rollout.name == engine
    assert config.trainer.v1.trainer_mode == mode
    trainer, rollout, actor = config.trainer, config.actor_rollout_ref.rollout, config.actor_rollout_ref.actor
    gpus = trainer.nnodes * trainer.n_gpus_per_node
    own = rollout.nnodes * rollout.n_gpus_per_node if mode == "separate_async" else 0
    assert gpus + own == {"gpu1": 1, "gpu8": 8, "nodes": 16}[hardware] + (hardware == "gpu1" and own > 0)
    assert actor.ppo_mini_batch_size * rollout.n % gpus == 0
    assert config.data.train_batch_size == (
        actor.ppo_mini_batch_size * trainer.v1.separate_async.parameter_sync_step
    )  # the requirement of mode separate_async
    read_settings({**config.agentgym})
