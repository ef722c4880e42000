"""The tables of docs/python.md: each name of Edge-LLM's Python API does what its row says."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import edgeserve
from edgeserve import LLM, ContextCacheConfig, SamplingParams
from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError
from edgeserve.generation import GenerationRequest
from edgeserve.pipeline import arguments
from edgeserve.pipeline.call import Call, Chat
from tests.pipeline.conftest import MakeModel
from tests.pipeline.engine_double import EngineDouble

DOCS = Path(__file__).resolve().parents[2] / "docs" / "python.md"
FATES = {"same", "mapped", "accepted, no effect", "refused"}


class Row(NamedTuple):
    name: str
    fate: str
    note: str


def rows(title: str) -> list[Row]:
    section = DOCS.read_text(encoding="utf-8").partition(f"### {title}\n")[2].partition("\n##")[0]
    found = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]*) \|$", section, re.MULTILINE)
    assert found, title
    made = [Row(name, fate.strip(), note.strip()) for name, fate, note in found]
    assert {row.fate for row in made} <= FATES
    return made


def each(title: str) -> Any:
    found = rows(title)
    return pytest.mark.parametrize("row", found, ids=[row.name for row in found])


@each("Exports")
def test_exports(row: Row) -> None:
    if row.fate == "refused":
        with pytest.raises(ImportError, match=re.escape(row.note)):
            exec(f"from edgeserve import {row.name}")
    else:
        assert row.name in edgeserve.__all__
        assert getattr(edgeserve, row.name) is not None


ARGUMENTS: dict[str, Any] = {
    "cache_dir": "/elsewhere",
    "engine_cache_max_size_gb": 1.5,
    "max_input_len": 7,
    "max_batch_size": 3,
    "max_kv_cache_capacity": 99,
    "context_cache_config": {"enabled": False, "max_records": 5},
    "enable_in_flight_batching": False,
    "build_options": {"x": 1},
    "speculative_config": {"method": "mtp"},
    "ple_config": {"residency": "cached"},
}
OF_THE_CONSTRUCTOR_ITSELF = ("clear_engine_cache", "on_progress")


@pytest.mark.works("Names of Edge-LLM's Python API do what docs/python.md says of each")
@each("Constructor")
def test_arguments_of_the_constructor(row: Row) -> None:
    if row.name in OF_THE_CONSTRUCTOR_ITSELF:
        assert row.name in inspect.signature(LLM.__init__).parameters
        return
    plain = EngineOptions(checkpoint="m")
    given = {row.name: ARGUMENTS.get(row.name, 4)}
    if row.fate == "refused":
        with pytest.raises(EdgeserveError, match=re.escape(row.note)):
            LLM("m", **given)
        assert arguments.engine_options("m", {row.name: None}) == plain
    elif row.fate == "accepted, no effect":
        assert arguments.engine_options("m", given) == plain
    else:
        made = arguments.engine_options("m", given)
        assert made != plain
        if row.fate == "same" and row.name in EngineOptions.__struct_fields__:
            assert str(getattr(made, row.name)) == str(given[row.name])


def test_every_refused_and_ignored_argument_has_its_row() -> None:
    listed = {row.name for row in rows("Constructor")}
    assert arguments.REFUSED.keys() | arguments.NO_OP <= listed


@each("Members")
def test_members(row: Row) -> None:
    if row.fate == "refused":
        with pytest.raises(AttributeError, match=re.escape(row.note)):
            getattr(LLM.__new__(LLM), row.name)
    else:
        assert hasattr(LLM, row.name)
    if row.note in ("False", '"llm"'):
        assert repr(getattr(LLM, row.name)).strip("'") == row.note.strip('"')


@each("Arguments of generate")
def test_arguments_of_generate(row: Row) -> None:
    for function in (LLM.generate, LLM.generate_stream):
        assert row.name in inspect.signature(function).parameters


WISHES: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.4,
    "top_k": 5,
    "seed": 6,
    "max_tokens": 7,
    "enable_thinking": True,
    "reasoning_effort": "high",
    "disable_spec_decode": True,
    "num_logprobs": 3,
    "stop": "x",
    "logit_bias": {5: 1.0},
    "guided_decoding": ("regex", "a*"),
    "skip_special_tokens": False,
    "reuse_context": False,
    "cache_generated_tokens": False,
}


def sent(make_model: MakeModel, **wish: Any) -> GenerationRequest:
    """The request that reaches the engine, its id and a fresh seed aside."""

    async def run() -> GenerationRequest:
        engine = EngineDouble()
        prompt = Chat(messages=[{"role": "user", "content": "hi"}])
        params = SamplingParams(**wish)
        answer = await make_model(engine).start(Call(prompts=(prompt,), params=params))
        answer.cancel()
        return engine.requests[0]

    request = asyncio.run(run())
    seed = wish.get("seed", 0)
    sampler = msgspec.structs.replace(request.sampler, seed=seed)
    return msgspec.structs.replace(request, id=0, sampler=sampler)


@each("Fields of SamplingParams")
def test_fields_of_sampling_params(row: Row, make_model: MakeModel) -> None:
    wish = {row.name: WISHES[row.name]}
    if row.fate == "refused":
        with pytest.raises(EdgeserveError, match=re.escape(row.note)):
            SamplingParams(**wish)
    elif row.fate == "accepted, no effect":
        assert sent(make_model, **wish) == sent(make_model)
    else:
        assert sent(make_model, **wish) != sent(make_model)


SERVE: dict[str, Any] = {
    "host": "localhost",
    "port": 9,
    "served_model_name": "x",
    "api_key": "k",
    "max_queued_requests": 3,
    "queue_timeout": 4.0,
    "enable_auto_tool_choice": True,
    "reasoning_parser": "qwen3",
    "tool_call_parser": "hermes",
    "allowed_local_media_path": "/media",
}


@each("Arguments of serve")
def test_arguments_of_serve(row: Row) -> None:
    engine = EngineOptions(checkpoint="m")
    plain = arguments.serve_options(engine, {})
    given = {row.name: SERVE[row.name]}
    if row.fate == "refused":
        with pytest.raises(EdgeserveError, match=re.escape(row.note)):
            arguments.serve_options(engine, given)
        assert arguments.serve_options(engine, {row.name: ""}) == plain
    elif row.fate == "accepted, no effect":
        assert arguments.serve_options(engine, given) == plain
    else:
        assert arguments.serve_options(engine, given) != plain


@each("Fields of outputs")
def test_fields_of_outputs(row: Row) -> None:
    kind, _, field = row.name.partition(".")
    assert hasattr(getattr(edgeserve, kind), field)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_batch_size", 0),
        ("max_batch_size", True),
        ("max_input_len", -1),
        ("max_input_len", 2.0),
        ("max_kv_cache_capacity", "8"),
        ("dtype", "f99"),
        ("kv_dtype", 8),
        ("offline", "yes"),
        ("chat_template", 5),
        ("engine_cache_max_size_gb", 0),
        ("engine_cache_max_size_gb", float("inf")),
        ("engine_cache_max_size_gb", True),
        ("context_cache_config", {"unknown": 1}),
        ("context_cache_config", {"enabled": 1}),
        ("context_cache_config", 5),
    ],
)
def test_values_of_the_wrong_kind_are_value_errors(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}|ContextCacheConfig"):
        LLM("m", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["", "  ", None, 5])
def test_a_model_must_be_named(model: Any) -> None:
    with pytest.raises(ValueError, match="model"):
        LLM(model)


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(TypeError, match="max_batchsize"):
        LLM("m", max_batchsize=1)
    with pytest.raises(TypeError, match="prot"):
        arguments.serve_options(EngineOptions(checkpoint="m"), {"prot": 1})


def test_an_open_address_needs_a_key() -> None:
    engine = EngineOptions(checkpoint="m")
    with pytest.raises(EdgeserveError, match="api_key"):
        arguments.serve_options(engine, {"host": "0.0.0.0"})
    arguments.serve_options(engine, {"host": "0.0.0.0", "api_key": "k"})
    arguments.serve_options(engine, {"host": "0.0.0.0", "allow_unauthenticated": True})


def test_a_context_cache_config_may_be_an_object_or_a_mapping() -> None:
    config = ContextCacheConfig(enabled=True, max_records=1024)
    made = arguments.engine_options("m", {"context_cache_config": config})
    assert (made.context_reuse, made.context_cache_max_records) == (True, 1024)
    same = arguments.engine_options("m", {"context_cache_config": {"max_records": 1024}})
    assert same == made
