"""Names of OpenTelemetry's semantic conventions for generative AI, in one table.

All of them are in the status "Development", so they may still change. `SCHEMA_URL` names the version in which they have
these names.
"""

from __future__ import annotations

SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
MODEL = "gen_ai.request.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL = "gen_ai.tool.call.id"
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION = "gen_ai.evaluation.name"
EVALUATION_VALUE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_WHY = "gen_ai.evaluation.explanation"
ERROR = "error.type"

# Contents are opt-in in the conventions.
INSTRUCTIONS = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"

# What the conventions have no name for.
ENV_ID = "agentgym.env_id"
TASK = "agentgym.task.id"
GROUP = "agentgym.task.group"
SPLIT = "agentgym.task.split"
SEED = "agentgym.seed"
STOP = "agentgym.stop_reason"
TURNS = "agentgym.turns"
STEP = "agentgym.training_step"
TIMES = "agentgym.has_times"
TURN = "agentgym.turn"
REWARD = "agentgym.reward"
SCORE = "agentgym.score"
INVALID = "agentgym.invalid_action"
