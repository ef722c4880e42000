"""What an engine does with a guide: masks, cutting, forks, rollback, forced tokens, ends."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import numpy as np
import pytest

from edgeserve.engine.digits import At, Place, places
from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.guides import Follower, Guides
from edgeserve.guide import Guide, Kind
from edgeserve.text.guide.grammar import make_grammar
from edgeserve.text.guide.wish import Wish
from tests.text.guide.walk import allowed_ids, byte_tokenizer, walk

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def guides() -> Iterator[Guides]:
    guides = Guides(byte_tokenizer())
    yield guides
    guides.close()


def guide(kind: Kind, source: object, **more: object) -> Guide:
    grammar = make_grammar(Wish(kind=kind, source=source, param="p"))
    return Guide(kind=kind, grammar=grammar, **more)  # type: ignore[arg-type]


def feed(follower: Follower, text: str) -> None:
    for byte in text.encode():
        follower.accept(byte)


def test_the_end_is_allowed_only_when_the_grammar_is_satisfied(guides: Guides) -> None:
    follower = guides.open(guide("regex", "ab?"))
    assert 256 not in allowed_ids(follower, guides.tokenizer)
    follower.accept(ord("a"))
    assert set(allowed_ids(follower, guides.tokenizer)) == {ord("b"), 256, 257}
    assert follower.may_end
    assert not follower.is_complete
    follower.accept(ord("b"))
    assert follower.is_complete
    assert set(allowed_ids(follower, guides.tokenizer)) == {256, 257}


def test_each_end_token_ends_and_more_of_them_change_nothing(guides: Guides) -> None:
    for end in (256, 257):
        follower = guides.open(guide("choice", ["a"]))
        for token in (ord("a"), end, end, 256):
            follower.accept(token)
        assert follower.failed is None
        follower.rollback(3)
        assert set(allowed_ids(follower, guides.tokenizer)) == {256, 257}


def test_nothing_is_enforced_before_the_mark(guides: Guides) -> None:
    follower = guides.open(guide("choice", ["yes"], start_after=ord("#")))
    assert follower.is_waiting
    assert len(allowed_ids(follower, guides.tokenizer)) >= guides.tokenizer.vocab
    feed(follower, "anything { at all #")
    assert not follower.is_waiting
    assert set(allowed_ids(follower, guides.tokenizer)) == {ord("y")}
    feed(follower, "yes")
    assert follower.is_complete
    follower.rollback(4)  # into the time before the mark
    assert follower.is_waiting
    feed(follower, "#ye")
    assert set(allowed_ids(follower, guides.tokenizer)) == {ord("s")}


def test_a_token_that_is_not_allowed_fails_its_row_alone(guides: Guides) -> None:
    wrong = guides.open(guide("choice", ["a"]))
    right = guides.open(guide("choice", ["a"]))
    wrong.accept(ord("b"))
    assert wrong.failed is not None
    masks = guides.masks([wrong, right])
    assert not masks[0].any()
    assert masks[1].any()
    assert right.failed is None
    assert "dead end" in wrong.failed.message


def test_a_grammar_that_grows_too_large_on_its_way_fails_its_row_alone(guides: Guides) -> None:
    heavy = guides.open(guide("regex", r"(\w{1,900}|\p{L}{1,900}){1,900}" * 3))
    light = guides.open(guide("regex", "a{400}"))
    for _ in range(400):
        masks = guides.masks([heavy, light])
        assert masks[1].any()
        if heavy.failed is None:
            heavy.accept(ord("a"))
        light.accept(ord("a"))
        if heavy.failed is not None:
            break
    assert light.failed is None
    assert heavy.failed is not None
    assert "too complex" in heavy.failed.message
    assert heavy.failed.status == 400


def test_a_grammar_that_no_token_can_follow_fails_clearly() -> None:
    pieces = [b"a", b"<eos>"]
    guides = Guides(GuideTokenizer(pieces, (1,), (1,)))
    try:
        follower = guides.open(guide("choice", ["ab"]))
        mask = np.zeros(guides.tokenizer.words, dtype=np.int32)
        follower.mask(mask)
        if follower.failed is None:
            follower.accept(0)
            follower.mask(mask)
        assert follower.failed is not None
        assert not mask.any()
    finally:
        guides.close()


def test_masks_of_many_rows_equal_those_of_each(guides: Guides) -> None:
    rng = random.Random(1)
    texts = ['{"name": "é', '{"name": "x", "age": 1', "{", "", '{"name": "x", "age": 123456}']
    rows = [guides.open(guide("json_schema", PERSON)) for _ in texts]
    rows += [guides.open(guide("regex", "[a-c]{3}")), guides.open(guide("json_object", None))]
    for row, text in zip(rows, texts, strict=False):
        feed(row, text)
    rng.shuffle(rows)
    together = guides.begin(rows).masks()
    for row, mask in zip(rows, together, strict=True):
        alone = np.zeros_like(mask)
        row.mask(alone)
        assert (alone == mask).all()


def test_any_cut_of_a_text_into_forks_and_rollbacks_gives_the_same_masks(guides: Guides) -> None:
    text = '{"name": "Ann \\" é", "age": 12}'
    data = list(text.encode())
    follower = guides.open(guide("json_schema", PERSON))
    masks = []
    for token in data:
        masks.append(allowed_ids(follower, guides.tokenizer).tolist())
        follower.accept(token)
    for cut in range(len(data)):
        one = guides.open(guide("json_schema", PERSON))
        feed_ids(one, data[:cut])
        other = one.fork()
        feed_ids(one, data[cut:])
        assert allowed_ids(other, guides.tokenizer).tolist() == masks[cut]
        one.rollback(len(data) - cut)
        assert allowed_ids(one, guides.tokenizer).tolist() == masks[cut]
        feed_ids(other, data[cut:])
        assert other.may_end
        assert one.failed is None


def feed_ids(follower: Follower, ids: list[int]) -> None:
    for token in ids:
        follower.accept(token)


def test_forks_go_their_own_ways(guides: Guides) -> None:
    leader = guides.open(guide("json_schema", PERSON))
    feed(leader, '{"name"')
    texts = {walk(leader.fork(), guides.tokenizer, seed) for seed in range(6)}
    assert len(texts) > 1
    for text in texts:
        json.loads(b'{"name"' + text)


def test_allowed_counts_without_moving(guides: Guides) -> None:
    follower = guides.open(guide("choice", ["abc", "abd"]))
    assert follower.allowed(list(b"abx")) == 2
    assert follower.allowed(list(b"abd")) == 3
    assert set(allowed_ids(follower, guides.tokenizer)) == {ord("a")}


def test_forced_tokens_are_offered_only_when_asked(guides: Guides) -> None:
    shape = {"type": "object", "properties": {"key": {"type": "null"}}, "required": ["key"]}
    for jump in (True, False):
        follower = guides.open(guide("json_schema", shape, jump_forward=jump))
        feed(follower, '{"')
        forced = bytes(follower.forced())
        assert forced == (b'key"' if jump else b"")
    follower = guides.open(guide("json_schema", shape, jump_forward=True))
    feed(follower, '{"')
    feed_ids(follower, follower.forced())
    assert follower.failed is None
    assert follower.forced() in ([], [ord(":")])


def test_forced_tokens_spell_as_the_tokenizer_does() -> None:
    """A longer token that could still come is left to the model."""
    pieces = [bytes([i]) for i in range(256)] + [b"<eos>", b"abc", b"ab", b"cd"]
    words = {b"abc": 257, b"ab": 258, b"cd": 259}

    def encode(text: str) -> list[int]:
        ids, data = [], text.encode()
        while data:
            best = max((w for w in words if data.startswith(w)), key=len, default=data[:1])
            ids.append(words.get(best, data[0]))
            data = data[len(best) :]
        return ids

    guides = Guides(GuideTokenizer(pieces, (256,), (256,), encode))
    try:
        follower = guides.open(guide("regex", "abcd+", jump_forward=True))
        assert follower.forced()[:1] == [257]
    finally:
        guides.close()


def test_a_compiled_grammar_is_kept(guides: Guides) -> None:
    one = guides.open(guide("regex", "kept"))
    before = len(guides._compiled)
    other = guides.open(guide("regex", "kept"))
    assert len(guides._compiled) == before
    feed(one, "ke")
    assert set(allowed_ids(other, guides.tokenizer)) == {ord("k")}


def test_special_tokens_are_never_text(guides: Guides) -> None:
    follower = guides.open(guide("regex", "[\\s\\S]{3}"))
    assert not {256, 257, 258} & set(allowed_ids(follower, guides.tokenizer).tolist())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", Place()),
        ("12", Place(At.INTEGER, 2)),
        ("-12.50", Place(At.FRACTION, 4)),
        ("1.5e+07", Place(At.POWER, 2)),
        ('{"12', Place(At.STRING, 0)),
        ('{"1\\"2', Place(At.STRING, 0)),
        ('{"a":12', Place(At.INTEGER, 2)),
        ("[123,4", Place(At.INTEGER, 1)),
        ("[12 ", Place()),
    ],
)
def test_digits_are_counted_in_any_cut(text: str, place: Place) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        assert places([data[:cut], data[cut:]]) == place


def test_a_vocabulary_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="end-of-sequence"):
        GuideTokenizer([b"a"], (), ())


def test_random_rollbacks_leave_no_trace(guides: Guides) -> None:
    rng = random.Random(3)
    follower = guides.open(guide("json_object", None))
    text: list[int] = []
    for _ in range(300):
        if text and rng.random() < 0.3:
            back = rng.randint(1, min(5, len(text)))
            follower.rollback(back)
            del text[-back:]
        ids = [i for i in allowed_ids(follower, guides.tokenizer).tolist() if i < 256]
        if not ids:
            break
        token = rng.choice(ids)
        follower.accept(token)
        text.append(token)
    fresh = guides.open(guide("json_object", None))
    feed_ids(fresh, text)
    assert (
        allowed_ids(fresh, guides.tokenizer).tolist()
        == allowed_ids(follower, guides.tokenizer).tolist()
    )
