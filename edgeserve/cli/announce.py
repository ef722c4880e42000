"""What `serve` says when the model is ready: the URL, and one request to try."""

from __future__ import annotations

import json
import sys


def example(url: str, *, model: str, chat: bool, key: bool) -> str:
    """One curl command that works as it is pasted."""
    body: dict[str, object] = {"model": model, "max_tokens": 64}
    if chat:
        body["messages"] = [{"role": "user", "content": "What is the capital of Japan?"}]
        path = "/v1/chat/completions"
    else:
        body["prompt"] = "The capital of Japan is"
        path = "/v1/completions"
    auth = ' -H "Authorization: Bearer $EDGESERVE_API_KEY"' if key else ""
    quoted = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
    return f"curl {url}{path} -H 'Content-Type: application/json'{auth} -d '{quoted}'"


def announce(url: str, *, model: str, chat: bool = True, key: bool = False) -> None:
    print(f"Serving {model} at {url}", file=sys.stderr)
    print(f"  {example(url, model=model, chat=chat, key=key)}", file=sys.stderr, flush=True)
