"""The grammar `command_tools`: a tool per command, in every scenario that has a table of commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.babyai import commands as babyai
from agentgym_envs.command_tools import CommandTool, CommandToolsGrammar, Number, command_of, tool_grammar
from agentgym_envs.core import text_env
from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import ENV_GRAMMARS, find_call, tools_of
from agentgym_envs.sciworld import commands as sciworld
from agentgym_envs.textcraft import parsing as textcraft

TABLES = {
    "textcraft": textcraft.TOOLS,
    "babyai": babyai.TOOLS["macro"],
    "babyai-primitive": babyai.TOOLS["primitive"],
    "sciworld": sciworld.TOOLS,
}
COMMANDS = {
    "get 3 oak log": ("get", {"amount": 3, "item": "oak log"}),
    "craft 4 oak planks using 1 oak log, 2 stick": (
        "craft",
        {"item": "4 oak planks", "ingredients": "1 oak log, 2 stick"},
    ),
    "inventory": ("inventory", {}),
    "get 0 oak log": ("act", {"action": "get 0 oak log"}),
    "look": ("act", {"action": "look"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_tools_are_unique_and_describe_every_parameter(name: str) -> None:
    tools = CommandToolsGrammar(TABLES[name]).tools
    names = [tool["function"]["name"] for tool in tools]
    assert len(set(names)) == len(names) and not {"reset", "step"} & set(names)
    for tool in TABLES[name]:
        properties = tool.schema["function"]["parameters"]["properties"]
        assert all(f"{{{key}}}" in tool.command for key in properties)
        assert tool.command.count("{") == len(properties)
        assert all(value["description"].strip() for value in properties.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_becomes_the_call_of_its_tool(command: str) -> None:
    call = find_call(CommandToolsGrammar(textcraft.TOOLS).format(command, "I think"))
    assert call is not None and (call.thought, call.name, call.arguments) == ("I think", *COMMANDS[command])


@given(command=st.text(alphabet='get craft using 123 oak,{}\n"<tool_call>', min_size=1), data=st.data())
def test_parse_inverts_format_for_every_table(command: str, data: Any) -> None:
    grammar = CommandToolsGrammar(TABLES[data.draw(st.sampled_from(sorted(TABLES)))])
    assert grammar.parse(grammar.format(command.strip())).command == command.strip()


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("get", {"amount": "many", "item": "log"}, "whole number"),
        ("get", {"amount": True, "item": "log"}, "whole number"),
        ("get", {"item": "log"}, r"get\(amount, item\)"),
        ("get", {"amount": 1, "item": ["log"]}, "must be a text"),
        ("inventory", {"item": "log"}, r"inventory\(\)"),
        ("act", {"command": "look"}, r"act\(action\)"),
        ("fly", {}, "There is no tool 'fly'. The tools are: get, craft, inventory, act"),
    ],
)
def test_a_wrong_call_is_an_invalid_action(name: str, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidAction, match=reason):
        command_of(CommandToolsGrammar(textcraft.TOOLS), name, arguments)


def test_quoted_numbers_and_unquoted_texts_are_accepted() -> None:
    tool = CommandTool("t", "", "{count} of {name}", {"count": Number(""), "name": ""})
    assert tool.command_for({"count": "07", "name": 5}) == "7 of 5"


def test_environments_without_commands_use_their_tools() -> None:
    assert tool_grammar(ENV_GRAMMARS).name == "tools"


@pytest.mark.parametrize("env_id", ["AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"])
def test_the_oracle_plays_by_tool_calls(env_id: str) -> None:
    env = gym.make(env_id, grammar="command_tools")
    base = text_env(env)
    called = set()
    for seed in range(10):
        env.reset(seed=seed)
        for command in base.oracle():
            call = find_call(action := base.grammar.format(command))
            called.add(call and call.name)
            _, _, terminated, _, info = env.step(action)
            assert info["invalid_action"] is None
        assert terminated and info["success"]
    assert len(called) >= 2 and "act" not in called


def test_actions_of_babyai_select_the_tools() -> None:
    names: Callable[[Any], set[str]] = lambda env: {  # noqa: E731
        tool["function"]["name"] for tool in tools_of(text_env(env).grammar)
    }
    primitive = gym.make("AgentGym/BabyAI-v0", grammar="command_tools", actions="primitive")
    assert "go_to" not in names(primitive) and "done" in names(primitive)
    assert "go_to" in names(gym.make("AgentGym/BabyAI-v0", grammar="command_tools"))
    grammar = tool_grammar(type(text_env(primitive)).grammars_for({"actions": "primitive"}))
    assert json.dumps(tools_of(grammar)) == json.dumps(tools_of(text_env(primitive).grammar))
