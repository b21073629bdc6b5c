"""Record two episodes, export them to every format, and read the ATIF documents back.

    python examples/export_formats.py [FOLDER]

It needs neither a network nor a model: the policy draws random actions. Parquet needs the extra `parquet`.
"""

import json
import sys
from pathlib import Path

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the environments)
from agentgym_envs.cli import main as agentgym
from agentgym_envs.export.atif_import import from_atif
from agentgym_envs.rollout import EpisodeSpec, Limits, RandomPolicy, play_many_text, run_sync
from agentgym_envs.trajectory import TrajectoryWriter


def main(folder: Path) -> None:
    """Write everything into a folder."""
    specs = [EpisodeSpec(seed=seed, meta={"policy": "random"}) for seed in range(2)]
    limits = Limits(max_turns=5)
    played = play_many_text(specs, lambda: gym.make("AgentGym/TextCraft-v0"), lambda: RandomPolicy(0), limits=limits)
    with TrajectoryWriter(folder / "episodes.jsonl") as writer:
        for episode in run_sync(played):
            writer.write(episode)
    for name, out in (("atif", "atif"), ("otlp", "traces.otlp.jsonl"), ("nemo", "nemo"), ("hf-dataset", "hub")):
        words = ["export", str(folder / "episodes.jsonl"), "--format", name, "--out", str(folder / out), "--overwrite"]
        if code := agentgym(words):
            sys.exit(code)
    for file in sorted((folder / "atif").glob("*.atif.json")):
        read = from_atif(json.loads(file.read_text()))
        print(f"{file.name}: {read.task.id}, {len(read.turns)} turns, score {read.score:g}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "exported"))
