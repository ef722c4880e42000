"""Real models: ids and prompts are what the models' own files give under transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgeserve.checkpoint import gguf_config
from edgeserve.checkpoint.gguf_file import GgufFile
from edgeserve.text.gguf_tokenizer import convert
from edgeserve.text.template import ChatTemplate
from edgeserve.text.tokenizer import Tokenizer
from tests.data.text.conversations import CHATS, strings
from tests.models import QWEN_CODER, SMOLLM2, find_model

DATA = Path(__file__).parents[1] / "data" / "text"
MODELS = {"smollm2": SMOLLM2, "qwen2.5-coder": QWEN_CODER}


@pytest.fixture(scope="module", params=MODELS)
def model(
    request: pytest.FixtureRequest, model_cache: Path
) -> tuple[dict[str, Any], GgufFile, Tokenizer]:
    recorded = json.loads((DATA / f"{request.param}.json").read_text("utf-8"))
    file = GgufFile(find_model(MODELS[request.param], model_cache).path)
    return recorded, file, Tokenizer(convert(file.metadata))


def test_ids_of_a_converted_gguf_are_those_of_the_models_own_tokenizer(
    model: tuple[dict[str, Any], GgufFile, Tokenizer],
) -> None:
    recorded, _, tokenizer = model
    texts = strings()
    assert len(texts) == len(recorded["ids"]) == 300
    wrong = [t for t, ids in zip(texts, recorded["ids"], strict=True) if tokenizer.encode(t) != ids]
    assert wrong == []


def test_token_bytes_join_to_the_text(
    model: tuple[dict[str, Any], GgufFile, Tokenizer],
) -> None:
    _, file, tokenizer = model
    pieces = tokenizer.token_bytes(len(file.metadata["tokenizer.ggml.tokens"]))
    for text in strings():
        ids = tokenizer.encode(text)
        joined = b"".join(pieces[i] for i in ids).decode()
        assert joined == tokenizer.decode(ids, skip_special=False)


def test_prompts_are_those_of_transformers(
    model: tuple[dict[str, Any], GgufFile, Tokenizer],
) -> None:
    recorded, file, _ = model
    template = ChatTemplate(gguf_config.chat_templates(file.metadata)["default"])
    for chat, expected in zip(CHATS, recorded["chats"], strict=True):
        assert template.render(**chat) == expected


@pytest.mark.parity
@pytest.mark.parametrize("name", MODELS)
def test_recorded_prompts_are_what_transformers_renders_now(name: str, model_cache: Path) -> None:
    from tests.data.text.record_text import render

    file = GgufFile(find_model(MODELS[name], model_cache).path)
    recorded = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    assert render(gguf_config.chat_templates(file.metadata)["default"], {}) == recorded["chats"]
