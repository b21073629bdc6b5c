"""`agentgym train ALGORITHM` and `agentgym tiny-model`, on TRL's own argument parser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from rich.console import Console

from agentgym_envs.errors import UsageError
from agentgym_trl.cli.arguments import Parser, quiet

_USAGE = """usage: agentgym train ALGORITHM [options]

online, over whole episodes, with a growing limit of turns if asked for:
  grpo                  group-relative policy optimisation
  rloo                  REINFORCE with a leave-one-out baseline
  reinforce++           REINFORCE with whitening over the batch
  reinforce++-baseline  the same, after the mean of the group was taken off
  ppo                   proximal policy optimisation with a critic (GAE)
from trajectories, with the same masks:
  sft                   supervised training on demonstrations
  dpo                   preferences between trajectories of the same task
  agentevol             explore, keep what succeeded, train from the base model; again and again

`agentgym train ALGORITHM --help` lists the options: those of the environment, and every field of TRL's config.
`--config FILE.yaml` reads options from a file; `--resume` goes on with a run that was stopped."""

_ONLINE = {
    "grpo": "grpo",
    "rloo": "rloo",
    "reinforce++": "reinforce++",
    "reinforce++-baseline": "reinforce++-baseline",
    "ppo": "gae",
}
_OFFLINE = ("sft", "dpo", "agentevol")


def train(argv: Sequence[str]) -> int:
    """Train a model on an environment with TRL."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_USAGE + "\n")
        return 0
    name, *rest = argv
    if name not in (*_ONLINE, *_OFFLINE):
        raise UsageError(f"there is no algorithm {name!r}; choose from {', '.join((*_ONLINE, *_OFFLINE))}")
    quiet()
    return _command(name)(rest)


def _command(name: str) -> Callable[[Sequence[str]], int]:
    """The function behind a name. An algorithm's libraries are imported when it is asked for."""
    if name in _ONLINE:
        online = import_module("agentgym_trl.cli.online")
        return partial(online.train_online, name, _ONLINE[name])
    command: Callable[[Sequence[str]], int] = getattr(import_module(f"agentgym_trl.cli.{name}"), f"train_{name}")
    return command


def tiny_model(argv: Sequence[str]) -> int:
    """Make a small model and tokenizer from nothing."""
    from agentgym_envs.cli.envs import find_env
    from agentgym_envs.rollout.mixture import gym_make
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    parser = Parser(prog="agentgym tiny-model", description=tiny_model.__doc__)
    parser.add_argument("out", help="directory to make")
    parser.add_argument("--env", action="append", help="environment whose words the tokenizer knows (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    options = parser.parse_args(list(argv))
    quiet()
    ids = [find_env(name) for name in options.env or ["textcraft"]]
    corpus = [text for env_id in ids for text in environment_corpus(partial(gym_make, env_id, {}))]
    facts = save_tiny_model(options.out, corpus, seed=options.seed)
    Console(stderr=True).print(
        f"{options.out}: {facts['parameters']:,} parameters, {facts['vocabulary']} tokens, random weights"
    )
    return 0
