"""Play TextCraft through `agentgym mcp`, with MCP's own client. It needs no model and no network.

    pip install 'agentgym-envs[mcp]'
    python examples/mcp_client.py [TASK]

A language model would read the observations and choose the tools; here, a script reads the recipes.
"""

import asyncio
import sys
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

SERVER = StdioServerParameters(
    command=sys.executable, args=["-m", "agentgym_envs", "mcp", "textcraft", "--show-reward"]
)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and print the new observation."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise SystemExit(result.content[0].text)
    print(f"{tool} {arguments}\n    {result.structured_content['observation'].replace(chr(10), chr(10) + '    ')}")
    return dict(result.structured_content)


async def main(task: str) -> None:
    """Take the ingredients of the first recipe and craft its item."""
    async with Client(stdio_client(SERVER)) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        state = await call(client, "reset", task=task, seed=0)
        recipe = state["observation"].splitlines()[1]
        item, _, ingredients = recipe.removeprefix("craft ").partition(" using ")
        for part in ingredients.split(", "):
            amount, _, name = part.partition(" ")
            await call(client, "get", amount=int(amount), item=name)
        state = await call(client, "craft", item=item, ingredients=ingredients)
        print("score:", state["score"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["textcraft/3"]))
