"""One rank of a run in vLLM's server mode: `python -m tests.adapters.trl.server_rank URL MODEL EPISODES`.

As in TRL, the main process sends the weights first (here it only reports it), and all ranks meet after the rollout.
Prints the turns of each episode.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import httpx
from accelerate import Accelerator
from transformers import AutoTokenizer

from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, TokenTrajectory, play_many, run_sync
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_trl.server_engine import server_engine_for
from tests.adapters.trl.completion_server import settings


def main(url: str, model: str, count: int) -> None:
    accelerator = Accelerator(cpu=True)
    if accelerator.is_main_process:
        time.sleep(1)
        httpx.post(f"{url}/reset_prefix_cache").raise_for_status()
    trainer = SimpleNamespace(
        accelerator=accelerator,
        vllm_generation=settings(url),
        max_completion_length=200,
        args=SimpleNamespace(ddp_timeout=60),
    )
    episodes = run_sync(play(trainer, ChatCodec(AutoTokenizer.from_pretrained(model)), count))
    accelerator.wait_for_everyone()
    print([len(episode.trajectory.turns) for episode in episodes])
    accelerator.end_training()


async def play(trainer: SimpleNamespace, codec: ChatCodec, count: int) -> list[TokenTrajectory]:
    engine = server_engine_for(trainer)
    specs, limits = [EpisodeSpec(seed=seed) for seed in range(count)], Limits(max_turns=2, max_turn_tokens=4)
    try:
        return await play_many(specs, lambda: TextCraftEnv(instructions=""), engine, codec, limits=limits)
    finally:
        await engine.finish()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
