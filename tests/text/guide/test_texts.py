"""Regexes, choices, grammars and tags: a walk ends in a text of the language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from edgeserve.engine.guides import Follower, Guides
from edgeserve.errors import InvalidRequest
from edgeserve.text.guide.maker import GuideMaker
from edgeserve.text.guide.wish import Wish
from tests.text.guide.walk import walk

Follow = Callable[..., Follower]

REGEXES = [
    "",
    "a",
    "^(yes|no)$",
    "^a|b$",
    "[0-9]{3}-[0-9]{4}",
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}",
    r"\w+@\w+\.(com|org)",
    r"a/b\n\"c\\",
    r"(ab|abc)(c|d)?",
    r"[^\x00-\x7f]{2}",
    r"(?:x|y)*z",
    r"(?i)hello",
    r"[\s\S]{0,5}!",
    r"a{2,}b{0,3}c?",
    r"\$\{[a-z]+\}",
    r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,5})?",
    r"(\(\d\))+",
    r"é€😀",
    r"\^\$",
    r"cost\$",
]


@pytest.mark.parametrize("regex", REGEXES)
def test_a_walk_through_a_regex_matches_it_whole(
    regex: str, follow: Follow, guides: Guides
) -> None:
    for seed in range(3):
        if not regex:
            continue  # an empty regex asks for nothing
        text = walk(follow(guided_decoding={"regex": regex}), guides.tokenizer, seed)
        assert re.search(rf"\A(?:{regex})\Z" if "(?i)" not in regex else regex, text.decode())


@pytest.mark.parametrize(
    "choice",
    [
        ["yes", "no"],
        ["a", "ab", "abc"],
        ["a/b", "c\n", '"é"', "\\", "[x]", "(?:y)", "^$", "😀"],
        ["", "x"],
        ["same", "same"],
        [f"option {i}" for i in range(500)],
    ],
)
def test_a_choice_is_one_of_its_texts(choice: list[str], follow: Follow, guides: Guides) -> None:
    seen = set()
    for seed in range(8):
        text = walk(follow(guided_decoding={"choice": choice}), guides.tokenizer, seed).decode()
        assert text in choice
        seen.add(text)
    assert len(seen) > 1 or len(set(choice)) == 1


def test_every_choice_can_be_reached(byte_guides: Guides, maker: GuideMaker) -> None:
    choice = ["a", "ab", "abc", "b\n", ""]
    guide = maker.make_now(Wish(kind="choice", source=choice, param="p"))
    for text in choice:
        assert accepts(byte_guides, guide, text)
    assert not accepts(byte_guides, guide, "abcd")
    assert not accepts(byte_guides, guide, "b")


def accepts(guides: Guides, guide: Any, text: str) -> bool:
    follower = guides.open(guide)
    data = list(text.encode())
    return (
        follower.allowed(data) == len(data)
        and not any(map(follower.accept, data))
        and (follower.may_end)
    )


CALC = r"""
root  ::= expr "="            # an entry
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" expr ")"
ident ::= [a-z] [a-z0-9_]{0,5}
num   ::= [0-9]+ ("." [0-9]+)?
"""
JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-cA-C] [0-9a-fA-F]{3})
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,1})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
# Grammar, some texts of it, some that are not.
GRAMMARS: list[tuple[str, list[str], list[str]]] = [
    ('root ::= "a"', ["a"], ["", "b", "aa"]),
    ('root ::= "yes" | "no"', ["yes", "no"], ["yesno"]),
    ('root ::= w "x"\nw ::= [a-z]+', ["ax", "xx", "abcx"], ["x", "a"]),
    ('root ::= w "x" root | "."\nw ::= [a-z]+', [".", "axx.", "ax."], ["x.", "a."]),
    ('root ::= "(" root ")" | ""', ["", "()", "((()))"], ["(", "())"]),
    ('root ::= ("ab" | "abc") "c"', ["abc", "abcc"], ["ab"]),
    ('root ::= ("ab" | "abc") "c" root?', ["abc", "abcc", "abcabcc"], ["ab"]),
    ('root ::= [^a-c"\\]]{2,3}', ["xy", "d[é"], ["a", "xb", "wxyz"]),
    ('root ::= "\\u00e9\\x41\\n\\t\\"\\\\"', ['éA\n\t"\\'], ["e"]),
    ('root ::= ("a" "b"?){2} # twice\n', ["aa", "aba", "abab"], ["a", "abb"]),
    ("root ::= . .", ["ab", "é\n"], ["a", "abc"]),
    ('root ::= item-one ("," item-one)*\nitem-one ::= [a-z]{1,}', ["a", "a,bc"], ["", "a,"]),
    ('root ::=\n  "a"\n  | "b" (\n "c" |\n "d" )\n', ["a", "bc", "bd"], ["b"]),
    ("root ::= [0-9-] [-a] [\\]^]", ["1-^", "-a]"], ["1b^"]),
    ('root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]),
    ('root ::= "a"{,2} "b"{2,}', ["bb", "aabbb"], ["aaabb", "b"]),
    ('root ::= root "a" | "b"', ["b", "baa"], ["a"]),
    (CALC, ["a=", "(a+1.5)*x_9="], ["a", "(a=", "1.="]),
    (JSON, ["{}", '{"a": [1, "x\\n", {"b":null}]} ', '{"a":-1.5e3}'], ["[]", '{"a"}']),
]


@pytest.mark.parametrize(("grammar", "good", "bad"), GRAMMARS)
def test_a_grammar_accepts_its_texts_and_no_others(
    grammar: str, good: list[str], bad: list[str], byte_guides: Guides, maker: GuideMaker
) -> None:
    guide = maker.make_now(Wish(kind="ebnf", source=grammar, param="p"))
    assert [text for text in good if not accepts(byte_guides, guide, text)] == []
    assert [text for text in bad if accepts(byte_guides, guide, text)] == []


def test_walks_through_a_grammar_of_json_parse(follow: Follow, guides: Guides) -> None:
    for seed in range(4):
        text = walk(follow(guided_decoding={"ebnf": JSON}), guides.tokenizer, seed)
        assert isinstance(json.loads(text), dict), text


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ("", "root"),
        ('start ::= "a"', "root"),
        ("root ::= x", "line 1: rule 'x' is not defined"),
        ('root ::= "a"\n\nroot ::= "b"', "line 3: rule 'root' is defined twice"),
        ('root ::= "a', "line 1: a closing quote is missing"),
        ("root ::= [a-", "line 1: ']' is missing"),
        ("root ::= [z-a]", "ends before it begins"),
        ("root ::= []", "no characters"),
        ('root ::= ("a"', "')' is missing"),
        ('root ::= "a" )', "line 1"),
        ('root ::= "a"{3,1}', "less than the lower"),
        ('root ::= "a"{x}', "a bound is written"),
        ('root ::= "a"{999999999}', "at most"),
        ('root ::= "\\q"', "is not an escape"),
        ('root ::= "\\uD800"', "is no character"),
        ('root ::= "\\x4"', "is no character"),
        ('root ::= (= "a")', "look-ahead"),
        ("root ::= @", "not expected"),
        ('root = "a"', "expected"),
        ("root ::= " + "(" * 100 + '"a"' + ")" * 100, "nested more than"),
        ('root ::= root "a"', "nothing satisfies"),
    ],
)
def test_a_broken_grammar_is_told_where(grammar: str, why: str, maker: GuideMaker) -> None:
    with pytest.raises(InvalidRequest) as caught:
        maker.make_now(Wish(kind="ebnf", source=grammar, param="guided_decoding.ebnf"))
    assert why in caught.value.message
    assert caught.value.param == "guided_decoding.ebnf"


TAG_SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


def tags(**more: Any) -> dict[str, Any]:
    content = {"type": "json_schema", "json_schema": TAG_SCHEMA}
    return {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f="],
            "tags": [{"begin": f"<f={n}>", "content": content, "end": "</f>"} for n in "ab"],
            **more,
        },
    }


LEGACY = {
    "type": "structural_tag",
    "triggers": ["<f="],
    "structures": [{"begin": f"<f={n}>", "schema": TAG_SCHEMA, "end": "</f>"} for n in "ab"],
}


@pytest.mark.parametrize("form", [tags(), LEGACY])
def test_a_trigger_opens_a_tag_and_text_is_free(
    form: dict[str, Any], byte_guides: Guides, maker: GuideMaker
) -> None:
    guide = maker.make_now(Wish(kind="structural_tag", source=form, param="p"))
    good = ["", "free <text>", '<f=a>{"x":1}</f>', 'hi\n<f=b>{"x": -2}</f> and <f=a>{"x":3}</f>.']
    bad = ["<f=c>", "<f=a>", '<f=a>{"x":1}', '<f=a>{"y":1}</f>', 'a <f=a>{"x":"1"}</f>']
    assert [text for text in good if not accepts(byte_guides, guide, text)] == []
    assert [text for text in bad if accepts(byte_guides, guide, text)] == []


def test_one_tag_can_be_required_and_be_the_last(byte_guides: Guides, maker: GuideMaker) -> None:
    form = tags(at_least_one=True, stop_after_first=True)
    guide = maker.make_now(Wish(kind="structural_tag", source=form, param="p"))
    assert accepts(byte_guides, guide, 'so: <f=a>{"x":1}</f>')
    assert not accepts(byte_guides, guide, "so")
    assert not accepts(byte_guides, guide, '<f=a>{"x":1}</f> more')


def test_tags_follow_their_schema(follow: Follow, guides: Guides) -> None:
    form = tags(at_least_one=True, stop_after_first=True)
    follower = follow(guided_decoding={"structural_tag": form})
    for byte in b"<f=a>":
        follower.accept(
            next(i for i, p in enumerate(guides.tokenizer.pieces) if p == bytes([byte]))
        )
    text = walk(follower, guides.tokenizer, 1)
    assert text.endswith(b"</f>")
    jsonschema.validate(json.loads(text.removesuffix(b"</f>")), TAG_SCHEMA)


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ({"type": "structural_tag", "format": {"type": "sequence"}}, "p.format.type"),
        (tags(triggers=[]), "p.format.triggers"),
        (tags(triggers=["<g="]), "p.format"),
        (tags(tags=[]), "p.format"),
        (tags(at_least_one=1), "p.format.at_least_one"),
        (tags(x=1), "p.format.x"),
        ({"structures": [], "triggers": ["a"]}, "p"),
        ({"triggers": ["a"]}, "p.structures"),
    ],
)
def test_a_broken_tag_is_a_400(form: dict[str, Any], param: str, maker: GuideMaker) -> None:
    with pytest.raises(InvalidRequest) as caught:
        maker.make_now(Wish(kind="structural_tag", source=form, param="p"))
    assert caught.value.param == param


def test_a_keyword_in_a_tag_is_named_with_its_place(maker: GuideMaker) -> None:
    form = {
        "triggers": ["<"],
        "structures": [{"begin": "<a>", "schema": {"not": {"type": "null"}}, "end": ""}],
    }
    with pytest.raises(InvalidRequest) as caught:
        maker.make_now(Wish(kind="structural_tag", source=form, param="p"))
    assert caught.value.param == "p.structures[0].schema"
    assert "'not' at #" in caught.value.message
