from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import Resolved
from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.guides import Follower, Guides
from edgeserve.text.guide.maker import GuideMaker
from edgeserve.text.guide.wish import read_wish
from edgeserve.text.tokenizer import Tokenizer
from tests.text.guide.walk import byte_tokenizer


@pytest.fixture(scope="session")
def maker() -> Iterator[GuideMaker]:
    maker = GuideMaker()
    yield maker
    maker.close()


@pytest.fixture(scope="session")
def model_tokenizer(default_model: Resolved) -> Tokenizer:
    return Tokenizer.from_checkpoint(open_checkpoint(default_model))


@pytest.fixture(scope="session")
def model_guides(model_tokenizer: Tokenizer) -> Iterator[Guides]:
    tokenizer = GuideTokenizer(
        model_tokenizer.token_bytes(),
        model_tokenizer.special_ids,
        model_tokenizer.eos_ids,
        lambda text: model_tokenizer.encode(text, special=False),
    )
    guides = Guides(tokenizer)
    yield guides
    guides.close()


@pytest.fixture(scope="session")
def byte_guides() -> Iterator[Guides]:
    guides = Guides(byte_tokenizer())
    yield guides
    guides.close()


@pytest.fixture(params=["bytes", "model"])
def guides(request: pytest.FixtureRequest) -> Guides:
    found: Guides = request.getfixturevalue(f"{request.param.rstrip('s')}_guides")
    return found


@pytest.fixture
def follow(guides: Guides, maker: GuideMaker) -> Callable[..., Follower]:
    """A follower of what a body asks for, for both tokenizers."""

    def open_(**surfaces: Any) -> Follower:
        wish = read_wish(surfaces)
        assert wish is not None
        return guides.open(maker.make_now(wish))

    return open_
