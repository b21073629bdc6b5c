"""AgentGym's BabyAI wrapper, for `benchmarks.babyai`: prints microseconds of CPU a step and a reset as JSON.

    python benchmarks/babyai_agentgym.py FOLDER

FOLDER is AgentGym's `agentenv-babyai`; this Python has minigrid 2.3.1, gymnasium 0.29.1, gym 0.26.2 and matplotlib.
Forty levels, three seeds, up to 40 actions drawn from those that are possible.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import time
import types
import warnings


def load(folder: str) -> object:
    """The module, without its package's `__init__`, which needs a web server."""
    warnings.filterwarnings("ignore")
    package = types.ModuleType("agentenv_babyai")
    package.__path__ = [f"{folder}/agentenv_babyai"]
    sys.modules["agentenv_babyai"] = package
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return __import__("agentenv_babyai.environment").environment


def measure(folder: str) -> dict[str, float]:
    server, rng = load(folder).BabyAIEnv(), random.Random(0)  # type: ignore[attr-defined]
    spent, count = {"reset": 0.0, "step": 0.0}, {"reset": 0, "step": 0}

    def timed(name: str, call: object, *arguments: object) -> dict:
        begun = time.process_time()
        reply = call(*arguments)  # type: ignore[operator]
        spent[name] += time.process_time() - begun
        count[name] += 1
        return reply

    for data_idx in range(120):
        number = server.create()["id"]
        if "error" in timed("reset", server.reset, number, data_idx):
            continue
        for _ in range(40):
            actions = [a for a in server.env[number]._get_action_space() if a != "check available actions"]
            reply = timed("step", server.step, number, rng.choice(actions))
            if "error" in reply or reply["done"]:
                break
    return {name: 1e6 * spent[name] / count[name] for name in spent}


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        figures = measure(sys.argv[1])
    print(json.dumps(figures))
