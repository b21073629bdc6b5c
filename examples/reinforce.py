"""REINFORCE in plain PyTorch on a BabyAI level, on the CPU, without downloads.

    python examples/reinforce.py        a few minutes on a CPU core; needs the extras babyai and trl

A model with random weights writes no valid command. So it first imitates a random player, which teaches the language
but not the task. Then it learns only from reward.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from torch.nn.utils.rnn import pad_sequence

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Limits,
    RandomPolicy,
    TokenTrajectory,
    encode_trajectory,
    play_many,
    play_many_text,
    run_sync,
)
from agentgym_trl.demonstrations import environment_corpus
from agentgym_trl.engines import HFEngine
from agentgym_trl.tiny import make_model, make_tokenizer

MAKE = partial(gym.make, "AgentGym/BabyAI-v0", levels="GoToLocalS5N2", instructions="")
LIMITS = Limits(max_turns=2, max_turn_tokens=8)


def step(model: Any, optimizer: Any, episodes: list[TokenTrajectory], advantages: torch.Tensor) -> None:
    """Take one policy gradient step: answers with a positive advantage become more likely. Tensors are (B, T)."""
    rows = [torch.tensor(one.prompt_ids + one.ids) for one in episodes]
    masks = [torch.tensor([0] * len(one.prompt_ids) + one.assistant_mask) for one in episodes]
    ids = pad_sequence(rows, batch_first=True)  # padding is at the end, where no token attends to it
    mask = pad_sequence(masks, batch_first=True)[:, 1:]
    logits = model.train()(input_ids=ids).logits[:, :-1]
    logprobs = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
    loss = -(advantages[:, None] * logprobs * mask).sum() / mask.sum()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def imitate_random_play(model: Any, codec: ChatCodec, episodes: int) -> None:
    """Learn to write commands from random play, in worlds that are not used later."""
    random_policy = RandomPolicy(0)
    specs = [EpisodeSpec(seed=1_000_000 + seed) for seed in range(episodes)]
    played = run_sync(play_many_text(specs, MAKE, lambda: random_policy, limits=LIMITS))
    print(f"random play: score {sum(one.score for one in played) / len(played):.2f}")
    data = [encode_trajectory(trajectory, codec) for trajectory in played]
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(5):
        for rows in torch.randperm(len(data)).split(32):
            step(model, optimizer, [data[row] for row in rows], torch.ones(len(rows)))


def main() -> None:
    """Imitate, then reinforce. Every step plays new worlds, and prints the score before it learns from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch", type=int, default=64, help="episodes per step")
    parser.add_argument("--warm", type=int, default=2048, help="episodes to imitate")
    args = parser.parse_args()
    torch.manual_seed(0)
    codec = ChatCodec(make_tokenizer(environment_corpus(MAKE, 300)))
    model = make_model(codec.tokenizer, hidden_size=96, layers=2)
    imitate_random_play(model, codec, args.warm)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(args.steps):
        specs = [EpisodeSpec(seed=seed) for seed in range(number * args.batch, (number + 1) * args.batch)]
        episodes = run_sync(play_many(specs, MAKE, HFEngine(model, codec.tokenizer), codec, limits=LIMITS))
        scores = torch.tensor([one.trajectory.score for one in episodes])
        step(model, optimizer, episodes, (scores - scores.mean()) / (scores.std() + 1e-4))
        print(f"step {number + 1}: score {scores.mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
