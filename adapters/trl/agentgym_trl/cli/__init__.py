"""`agentgym train ALGORITHM` and `agentgym tiny-model`, on TRL's own argument parser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from rich.console import Console

from agentgym_envs.errors import UsageError, meant
from agentgym_envs.registration import load_object
from agentgym_trl import check_packages
from agentgym_trl.algorithms import ALGORITHMS
from agentgym_trl.cli.help_page import help_page
from agentgym_trl.cli.imports import asks_for_help, only_needed

_TRAINERS = {
    "sft": "agentgym_trl.sft",
    "dpo": "agentgym_trl.dpo",
    "agentevol": "agentgym_trl.agentevol",
    "dagger": "agentgym_trl.dagger",
}
"""The modules that import the trainers of algorithms that are not online."""
_USAGE = """usage: agentgym train ALGORITHM [options]

on episodes that the policy plays during training, optionally with a turn-limit curriculum:
{online}
on trajectories, with the same masks:
{offline}

`agentgym train ALGORITHM --help` lists our options, and `--help-all` those of TRL and transformers as well.
Our own options have hyphens; TRL's keep their underscores. Either spelling works for each option.
`--config FILE.yaml` reads options from a file; `--resume` continues a run that was stopped."""


def train(argv: Sequence[str]) -> int:
    """Train a model on an environment with TRL."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_usage() + "\n")
        return 0
    name, *rest = argv
    if name not in ALGORITHMS:
        raise UsageError(
            f"there is no algorithm {name!r}; {meant(name, ALGORITHMS)}choose from {', '.join(ALGORITHMS)}"
        )
    if not {"-h", "--help"}.isdisjoint(rest):
        sys.stdout.write(help_page(name))
        return 0
    return _command(name, argv)(rest)


def _command(name: str, argv: Sequence[str]) -> Callable[[Sequence[str]], int]:
    """The function of an algorithm; its libraries are imported only now, and the trainer's not for `--help`."""
    check_packages()
    with only_needed(argv):
        if not asks_for_help(argv):
            from agentgym_trl.cli.arguments import quiet

            import_module(_TRAINERS.get(name, "agentgym_trl.trainer"))
            quiet()
        if ALGORITHMS[name].is_online:
            from agentgym_trl.cli.online import train_online

            return partial(train_online, name)
        command: Callable[[Sequence[str]], int] = load_object(ALGORITHMS[name].command)
        return command


def _usage() -> str:
    width = max(map(len, ALGORITHMS))
    lines = {True: "", False: ""}
    for name, algorithm in ALGORITHMS.items():
        lines[algorithm.is_online] += f"  {name:{width}}  {algorithm.summary}\n"
    return _USAGE.format(online=lines[True].rstrip("\n"), offline=lines[False].rstrip("\n"))


def tiny_model(argv: Sequence[str]) -> int:
    """Make a small untrained model and its tokenizer."""
    check_packages()
    from agentgym_envs.cli.envs import find_env
    from agentgym_envs.rollout.mixture import gym_make
    from agentgym_trl.cli.arguments import Parser, quiet
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    parser = Parser(prog="agentgym tiny-model", description=tiny_model.__doc__)
    parser.add_argument("out", help="folder to create, for --model of agentgym train")
    parser.add_argument(
        "--env", action="append", help="environment whose words the tokenizer knows (repeatable); default: textcraft"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    parser.add_argument("--hidden-size", type=int, default=128, help="width; a multiple of twice --heads")
    parser.add_argument("--layers", type=int, default=3, help="number of layers")
    parser.add_argument("--heads", type=int, default=4, help="attention heads of a layer")
    options = parser.parse_words(argv)
    quiet()
    ids = [find_env(name) for name in options.env or ["textcraft"]]
    corpus = [text for env_id in ids for text in environment_corpus(partial(gym_make, env_id, {}))]
    sizes = {"hidden_size": options.hidden_size, "layers": options.layers, "heads": options.heads}
    facts = save_tiny_model(options.out, corpus, seed=options.seed, **sizes)
    Console(stderr=True).print(
        f"{options.out}: {facts['parameters']:,} parameters, {facts['vocabulary']} tokens, random weights"
    )
    return 0
