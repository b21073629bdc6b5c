"""Episodes per second of asynchronous training, compared with synchronous steps.

    python -m benchmarks.asynchronous [--out FILE.json] [--repeats 5] [--quick]

On a virtual clock, `Scheduler` keeps 16 groups of 8 episodes per batch in flight. Episodes have 4 to 30 turns, and each
step of the environment takes log-normal time. The costs of the engine and of the trainer are measured here first, with
the small model of the quick start: a line through the time of batches of answers, and the time of an update. The clock
is exact, so a repeat is another draw of latencies. Two synchronous sides have the same episodes: "lock-step" is our
trainer without a server, whose batches have an answer of every running episode; "requests" is the one with a server,
where every episode has its own requests and a step waits for its slowest episode.

The check on a real clock trains a small model with the second process and with synchronous steps, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.rollout import EpisodeSpec, Generation, Sampling
from agentgym_envs.task import Task, TaskTable
from agentgym_trl.asynchronous.engine import AnswerRequest
from agentgym_trl.asynchronous.loops import VirtualDriver
from agentgym_trl.asynchronous.scheduler import Scheduler, Sizes
from agentgym_trl.asynchronous.settings import AsyncSettings, VirtualTimes
from agentgym_trl.asynchronous.virtual import VirtualEngine
from agentgym_trl.generation.decoder import CachedDecoder
from agentgym_trl.tiny import make_model, make_tokenizer
from benchmarks.common import machine

SIZES = Sizes(batch=16, group=8)
LEAST_TURNS, MOST_TURNS, ANSWER = 4, 30, 20
ENV_SECONDS, SIGMA = 1.0, 1.0
STALENESS = (1, 2, 4, 8)
SIGMAS = (0.5, 1.0, 1.5)
SIDES = ("lock-step", "requests")
WARM = 10
"""Rollouts before the measurement: more than the largest staleness."""
REAL_ENV_SECONDS, REAL_TURNS, REAL_STEPS = 0.2, 6, 8
Numbers = dict[str, float]


class Measured:
    """Fake episodes in the real scheduler: answers have a length only, and nothing takes time but the model of it."""

    def __init__(self, settings: AsyncSettings, sizes: Sizes, *, lockstep: bool) -> None:
        assert settings.times is not None
        self._times, self._sizes, self._driver = settings.times, sizes, VirtualDriver()
        self._engine = VirtualEngine(self._sample, settings.times, lockstep=lockstep)
        self._scheduler = Scheduler(self._spec, self._engine, self._play, sizes, settings)

    def rate(self, rollouts: int, warm: int) -> Numbers:
        """Episodes per second, and the mean staleness of a token, over `rollouts` after the first `warm`."""
        began, ages = 0.0, list[int]()
        for number in range(warm + rollouts):
            if number == warm:
                began = self._driver.call(_now())
            groups = self._driver.call(self._scheduler.collect(number, number))
            for group in groups if number >= warm else ():
                for episode in group.episodes.values():
                    ages += [number - version for version in episode.answers]  # type: ignore[attr-defined]
            self._driver.call(asyncio.sleep(self._times.train_seconds(number)))
        seconds = self._driver.call(_now()) - began
        self._driver.call(self._scheduler.aclose())
        self._driver.close()
        episodes = rollouts * self._sizes.batch * self._sizes.group
        return {"episodes/s": episodes / seconds, "staleness": statistics.mean(ages)}

    def _spec(self, number: int, step: int) -> EpisodeSpec:
        return EpisodeSpec(seed=number)

    def _sample(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        lengths = np.random.default_rng([len(requests), *requests[0].seed]).integers(
            ANSWER // 2, 2 * ANSWER, len(requests)
        )
        return [Generation([0] * int(length), "stop", [0.0] * int(length)) for length in lengths]

    async def _play(self, spec: EpisodeSpec, engine: Any) -> Any:
        versions = []
        turns = int(np.random.default_rng(spec.seed).integers(LEAST_TURNS, MOST_TURNS, endpoint=True))
        for _ in range(turns):
            versions.append((await engine.generate([0], Sampling(2 * ANSWER))).version)
        return SimpleNamespace(trajectory=SimpleNamespace(usable=True), answers=versions)


async def _now() -> float:
    return asyncio.get_running_loop().time()


def measure_costs() -> VirtualTimes:
    """The costs of a small model: decoding as a line, and one update on a batch of episodes."""
    tokenizer = make_tokenizer(["Get the log and craft a plank from it, with the table."])
    model = make_model(tokenizer, seed=0, hidden_size=64, layers=2)
    rows, seconds = [], []
    for count in (1, 16, 64):
        for length in (8, 32):
            decoder, samplings = CachedDecoder(model), [Sampling(length)] * count
            prompts = [[5, *np.random.default_rng(k).integers(5, 99, 60).tolist()] for k in range(count)]
            decoder.answer(prompts, samplings, [(0, k) for k in range(count)])
            taken = []
            for again in range(3):
                longer = [[*prompt, 7] for prompt in prompts]
                began = time.process_time()
                decoder.answer(longer, samplings, [(1 + again, k) for k in range(count)])
                taken.append(time.process_time() - began)
            rows.append([1.0, length, count * length])
            seconds.append(min(taken))
    batch, token, row = (max(float(x), 0.0) for x in np.linalg.lstsq(np.array(rows), np.array(seconds), rcond=None)[0])
    return VirtualTimes(
        batch=batch, token=token, row=row, train=_update_seconds(model), env=ENV_SECONDS, env_sigma=SIGMA
    )


def _update_seconds(model: Any) -> float:
    """CPU seconds of the gradient on a batch: 128 episodes of mean length, 32 at a time."""
    tokens = (LEAST_TURNS + MOST_TURNS) // 2 * 2 * ANSWER
    ids = torch.randint(5, 99, (4, tokens))
    model.train()
    began = time.process_time()
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    model.eval()
    return (time.process_time() - began) * SIZES.batch * SIZES.group / len(ids)


def rate(times: VirtualTimes, staleness: int, *, lockstep: bool = False, rollouts: int = 20) -> Numbers:
    """The figures of one side."""
    return Measured(AsyncSettings(staleness, 0, times), SIZES, lockstep=lockstep).rate(rollouts, WARM)


def compare(times: VirtualTimes, staleness: Sequence[int], rollouts: int) -> Numbers:
    """All sides on the same latencies."""
    found = Numbers()
    for side in SIDES:
        found[f"{side}, episodes/s"] = rate(times, 0, lockstep=side == "lock-step", rollouts=rollouts)["episodes/s"]
    for bound in staleness:
        ours = rate(times, bound, rollouts=rollouts)
        found[f"staleness {bound}, episodes/s"] = ours["episodes/s"]
        found[f"staleness {bound}, mean"] = ours["staleness"]
        for side in SIDES:
            found[f"staleness {bound}, times {side}"] = ours["episodes/s"] / found[f"{side}, episodes/s"]
    return found


def summary(runs: Sequence[Numbers]) -> dict[str, Any]:
    """`median`, and `samples` by figure."""
    samples = {name: [round(run[name], 4) for run in runs] for name in runs[0]}
    return {"median": {name: statistics.median(values) for name, values in samples.items()}, "samples": samples}


class SlowEnv(TextEnv):
    """Episodes of a fixed number of turns, with steps of log-normal time. A random half of them wins."""

    native_async = True
    rules = "Say anything."

    def __init__(self) -> None:
        self.tasks = TaskTable("slow", 1, [Task(f"slow/{k}", "train", "slow", "", {}) for k in range(64)])
        super().__init__()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._left, self._random = REAL_TURNS, np.random.default_rng()
        return "Go on."

    def _act(self, command: str) -> Transition:
        self._left -= 1
        wins = not self._left and bool(self._random.random() < 0.5)
        return Transition("Go on.", float(wins), not self._left)

    async def _act_async(self, command: str) -> Transition:
        await asyncio.sleep(REAL_ENV_SECONDS * self._random.lognormal(-SIGMA * SIGMA / 2, SIGMA))
        return self._act(command)

    def _state(self) -> str:
        return str(self._left)


def real_clock(steps: int) -> dict[str, Any]:
    """Seconds of each step after the first, which starts the process, with a small model on this machine."""
    found: dict[str, Any] = {}
    for name, options in (("synchronous", {}), ("asynchronous", {"asynchronous": True, "max_staleness": 2})):
        with tempfile.TemporaryDirectory() as out:
            seconds = _train(out, steps + 3, options)[3:]
        found[name] = {
            "step, s": round(statistics.mean(seconds), 3),
            "episodes/s": round(32 / statistics.mean(seconds), 2),
        }
    found["speedup"] = round(found["asynchronous"]["episodes/s"] / found["synchronous"]["episodes/s"], 2)
    return {"steps": steps, "env, s": REAL_ENV_SECONDS, "turns": REAL_TURNS, "episodes a step": 32, **found}


def _train(out: str, steps: int, options: dict[str, Any]) -> list[float]:
    """The wall seconds of every step."""
    from transformers import TrainerCallback

    from agentgym_trl.dataset import make_dataset
    from agentgym_trl.trainer import AgentConfig, AgentTrainer

    times = [time.perf_counter()]

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    tokenizer = make_tokenizer(["Go on. Say anything."])
    args = AgentConfig(
        output_dir=out,
        max_steps=steps,
        max_turns=str(REAL_TURNS),
        max_turn_tokens=8,
        max_completion_length=400,
        num_generations=4,
        per_device_train_batch_size=32,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **options,
    )
    model = make_model(tokenizer, seed=0, hidden_size=64, layers=2)
    trainer = AgentTrainer(
        model,
        SlowEnv,
        args=args,
        processing_class=tokenizer,
        train_dataset=make_dataset(SlowEnv()),
        callbacks=[Clock()],
    )
    trainer.train()
    return [after - before for before, after in pairwise(times)]


def measure(repeats: int, quick: bool) -> dict[str, Any]:
    """Every figure."""
    costs, rollouts = measure_costs(), 4 if quick else 20
    bounds, sigmas = (STALENESS[:1], SIGMAS[1:2]) if quick else (STALENESS, SIGMAS)
    found = {"machine": machine(), "costs": asdict(costs), "episodes": SIZES.batch * SIZES.group}
    for sigma in sigmas:
        chosen = bounds if sigma == SIGMA else bounds[1:2] or bounds
        runs = [compare(replace(costs, seed=seed, env_sigma=sigma), chosen, rollouts) for seed in range(repeats)]
        found[f"sigma {sigma:g}"] = summary(runs)
    return {**found, "real clock": real_clock(1 if quick else REAL_STEPS), "repeats": repeats}


def show(result: dict[str, Any]) -> None:
    table = Table("latencies", "figure", "median", title=f"Medians of {result['repeats']} draws")
    for name, row in result.items():
        for figure, value in row["median"].items() if name.startswith("sigma") else ():
            table.add_row(name, figure, f"{value:,.2f}")
    console = Console(width=110)
    console.print(table)
    console.print(result["real clock"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few rollouts, to try it out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    result = measure(options.repeats, options.quick)
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
