"""Bodies made from `/openapi.json`, through the whole path: the worker outlives them all."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.openapi import LIKELY, Api

FEW: dict[str, Any] = {"max_tokens": 4, "max_completion_tokens": 4}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_the_engine_takes_what_the_description_allows(http: httpx.Client, path: str) -> None:
    api = Api(http)
    fixed = {name: few for name, few in FEW.items() if name in api.bodies(path)["properties"]}

    @settings(
        max_examples=80,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate, Phase.shrink],
    )
    @given(api.valid(path, LIKELY[path], **fixed))
    def try_body(body: Any) -> None:
        api.check(path, http.post(path, json=body))

    try_body()
    assert http.get("/health/ready").status_code == 200
