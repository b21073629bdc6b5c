"""TRL's own GRPOTrainer on an environment of this suite.

    python examples/trl_grpo.py --model Qwen/Qwen2.5-0.5B-Instruct --out runs/trl

With `agentgym tiny-model runs/tiny`, `--model runs/tiny --steps 3 --max-tokens 256 --max-turn-tokens 6` runs on a CPU
in well under a minute, and learns nothing.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # TRL warns that `rollout_func` is experimental

import gymnasium as gym
import torch
from trl import GRPOConfig, GRPOTrainer

from agentgym_envs import TurnLimitCurriculum
from agentgym_envs.core import text_env
from agentgym_trl.dataset import make_dataset
from agentgym_trl.models import load_model, load_tokenizer
from agentgym_trl.rollout import make_rollout_func


def make_trainer(args: argparse.Namespace) -> GRPOTrainer:
    """Make the trainer. Only the rollout function, its reward function and the dataset come from this suite."""
    tokenizer = load_tokenizer(args.model)
    rollout = make_rollout_func(
        args.env,
        tokenizer,
        schedule=TurnLimitCurriculum((2, 4, 6), every=max(args.steps // 3, 1)),  # ScalingInter-RL
        max_tokens=args.max_tokens,
        max_turn_tokens=args.max_turn_tokens,
        trajectories=f"{args.out}/trajectories",  # for `agentgym view`
    )
    gpu = torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=args.out,
        max_steps=args.steps,
        num_generations=args.group,
        per_device_train_batch_size=args.group,
        max_completion_length=args.max_tokens,  # the budget of a whole episode
        use_cpu=not gpu,
        bf16=gpu,
        gradient_checkpointing=gpu,
        logging_steps=1,
        report_to="none",
    )
    return GRPOTrainer(
        load_model(args.model),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
        train_dataset=make_dataset(text_env(gym.make(args.env)), args.tasks),
        args=config,
        processing_class=tokenizer,
    )


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a directory, or a name on the hub")
    parser.add_argument("--out", required=True)
    parser.add_argument("--env", default="AgentGym/TextCraft-v0")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--max-turn-tokens", type=int, default=256)
    make_trainer(parser.parse_args()).train()


if __name__ == "__main__":
    main()
