"""Guides with the native core, in the order that an engine's turn has: several constrained and
free rows in one batch, masks made while the step runs."""

from __future__ import annotations

import re

from edgeserve._native.core import Reason
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Vocabulary
from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.guides import Follower, Guides
from edgeserve.generation import Finish
from edgeserve.guide import Guide
from edgeserve.text.guide.grammar import make_grammar
from edgeserve.text.guide.wish import Wish
from tests.native.network import VOCAB, Bench, greedy

PIECES = [bytes([97 + id % 26]) for id in range(VOCAB - 1)] + [b"<eos>"]
EOS = VOCAB - 1
PROMPT = [5, 6, 7]


def turn(bench: Bench, guides: Guides, rows: dict[Sequence, Follower | None]) -> None:
    work = [(row, row.pending) for row in rows if not row.finish]
    guided = [(row, rows[row]) for row, _ in work if rows[row] is not None]
    before = {row: row.generated for row, _ in work}
    round = guides.begin([follower for _, follower in guided if follower is not None])
    outcome = bench.core.run(work, 1)
    if outcome.reason is Reason.LOGITS:
        for (row, _), mask in zip(guided, round.masks(), strict=True):
            row.set_mask(mask)
        bench.core.sample()
    for row, follower in guided:
        if follower is not None:
            for token in row.tokens().tolist()[row.prompt_length + before[row] :]:
                follower.accept(token)
            assert follower.failed is None


def test_constrained_and_free_rows_share_a_batch() -> None:
    regexes = ["(ab)+c", "[x-z]{6}", "hello", "[a-m]*n"]
    guides = Guides(GuideTokenizer(PIECES, (EOS,), (EOS,)))
    bench = Bench()
    rows: dict[Sequence, Follower | None] = {}
    try:
        for id, regex in enumerate(regexes, 1):
            grammar = make_grammar(Wish(kind="regex", source=regex, param="p"))
            settings = {
                "max_tokens": 400,
                "eos_ids": (EOS,),
                "vocabulary": Vocabulary(PIECES, [EOS]),
            }
            row = bench.sequence(PROMPT, id, **settings)
            row.constrained = True
            rows[row] = guides.open(Guide(kind="regex", grammar=grammar))
        free = bench.sequence(PROMPT, 9, max_tokens=12, vocabulary=Vocabulary(PIECES, [EOS]))
        rows[free] = None
        for _ in range(500):
            if all(row.finish for row in rows):
                break
            turn(bench, guides, rows)
    finally:
        guides.close()
    for row, regex in zip(rows, regexes, strict=False):
        text = b"".join(PIECES[i] for i in row.tokens().tolist()[3:] if i != EOS).decode()
        assert row.finish == Finish.STOP
        assert re.fullmatch(regex, text)
    assert free.tokens().tolist()[3:] == greedy(PROMPT, 12)
