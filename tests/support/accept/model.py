"""A model on loopback for real hosts of agents: says one command, hears what came of it, and says that it is done."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class StubModel:
    """`command` is what it says next; `results` is what hosts told it of their commands."""

    url: str
    command: str = "true"
    results: list[str] = field(default_factory=list)

    def speak_messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The protocol of Claude Code."""
        found = [
            part
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part.get("type") == "tool_result"
        ]
        self.results += [json.dumps(part["content"]) for part in found]
        has_tool = any(tool.get("name") == "Bash" for tool in asked.get("tools") or ())
        if has_tool and not found:
            block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
            words = json.dumps({"command": self.command, "description": "it helps"})
            delta = {"type": "input_json_delta", "partial_json": words}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
        stop = {"stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": []}
        return [
            {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    def speak_responses(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The protocol of Codex."""
        found = [item for item in asked["input"] if str(item.get("type")).endswith("call_output")]
        self.results += [json.dumps(item["output"]) for item in found]
        arguments = {"exec_command": {"cmd": self.command}, "shell_command": {"command": self.command}}
        name = next((tool["name"] for tool in asked["tools"] if tool.get("name") in arguments), "shell")
        item: dict[str, Any] = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": name,
            "arguments": json.dumps(arguments.get(name, {"command": ["sh", "-c", self.command]})),
        }
        if found:
            text = {"type": "output_text", "text": "done", "annotations": []}
            item = {"type": "message", "id": "m1", "role": "assistant", "content": [text]}
        response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
        ]


@contextmanager
def running_model() -> Iterator[StubModel]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            path = self.path.partition("?")[0]
            if path == "/v1/messages":
                events = model.speak_messages(asked)
            elif path == "/v1/responses":
                events = model.speak_responses(asked)
            else:
                events = []
            said = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode() or b"{}"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if events else "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_HEAD = do_POST

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    model = StubModel(f"http://127.0.0.1:{httpd.server_address[1]}")
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield model
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
