"""Evaluate the oracle on TextCraft with Inspect AI. It needs no model and no network.

    pip install 'agentgym-envs[inspect]'
    python examples/inspect_eval.py [LOG_DIR]       then: inspect view --log-dir LOG_DIR

A real model is one option of Inspect's command: inspect eval agentgym_envs/textcraft --model openai/MODEL
"""

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from inspect_ai import eval as inspect_eval
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

from agentgym_envs.core import text_env
from agentgym_envs.inspect_tasks import make_task

ENV, COUNT = "AgentGym/TextCraft-v0", 5


def oracle() -> Model:
    """A model that knows the plan for each first observation. Its n-th answer is the n-th action."""
    env = gym.make(ENV)
    base, plans = text_env(env), dict[str, list[str]]()
    for task in base.tasks.sample(COUNT, split="test"):
        observation, _ = env.reset(seed=0, options={"task": task.id})
        plans[observation] = list(base.oracle())

    def answer(messages: Sequence[ChatMessage], *_: Any) -> ModelOutput:
        plan = next(plans[message.text] for message in messages if message.role == "user")
        output = ModelOutput.from_content("mockllm", plan[sum(message.role == "assistant" for message in messages)])
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else Inspect counts them itself
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "logs"
    (log,) = inspect_eval(make_task(ENV, count=COUNT), model=oracle(), log_dir=folder, display="plain")
    assert log.results is not None
    for score in log.results.scores:
        print(score.name, {name: metric.value for name, metric in score.metrics.items()})
