"""Bodies with tools that real clients sent (tests/data/clients/tools.json, long texts cut)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

RECORDED = Path(__file__).parents[1] / "data" / "clients" / "tools.json"
SENT = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.works("Requests with tools as openai, instructor, llm, the AI SDK and pi send them")
@pytest.mark.parametrize("sent", SENT, ids=[one["client"].split(",")[0] for one in SENT])
def test_a_recorded_body_is_answered(http: httpx.Client, sent: dict[str, Any]) -> None:
    answer = http.post("/v1/chat/completions", json=sent["body"])
    assert answer.status_code == 200, answer.text
    if sent["body"].get("stream"):
        assert answer.text.endswith("data: [DONE]\n\n") and '"error"' not in answer.text
    else:
        assert answer.json()["choices"][0]["finish_reason"] == "stop"
