"""Model servers for tests, over real sockets: they misbehave in the ways that model servers do.

`OpenAIServer` and `OllamaServer` answer with what they are told, one `Act` a request, then with
`then` for ever. `OllamaServer(behind=...)` puts a real model behind Ollama's API.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from quantext_graph.models.llamacpp_server import EmbeddedServer


@dataclass(frozen=True)
class Act:
    """One answer: what is said and how it goes wrong."""

    text: str | tuple[str, ...] = ""  # one candidate, or several
    finish: str | tuple[str, ...] | None = "stop"
    status: int = 200
    error: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # sent as it is
    message: dict[str, Any] = field(default_factory=dict)
    logprobs: dict[str, float] | None = None
    seconds: float = 0.0  # silence before the answer
    drip: float = 0.0  # seconds between bytes
    reset: bool = False  # the connection is cut in mid-reply
    tokens: tuple[int, int] = (10, 5)


Script = Act | Callable[[dict[str, Any]], Act]


class _Server:
    """A server in threads. `asked` holds the bodies of its chat requests, `raw` their bytes; it stops with
    the `with` block."""

    model = "tiny"

    def __init__(self, *acts: Script, then: Script = Act('{"stance": "FAVOR"}'), port: int = 0) -> None:
        self.acts, self.then = deque(acts), then
        self.asked: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = self._now = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", port), self._handler())
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def settled(self, connections: int, *, seconds: float = 5.0) -> int:
        """Connections that are open: `connections`, or what is there after so many seconds."""
        end = time.monotonic() + seconds
        while len(self._open) != connections and time.monotonic() < end:
            time.sleep(0.01)
        return len(self._open)

    def next_act(self, body: dict[str, Any], headers: dict[str, str]) -> Act:
        with self._lock:
            self.asked.append(body)
            self.headers.append(headers)
            act = self.acts.popleft() if self.acts else self.then
        return act if isinstance(act, Act) else act(body)

    def get(self, path: str) -> dict[str, Any] | None:
        raise NotImplementedError

    def reply(self, path: str, body: dict[str, Any], act: Act) -> dict[str, Any]:
        raise NotImplementedError

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                with server._lock:
                    server._open.add(self.connection)

            def finish(self) -> None:
                with server._lock:
                    server._open.discard(self.connection)
                super().finish()

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                found = server.get(self.path)
                _send(self, Act(status=200 if found is not None else 404), json.dumps(found or {}).encode())

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                server.raw.append(raw)
                body = json.loads(raw)
                with server._lock:
                    server._now += 1
                    server.most_at_once = max(server.most_at_once, server._now)
                try:
                    act = server.next_act(body, {name.lower(): value for name, value in self.headers.items()})
                    time.sleep(act.seconds)
                    content = act.body
                    if content is None:
                        found = server.reply(self.path, body, act) if act.status == 200 else act.error
                        content = json.dumps(found).encode()
                    _send(self, act, content)
                finally:
                    with server._lock:
                        server._now -= 1

        return Handler


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        pass  # clients that hang up are part of the tests


def _send(handler: BaseHTTPRequestHandler, act: Act, content: bytes) -> None:
    handler.send_response(act.status)
    for name, value in {"Content-Type": "application/json", **act.headers}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if act.reset:
        handler.wfile.write(content[: len(content) // 2])
        linger = struct.pack("ii", 1, 0)  # closing sends RST
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.close_connection = True
        handler.connection.close()
    elif act.drip:
        for at in range(len(content)):
            handler.wfile.write(content[at : at + 1])
            time.sleep(act.drip)
    else:
        handler.wfile.write(content)


class OpenAIServer(_Server):
    """Speaks the OpenAI API at `url`. `owner` is what it says it is: "vllm", "llamacpp", ..."""

    def __init__(self, *acts: Script, owner: str = "somebody", **options: Any) -> None:
        self.owner = owner
        super().__init__(*acts, **options)
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def get(self, path: str) -> dict[str, Any] | None:
        if path != "/v1/models":
            return None
        return {"data": [{"id": self.model, "owned_by": self.owner, "max_model_len": 4096}]}

    def reply(self, path: str, body: dict[str, Any], act: Act) -> dict[str, Any]:
        texts = (act.text,) if isinstance(act.text, str) else act.text
        finishes = act.finish if isinstance(act.finish, tuple) else (act.finish,) * len(texts)
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": text, **act.message},
                "finish_reason": finish,
                **({"logprobs": _logprobs(act.logprobs)} if act.logprobs else {}),
            }
            for index, (text, finish) in enumerate(zip(texts, finishes, strict=True))
        ]
        given, written = act.tokens
        usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": choices,
        } | {"usage": usage}


def _logprobs(likely: dict[str, float]) -> dict[str, Any]:
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in likely.items()]
    return {"content": [{**top[0], "top_logprobs": top}]}


class OllamaServer(_Server):
    """Speaks Ollama's API at `url`; with `behind`, an embedded model answers what is not acted."""

    def __init__(self, *acts: Script, behind: EmbeddedServer | None = None, **options: Any) -> None:
        self._behind = behind
        super().__init__(*acts, **options)
        self.url = f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> dict[str, Any] | None:
        return {"models": [{"name": f"{self.model}:latest"}]} if path == "/api/tags" else None

    def reply(self, path: str, body: dict[str, Any], act: Act) -> dict[str, Any]:
        head = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "done": True}
        if self._behind is not None:
            return head | self._asked_behind(self._behind, body)
        given, written = act.tokens
        found = head | {
            "message": {"role": "assistant", "content": act.text, **act.message},
            "done_reason": act.finish,
            "prompt_eval_count": given,
            "eval_count": written,
        }
        if act.logprobs:
            found["logprobs"] = _logprobs(act.logprobs)["content"]
        return found

    def _asked_behind(self, server: EmbeddedServer, body: dict[str, Any]) -> dict[str, Any]:
        options = body.get("options") or {}
        asked = {"messages": body["messages"], "max_tokens": options.get("num_predict", 64)}
        asked |= {name: options[name] for name in ("temperature", "seed", "min_p", "stop") if name in options}
        if body.get("format"):
            schema = {"name": "reply", "schema": body["format"]}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        if body.get("logprobs"):
            asked |= {"logprobs": True, "top_logprobs": body.get("top_logprobs", 5)}
        headers = {"Authorization": f"Bearer {server.key}"}
        url = f"{server.address}/v1/chat/completions"
        reply = httpx.post(url, json=asked, headers=headers, timeout=120, trust_env=False).json()
        choice = reply["choices"][0]
        found = {
            "message": {"role": "assistant", "content": choice["message"]["content"]},
            "done_reason": choice["finish_reason"],
            "prompt_eval_count": reply["usage"]["prompt_tokens"],
            "eval_count": reply["usage"]["completion_tokens"],
        }
        if choice.get("logprobs"):
            found["logprobs"] = choice["logprobs"]["content"]
        return found
