"""`/openapi.json` describes what is served: every route, and no answer that it does not tell of."""

from __future__ import annotations

from typing import Any

import falcon.inspect
import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edgeserve.protocol.openai.chat import ChatRequest
from edgeserve.protocol.openai.completion import CompletionRequest
from edgeserve.protocol.openai.tokenize import DetokenizeRequest, TokenizeRequest
from tests.http.stand_in import Running
from tests.openapi import LIKELY, Api

BODIES = {
    "/v1/chat/completions": ChatRequest,
    "/v1/completions": CompletionRequest,
    "/tokenize": TokenizeRequest,
    "/detokenize": DetokenizeRequest,
}
SLOW = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate, Phase.shrink],
)


@pytest.fixture(scope="module")
def api(http: httpx.Client) -> Api:
    return Api(http)


def test_every_route_is_described(server: Running, api: Api) -> None:
    app = server.application.asgi._app  # the one that Hangup surrounds
    served = {
        (route.path.replace("{name:path}", "{name}"), method.method.lower())
        for route in falcon.inspect.inspect_routes(app)
        for method in route.methods
        if method.method in ("GET", "POST")
        and not method.internal
        and not method.function_name.startswith("method_not")
    }
    described = {(path, name) for path, ops in api.document["paths"].items() for name in ops}
    assert described == served


@pytest.mark.parametrize("path", BODIES)
def test_every_field_is_described(path: str, api: Api) -> None:
    assert set(api.bodies(path)["properties"]) == set(BODIES[path].__struct_fields__)
    assert api.bodies(path)["additionalProperties"] is False


@pytest.mark.works("`/openapi.json`: bodies made from it never get a status it does not tell of")
@pytest.mark.parametrize("path", BODIES)
def test_bodies_of_the_description_are_answered_as_it_says(path: str, api: Api) -> None:
    statuses: list[int] = []

    @SLOW
    @given(api.valid(path, LIKELY[path]))
    def try_body(body: Any) -> None:
        answer = api.http.post(path, json=body)
        api.check(path, answer)
        statuses.append(answer.status_code)

    try_body()
    assert statuses.count(200) > 10, "most of the description means something"


@pytest.mark.parametrize("path", BODIES)
def test_a_body_with_one_wrong_field_is_answered_as_it_says(path: str, api: Api) -> None:
    required = api.bodies(path).get("required", [])
    follows = api.validator(api.bodies(path)).is_valid

    @SLOW
    @given(api.broken(path), st.sampled_from(["", *required]))
    def try_body(body: Any, missing: str) -> None:
        body = {name: value for name, value in body.items() if name != missing}
        answer = api.http.post(path, json=body)
        api.check(path, answer)
        if answer.status_code == 200:
            assert follows(body), f"taken, and not described: {body}"
        elif answer.status_code == 400:
            assert answer.json()["error"]["param"] is not None, answer.text

    try_body()


def test_reads_of_the_description_are_answered_as_it_says(api: Api) -> None:
    for path, operations in api.document["paths"].items():
        if "get" not in operations:
            continue
        answer = api.http.get(path.replace("{name}", "stand-in"))
        content = operations["get"]["responses"][str(answer.status_code)]["content"]
        assert answer.headers["content-type"].partition(";")[0] in content


def test_the_description_is_sound(api: Api) -> None:
    assert api.document["openapi"] == "3.1.0"
    for schema in api.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
