"""Records of episodes leave out how the environment was reached."""

import asyncio
from typing import Any

from gymnasium.envs.registration import EnvSpec

from agentgym_envs.core import TRANSPORT_OPTIONS
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_text
from tests.toy import CountEnv


def test_a_record_has_no_transport_options() -> None:
    env = CountEnv()
    secrets: dict[str, Any] = {name: "secret" for name in TRANSPORT_OPTIONS}
    env.spec = EnvSpec("Toy/Count-v0", kwargs={"grammar": "tag", **secrets})
    assert {"base_url", "token"} <= TRANSPORT_OPTIONS
    done = asyncio.run(play_text(env, OraclePolicy(), EpisodeSpec("count/2"), limits=Limits(max_turns=20)))
    assert done.env_kwargs == {"grammar": "tag"} and "secret" not in done.to_json()
