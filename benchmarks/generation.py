"""Speedup of generation by keeping the keys and values of an episode between its turns.

    python -m benchmarks.generation [--out FILE.json] [--repeats 5] [--quick]

The same episodes of TextCraft are played by `HFEngine` with `generate`, which reads the whole conversation in each
turn, and with the cache. The sides take turns in one process, with one thread. CPU seconds are those of whole episodes:
environments, tokenizer and event loop included. Since answers are sampled, the figure is sampled tokens per CPU second;
the ratio is that of the two sides of one repeat.

- demo: a policy of 0.6 million parameters after a warm start, 16 groups of 8 episodes.
- 52M: a Qwen2 with random weights, one group of 8 episodes. One token in twenty ends an answer, at most 12 tokens, and
  no answer wins, so that every episode has all its turns. "long prompts" has the rules of the game in the prompt.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine

SIDES = {"generate": False, "cache": True}
STOP_EVERY = 20
GOALS = {"demo, 8 turns": 3.0, "52M, 8 turns": 3.0}


@dataclass(frozen=True, slots=True)
class Setting:
    """Episodes of one model; `make_env` makes their environment."""

    model: Any
    codec: Any
    make_env: Callable[[], Any]
    specs: Sequence[Any]
    max_turns: int
    sampling: Any
    max_turn_tokens: int


def demo_setting(folder: Path, groups: int, turns: int) -> Setting:
    """The small policy after its warm start."""
    import gymnasium as gym

    from agentgym_trl.models import load_model, load_tokenizer, make_codec

    settings, warm = _warm_start(folder)
    codec = make_codec(load_tokenizer(str(warm)))
    specs = _specs(settings, groups)
    env = lambda: gym.make(settings.env_id, **settings.env_kwargs)  # noqa: E731
    return Setting(load_model(str(warm)), codec, env, specs, turns, None, settings.max_turn_tokens)


def big_setting(folder: Path, turns: int, instructions: bool) -> Setting:
    """A Qwen2 of 52 million parameters, with the tokenizer of the demo."""
    import gymnasium as gym

    from agentgym_envs.rollout import Sampling
    from agentgym_trl.models import load_tokenizer, make_codec
    from benchmarks.large_model import large_model

    settings, warm = _warm_start(folder)
    tokenizer = load_tokenizer(str(warm))
    codec, size = make_codec(tokenizer), len(tokenizer)
    stops = (*range(20, 20 + size // STOP_EVERY), tokenizer.eos_token_id)
    kwargs = {**settings.env_kwargs, "max_distractors": 8}
    if instructions:
        del kwargs["instructions"]
    env = lambda: gym.make(settings.env_id, **kwargs)  # noqa: E731
    model = large_model(tokenizer).eval()
    return Setting(model, codec, env, _specs(settings, 1), turns, Sampling(12, stop_ids=stops), 12)


def _warm_start(folder: Path) -> tuple[Any, Path]:
    from agentgym_trl.demo import stages
    from benchmarks.invented_worlds import InventedWorlds

    settings, warm = InventedWorlds(demonstrations=200, warm_steps=120), folder / "warm"
    if not warm.exists():
        tiny = stages.make_tiny_model(folder, settings)
        demonstrations = stages.make_demonstrations(folder, settings)
        stages.warm_start(tiny, warm, demonstrations, settings, Console(stderr=True, quiet=True))
    return settings, warm


def _specs(settings: Any, groups: int) -> list[Any]:
    from agentgym_trl.demo import stages
    from agentgym_trl.trl_format import spec_of

    tasks = stages.training_tasks(settings)
    return [spec_of(tasks[k]["prompt"], {}) for k in range(groups) for _ in range(settings.group_size)]


def play(setting: Setting, keeps: bool, seed: int) -> dict[str, float]:
    """Play all episodes with a new engine: CPU and wall seconds, sampled tokens, all tokens, turns."""
    import torch

    from agentgym_envs.rollout import Limits, play_many, run_sync
    from agentgym_trl.engines import HFEngine

    torch.manual_seed(seed)
    engine = HFEngine(setting.model, setting.codec.tokenizer, reuse_kv_cache=keeps)
    limits = Limits(setting.max_turns, 8192, setting.max_turn_tokens)
    specs = [replace(spec, max_turns=setting.max_turns) for spec in setting.specs]
    wall, cpu = time.perf_counter(), time.process_time()
    episodes = run_sync(
        play_many(specs, setting.make_env, engine, setting.codec, limits=limits, sampling=setting.sampling)
    )
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    sampled = sum(sum(episode.assistant_mask) for episode in episodes)
    return {
        "cpu, s": cpu,
        "wall, s": wall,
        "sampled": sampled,
        "tokens": sum(len(e.prompt_ids) + len(e.ids) for e in episodes) / len(episodes),
        "turns": sum(len(e.trajectory.turns) for e in episodes) / len(episodes),
        "sampled per cpu second": sampled / cpu,
    }


def compare(setting: Setting, repeats: int) -> dict[str, Any]:
    """All repeats of both sides, alternating, after one that is not counted."""
    samples: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for repeat in range(repeats + 1):
        for side in sorted(SIDES, reverse=bool(repeat % 2)):
            found = play(setting, SIDES[side], repeat)
            if repeat:
                samples[side].append(found)
    return {"samples": samples, **summary(samples)}


def summary(samples: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """The medians of both sides, and of the ratio of each repeat."""
    rate = "sampled per cpu second"
    ratios = [b[rate] / a[rate] for a, b in zip(samples["generate"], samples["cache"], strict=True)]
    median = {s: {n: statistics.median(row[n] for row in rows) for n in rows[0]} for s, rows in samples.items()}
    return {"median": median, "ratios": ratios, "ratio": statistics.median(ratios)}


def measure(repeats: int, quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="generation-") as name:
        folder = Path(name)
        settings: dict[str, Callable[[], Setting]] = {
            "demo, 3 turns": lambda: demo_setting(folder, 16, 3),
            "demo, 8 turns": lambda: demo_setting(folder, 16, 8),
            "52M, 8 turns": lambda: big_setting(folder, 8, instructions=False),
            "52M, 8 turns, long prompts": lambda: big_setting(folder, 8, instructions=True),
        }
        if quick:
            settings = {"demo, 2 turns": lambda: demo_setting(folder, 1, 2)}
        rows = {key: compare(make(), repeats) for key, make in settings.items()}
    return {"machine": machine(), "repeats": repeats, "settings": rows}


def show(result: Mapping[str, Any]) -> None:
    table = Table("setting", "tokens, turns an episode", "generate", "cache", "ratio (all repeats)", "goal")
    for name, row in result["settings"].items():
        rate = {side: f"{row['median'][side]['sampled per cpu second']:,.0f}" for side in SIDES}
        size = f"{row['median']['cache']['tokens']:,.0f}, {row['median']['cache']['turns']:.1f}"
        ratios = f"{row['ratio']:.2f} ({min(row['ratios']):.2f} - {max(row['ratios']):.2f})"
        table.add_row(name, size, rate["generate"], rate["cache"], ratios, str(GOALS.get(name, "")))
    Console(width=120).print("Sampled tokens per CPU second, one thread", table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5, help="counted repeats of both sides (default: 5)")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}
    import torch

    torch.set_num_threads(1)
    result = measure(1 if options.quick else options.repeats, options.quick)
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
