"""A model that likes everything: tokens at random among those that a guide allows."""

from __future__ import annotations

import random

import numpy as np

from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.guides import Follower

PATIENCE = 150  # tokens until the walk prefers what closes
MOST = 4000
CLOSERS = [b"}", b"]", b'"', b",", b":"]
USEFUL = [b"a", b"b", b"@", b".", b"com"]  # what a few patterns wait for


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
        found = [i for i in ids.tolist() if tokenizer.pieces[i] in USEFUL]
        if found:
            return int(rng.choice(found))
    if is_late or rng.random() < 0.1:
        few = {tokenizer.pieces[i]: i for i in ids[:512].tolist()}
        for closer in CLOSERS:
            if closer in few and rng.random() < 0.8:
                return int(few[closer])
    return int(ids[rng.randrange(len(ids))])
