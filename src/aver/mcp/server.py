"""The server: lists the tools and calls them, each in a thread, so that a wait keeps nobody else waiting."""

from __future__ import annotations

import io
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from aver.cli.output.text import Output
from aver.cli.session import Session
from aver.errors import AverError
from aver.mcp.tools import TOOLS, Tool
from aver.model.codec import decode
from aver.printable import printable
from aver.render.masking import Masking, to_bytes
from aver.version import __version__

INSTRUCTIONS = (
    "Runs batch jobs and says truthfully how each ended. submit with wait_s, then wait until is_settled; never poll "
    "list. The answer has the failures. When a run is not COMPLETED: recover (preview first) for OUT_OF_MEMORY and "
    "TIMEOUT, or fix and retry. Give submit a key, so that it can be repeated. Names: 7, 3/train."
)


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """The JSON schema of a record, as an object at its top."""
    _, parts = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    top = parts.pop(kind.__name__)
    return {**top, "$defs": parts} if parts else top


def described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema_of(tool.asked),
        output_schema=schema_of(tool.answer),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
    )


def call(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """Run one tool: a line that sums it up, then what it found; what a user can cause is an error in one line."""
    tool = TOOLS.get(name)
    if tool is None:
        return _refused(f"no tool {name!r}; there are {', '.join(TOOLS)}")
    try:
        asked = decode(tool.asked, arguments)
    except msgspec.ValidationError as error:
        return _refused(f"{name}: {error}")
    session = Session(output=Output(io.BytesIO(), io.BytesIO()))  # stdout is the protocol's
    try:
        answer = tool.function(session, asked)
    except AverError as error:
        return _refused(session.output.masking.whole(str(error)))
    masking = session.output.masking
    summary = printable(masking.whole(answer.summary))
    return types.CallToolResult(
        content=[types.TextContent(text=summary)], structured_content=_plain(msgspec.to_builtins(answer.found), masking)
    )


def _plain(value: Any, masking: Masking) -> Any:
    """The value with secrets masked in every text, and without bytes that JSON can't say."""
    if isinstance(value, str):
        return to_bytes(masking.whole(value)).decode("utf-8", "replace")
    if isinstance(value, dict):
        return {key: _plain(item, masking) for key, item in value.items()}
    return [_plain(item, masking) for item in value] if isinstance(value, list | tuple) else value


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=printable(text, keep="\n"))], is_error=True)


async def _list_tools(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[described(tool) for tool in TOOLS.values()])


async def _call_tool(_: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    return await anyio.to_thread.run_sync(call, params.name, params.arguments or {}, abandon_on_cancel=True)


async def _serve() -> None:
    server: Server[Any] = Server(
        "aver", version=__version__, instructions=INSTRUCTIONS, on_list_tools=_list_tools, on_call_tool=_call_tool
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def serve() -> None:
    """Answer on stdin and stdout until stdin ends."""
    anyio.run(_serve)
