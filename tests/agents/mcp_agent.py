"""An agent that calls `aver mcp` through the SDK's own client over stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
from mcp import Client, StdioServerParameters


class Agent:
    """A client that counts what it asks and reads, and holds each answer against its tool's schema."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._schemas: dict[str, Any] = {}
        self.calls = 0
        self.read_bytes = 0

    async def tools(self) -> dict[str, Any]:
        found = {tool.name: tool for tool in (await self._client.list_tools()).tools}
        self._schemas = {name: tool.output_schema for name, tool in found.items()}
        return found

    async def __call__(self, tool: str, **arguments: Any) -> tuple[str, Any]:
        """The line that sums it up, and what was found."""
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        self._count(result)
        jsonschema.validate(result.structured_content, self._schemas[tool])
        (text,) = result.content
        assert "\n" not in text.text
        return text.text, result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The words of a refusal."""
        result = await self._client.call_tool(tool, arguments)
        assert result.is_error
        self._count(result)
        return str(result.content[0].text)

    async def settled(self, number: int) -> tuple[str, Any]:
        """Wait as often as it takes."""
        while True:
            line, found = await self("wait", id=str(number))
            if found["is_settled"]:
                return line, found

    def _count(self, result: Any) -> None:
        self.calls += 1
        self.read_bytes += len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def with_agent(folder: Path, story: Callable[[Agent], Awaitable[None]]) -> None:
    """Start `aver mcp` as an agent's settings do, and live through the story."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "aver", "mcp"], cwd=folder, env=dict(os.environ))

    async def live() -> None:
        async with Client(server) as client:
            agent = Agent(client)
            await agent.tools()
            await story(agent)

    anyio.run(live)
