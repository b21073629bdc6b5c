"""The command `inspect`, with a model provider `oracle` whose only model plays TextCraft's test split."""

from __future__ import annotations

from typing import Any

from inspect_ai._cli.main import main
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi

from agentgym_envs.grammar import find_call
from tests.doors.peers.oracle import next_action, plans


@modelapi(name="oracle")
class OracleAPI(ModelAPI):
    """The oracle as a model of Inspect; its name is the grammar."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        table = plans("AgentGym/TextCraft-v0", 2, split="test", grammar=self.model_name)
        said = next_action(table, [(each.role, each.text) for each in input])
        call = find_call(said)
        assert tools and call is not None
        made = ModelOutput.for_tool_call(self.model_name, call.name, call.arguments)
        made.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return made


if __name__ == "__main__":
    main()
