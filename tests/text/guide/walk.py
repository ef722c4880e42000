"""A model that likes everything: tokens at random among those that a guide allows."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np

from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.guides import Follower

PATIENCE = 60  # tokens until the walk prefers what closes
MOST = 4000
CLOSERS = (b"}", b"]", b'"', b",", b":")
USEFUL = (b"a", b"b", b"@", b".", b"com")  # what a few patterns wait for


def byte_tokenizer() -> GuideTokenizer:
    """Each byte is a token; 256 and 257 end the text."""
    pieces = [bytes([i]) for i in range(256)] + [b"<eos>", b"<eot>", b""]
    return GuideTokenizer(pieces, (256, 257), (256, 257), lambda text: list(text.encode("utf-8")))


def allowed_ids(follower: Follower, tokenizer: GuideTokenizer) -> np.ndarray:
    mask = np.zeros(tokenizer.words, dtype=np.int32)
    follower.mask(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))


def walk(follower: Follower, tokenizer: GuideTokenizer, seed: int) -> bytes:
    """The text of one random walk that ended by itself."""
    rng, out = random.Random(seed), b""
    for step in range(MOST):
        ids = allowed_ids(follower, tokenizer)
        assert follower.failed is None, (follower.failed, out)
        assert len(ids), out
        token = _choose(ids, tokenizer, rng, is_late=step > PATIENCE)
        follower.accept(token)
        assert follower.failed is None, (follower.failed, out)
        if token in tokenizer.eos_ids:
            assert follower.may_end
            return out
        out += tokenizer.pieces[token]
    raise AssertionError(f"no end after {MOST} tokens: {out[:200]!r}")


def _choose(
    ids: np.ndarray, tokenizer: GuideTokenizer, rng: random.Random, *, is_late: bool
) -> int:
    ends = [i for i in tokenizer.eos_ids if i in ids]
    if ends and (is_late or rng.random() < 0.3):
        return ends[0]
    if is_late and rng.random() < 0.5:
        found = _among(ids, _tokens(tokenizer, USEFUL))
        if found:
            return rng.choice(found)
    if is_late or rng.random() < 0.1:
        for closer in _among(ids, _tokens(tokenizer, CLOSERS)):
            if rng.random() < 0.8:
                return closer
    return int(ids[rng.randrange(len(ids))])


@lru_cache
def _tokens(tokenizer: GuideTokenizer, texts: tuple[bytes, ...]) -> tuple[int, ...]:
    """The tokens of these texts, in their order, where the vocabulary has them."""
    places = {piece: i for i, piece in reversed(list(enumerate(tokenizer.pieces)))}
    return tuple(places[text] for text in texts if text in places)


def _among(ids: np.ndarray, few: tuple[int, ...]) -> list[int]:
    at = np.searchsorted(ids, few)
    return [i for i, k in zip(few, at.tolist(), strict=True) if k < len(ids) and ids[k] == i]
