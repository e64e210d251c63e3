"""A model server of a given latency in a process of its own, light enough not to be what is measured.

    python tests/benchmarks/latency_server.py SECONDS SPEC.yaml

prints its port. It answers as the tests' obedient server does and keeps the bodies it was sent:
GET /asked gives them, DELETE /asked forgets them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from obedient import ObedientServer

from quantext_graph.spec.loading import load_spec


class Mute(ObedientServer):
    """What an obedient server would say, without its sockets."""

    def __init__(self, spec: Path) -> None:
        self._spec, self._numbers = load_spec(spec), count()

    def say(self, body: dict) -> str:
        return self._text(next(self._numbers), body)


async def main(seconds: float, spec: Path) -> None:
    mute, asked = Mute(spec), []
    models = json.dumps({"data": [{"id": "tiny", "owned_by": "vllm", "max_model_len": 4096}]}).encode()

    async def answer(head: bytes, content: bytes) -> bytes:
        if head.startswith(b"GET /asked"):
            return b"[" + b",".join(asked) + b"]"
        if head.startswith(b"DELETE /asked"):
            asked.clear()
            return b"[]"
        if head.startswith(b"GET"):
            return models
        if b" /tokenize " in head:
            return json.dumps({"count": len(content) // 4}).encode()
        asked.append(content)
        text = mute.say(json.loads(content))
        await asyncio.sleep(seconds)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": len(content) // 4, "completion_tokens": 20, "total_tokens": 0}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny"}
        return json.dumps({**head, "choices": [choice], "usage": usage}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [
                    line.split(b":")[1]
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ]
                content = await reader.readexactly(int(lengths[0])) if lengths else b""
                body = await answer(head, content)
                ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(ok % len(body) + body)
                await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), Path(sys.argv[2])))
