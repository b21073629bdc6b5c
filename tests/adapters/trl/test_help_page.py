"""The help of `agentgym train`: it agrees with the configs, fits on the screen, and needs no training library."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_trl.algorithms import ALGORITHMS
from agentgym_trl.cli.help_page import help_page, options_of
from tests.cli.conftest import ROOT
from tests.plugins.startup import python_path

_HEAVY = ("torch", "transformers", "trl", "datasets", "peft", "accelerate")
_SHOWN_OF_TRL = {"num_generations", "max_completion_length", "epsilon_high"}
_RENAMED = {"model": "model_name_or_path", "out": "output_dir", "async": "asynchronous"}
_LEFT_OUT = {"dagger": {"tasks"}}
"""Options of the environments that an algorithm refuses."""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_line_fits_and_names_an_option_once(name: str) -> None:
    page = help_page(name)
    assert max(map(len, page.splitlines())) <= 80
    names = [row.name for rows in options_of(name).values() for row in rows]
    assert len(names) == len(set(names))
    assert all(page.count(f"\n  --{option}") for option in names)


def test_the_help_needs_no_training_library() -> None:
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({_HEAVY}))\n"  # None: the import fails
        "from agentgym_envs.cli import main\n"
        "codes = [main(['train', *words]) for words in ([], ['--help'], ['grpo', '--help'], ['x'])]\n"
        "assert codes == [0, 0, 0, 2], codes\n"
        "assert main(['train', 'grpo', '--env', 'textcraft', '--model', 'm', '--out', 'o']) == 1\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": python_path(ROOT, ROOT / "adapters" / "trl")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--max-turns" in found.stdout
    assert "pip install 'agentgym-envs[trl]'" in found.stderr


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.parametrize("name", ["grpo", "sft", "dpo", "agentevol", "dagger"])
def test_the_help_agrees_with_the_configs(name: str) -> None:
    fields = _fields(name)
    own = {field for field, (ours, _) in fields.items() if ours} - _LEFT_OUT.get(name, set()) - {"algorithm"}
    rows = {row.name.replace("-", "_"): row for rows in options_of(name).values() for row in rows}
    del rows["config"]
    named = {_RENAMED.get(option, option) if _RENAMED.get(option) in fields else option for option in rows}
    allowed = own | _SHOWN_OF_TRL | {"model", "output_dir", "chat_template", "chat_template_kwargs"}
    assert own <= named <= allowed
    for option, row in rows.items():
        default = fields.get(_RENAMED.get(option, option), (True, None))[1]
        value = "" if default is None or default is False else str(default)
        assert row.default in ("", value), option
        assert row.default or not value or option in ("preferences", "out"), option


def _fields(name: str) -> dict[str, tuple[bool, Any]]:
    """The fields of an algorithm's configs: whether they are ours, and their defaults."""
    from trl import DPOConfig, SFTConfig

    from agentgym_trl.cli import arguments
    from agentgym_trl.cli.agentevol import EvolArguments
    from agentgym_trl.cli.dagger import DaggerArguments
    from agentgym_trl.cli.dpo import PairArguments
    from agentgym_trl.cli.sft import DemoArguments
    from agentgym_trl.config import AgentConfig

    classes: dict[str, tuple[Any, ...]] = {
        "grpo": (AgentConfig,),
        "sft": (SFTConfig, DemoArguments),
        "dpo": (DPOConfig, PairArguments),
        "agentevol": (SFTConfig, DemoArguments, EvolArguments),
        "dagger": (SFTConfig, DemoArguments, DaggerArguments),
    }
    found: dict[str, tuple[bool, Any]] = {}
    for config in (arguments.EnvArguments, *classes[name]):
        ours = arguments._own_fields(config)
        for field in config.__dataclass_fields__.values():
            default = field.default if isinstance(field.default, str | int | float | bool) else None
            found[field.name] = field.name in ours or found.get(field.name, (False, None))[0], default
    return found


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.parametrize(
    "words, meant",
    [
        (["--modle", "m"], "--model"),
        (["--max_turn=3"], "--max-turns"),
        (["--learning-rat", "1"], "--learning_rate"),
        (["--outt", "d"], "--out"),
        (["--xyzzy"], "--help-all"),
    ],
)
def test_an_unknown_option_is_answered_with_those_that_are_like_it(words: list[str], meant: str) -> None:
    from agentgym_trl.cli.arguments import parse
    from agentgym_trl.config import AgentConfig

    with pytest.raises(UsageError) as error:
        parse(AgentConfig, ["--env", "textcraft", *words])
    assert f"there is no option {words[0].partition('=')[0]}" in str(error.value) and meant in str(error.value)


@pytest.mark.slow
@pytest.mark.train
def test_both_spellings_of_an_option_are_accepted() -> None:
    from agentgym_trl.cli.arguments import parse
    from agentgym_trl.config import AgentConfig

    common = ["--env", "textcraft", "--model", "m"]
    one = parse(
        AgentConfig, [*common, "--out", "d", "--groups", "a", "b", "--max-turns", "3", "--learning_rate", "0.5"]
    )
    two = parse(AgentConfig, [*common, "--output-dir=d", "--group=a,b", "--max_turns", "3", "--learning-rate", "0.5"])
    for env, args, _ in (one, two):
        assert (env.groups, args.output_dir, args.max_turns, args.learning_rate) == (["a", "b"], "d", "3", 0.5)


@pytest.mark.slow
@pytest.mark.train
def test_an_unknown_option_of_tiny_model_gets_a_suggestion() -> None:
    from agentgym_trl.cli import tiny_model

    with pytest.raises(UsageError, match="no option --hiden-size; did you mean --hidden-size"):
        tiny_model(["--hiden-size", "3", "folder"])
