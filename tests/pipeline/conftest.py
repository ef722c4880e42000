"""A small real tokenizer and template, and a model over them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from edgeserve.model_info import Limits, ModelInfo
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.text.template import ChatTemplate
from edgeserve.text.tokenizer import Tokenizer
from edgeserve.ticket import Generator

SPECIALS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking %}<think>{% endif %}{% endif %}"
)
VOCAB = 300  # some ids of the network have no token, as in real models


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Bytes as tokens (id of byte b is not b); `<s>` goes before texts; 256..259 are special."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(SPECIALS)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    text = json.dumps(json.loads(made.to_str()))
    return Tokenizer(text, bos_id=made.token_to_id("<s>"), eos_ids=(made.token_to_id("</s>"),))


@pytest.fixture(scope="session")
def info() -> ModelInfo:
    return ModelInfo(
        identity="test/model",
        name="model",
        bundle="",
        key="",
        model_type="llama",
        family="llama",
        backend="cpu",
        isa="scalar",
        dtype="f32",
        kv_dtype="f32",
        threads=1,
        layers=1,
        vocab=VOCAB,
        context=100,
        eos_ids=(257,),
        limits=Limits(
            max_model_len=100,
            max_input_len=90,
            seats=4,
            pages=64,
            page_tokens=16,
            step_tokens=64,
            prefill_chunk=32,
        ),
    )


MakeModel = Callable[..., ServedModel]


@pytest.fixture
def make_model(info: ModelInfo, tokenizer: Tokenizer) -> MakeModel:
    def make(
        generator: Generator, *, chat: bool = True, info: ModelInfo = info, **options: object
    ) -> ServedModel:
        template = None
        if chat:
            template = ChatTemplate(CHATML, bos_token="<s>", eos_token="</s>", special_tokens={})
        return ServedModel(info, generator, tokenizer, template, ModelOptions(**options))  # type: ignore[arg-type]

    return make
