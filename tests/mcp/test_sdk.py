from __future__ import annotations

import subprocess
import sys

SERVER = """
import sys
from wsh.mcp.sdk import prepare
prepare()
import wsh.mcp.transport.endpoint
heavy = {"mcp.client", "mcp.server.mcpserver", "httpx2", "jsonschema", "wsh.policy.engine", "wsh.workspace.service"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from pydantic import BaseModel
assert not BaseModel.model_config
from mcp import ClientSession
from mcp.server import MCPServer
import mcp_types
assert mcp_types.client_request_adapter.validate_python({"method": "ping"}).method == "ping"
"""


def test_a_server_imports_only_its_part_of_the_sdk_and_others_get_all_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", SERVER], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
