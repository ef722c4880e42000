"""Chat templates render as transformers does, and cannot hang or fill the process."""

from __future__ import annotations

import json
import resource
import threading
import time
from typing import Any

import pytest

from edgeserve.errors import CheckpointError, InvalidRequest
from edgeserve.text.template import ChatTemplate

USER = [{"role": "user", "content": "hi"}]


def render(source: str, messages: Any = USER, **settings: Any) -> str:
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(messages, **settings)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>hi</s>"),
        ("{%- if tools is none %}none{%- endif %}", "none"),
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),  # trim_blocks, lstrip_blocks
        (
            "{{ {'a': '<é&\\'>', 'b': [1, none, true]} | tojson }}",
            '{"a": "<é&\'>", "b": [1, null, true]}',
        ),
        ("{{ {'a': 1} | tojson(indent=2) }}", '{\n  "a": 1\n}'),
        ("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}!", "hi!"),
        (
            "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}"
            "{% endfor %}{{ ns.x }}",
            "4",
        ),
        ("{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "b1a2"),
        ("{{ 'a-b'.split('-') | join('+') }}{{ ', '.join(['x', 'y']) }}", "a+bx, y"),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m('a') ~ m(1) }}", "[a][1]"),
        ("{{ messages | map(attribute='role') | list }}", "['user']"),
        (
            "{{ 'abc'[::-1] }}{{ ' x '.strip() }}{{ 'a%s' % 'b' }}{{ 'x{}y'.format(3) }}",
            "cbaxabx3y",
        ),
        (
            "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{% endfor %}",
            "1/1True",
        ),
        ("{% set x %}{% for i in [1, 2] %}{{ i }},{% endfor %}{% endset %}{{ x }}", "1,2,"),
        ("{{ dict(a=1) }}{{ (1, 'b') }}{{ 7 // 2 }}{{ 2 ** 10 }}", "{'a': 1}(1, 'b')31024"),
        ("{{ strftime_now('%Y') | length }}", "4"),
    ],
)
def test_renders_what_templates_rely_on(source: str, expected: str) -> None:
    assert render(source) == expected


BOMBS = {
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
    "{% endfor %}",
    "loops in a set block": "{% set x %}{% for i in range(99999) %}{% for j in range(99999) %}ab"
    "{% endfor %}{% endfor %}{% endset %}",
    "repetition": "{{ 'a' * 10000000000 }}",
    "list repetition": "{{ [1] * 10000000000 }}",
    "doubling by ~": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubling by +": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "nested doubling": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "nested doubling of objects": "{% set ns = namespace(x={}) %}{% for i in range(60) %}"
    "{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x == 1 }}",
    "a tower": "{{ 9 ** (9 ** 9) }}",
    "squaring": "{% set ns = namespace(x=9) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}"
    "{% endfor %}{{ ns.x }}",
    "center": "{{ 'a' | center(10000000000) }}",
    "ljust": "{{ 'a'.ljust(10000000000) }}",
    "zfill": "{{ 'a'.zfill(10000000000) }}",
    "percent width": "{{ '%10000000000d' % 1 }}",
    "percent star": "{{ '%*d' % (10000000000, 1) }}",
    "format width": "{{ '{:10000000000}'.format(1) }}",
    "format nested width": "{{ '{:{}}'.format(1, 10000000000) }}",
    "format filter": "{{ '%10000000000d' | format(1) }}",
    "recursion": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "recursive loop": "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "join": "{{ range(99999) | list | join('a' * 100000) }}",
    "join method": "{{ ('a' * 100000).join(range(99999) | map('string')) }}",
    "join of many": "{% set a = 'a' * 1000000 %}{{ [a, a, a, a, a, a, a] | join }}",
    "replace": "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "replace filter": "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "indent": "{{ ('\n' * 1000000) | indent(1000000) }}",
    "tojson indent": "{{ [1] | tojson(indent=10000000000) }}",
    "slice": "{{ range(9) | slice(10000000000) | list }}",
    "batch": "{{ range(9) | batch(10000000000, 'x') | list }}",
    "round": "{{ 1 | round(1000000000, 'ceil') }}",
    "sum of lists": "{{ ([[1] * 1000] * 1000) | sum(start=[]) }}",
    "bytes": "{{ (1).to_bytes(100000000000) }}",
    "lipsum": "{{ lipsum(100000) }}",
    "big range": "{% for i in range(10 ** 12) %}{% endfor %}",
    "strftime": "{{ strftime_now('%10000000000d') }}",
    "output": "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("source", BOMBS.values(), ids=BOMBS.keys())
def test_a_template_that_runs_away_is_stopped(source: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.thread_time()
    with pytest.raises(InvalidRequest) as caught:
        render(source)
    assert time.thread_time() - start < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB
    assert caught.value.param == "messages"


def test_a_message_cannot_run_a_template_away() -> None:
    source = "{% for m in messages %}{{ m.content.replace('a', m.content) }}{% endfor %}"
    assert render(source) == "hi"
    with pytest.raises(InvalidRequest, match="more than"):
        render(source, [{"role": "user", "content": "a" * 100_000}])


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ (messages | map(attribute='__class__') | list)[0] }}",
        "{{ namespace.__init__ }}",
        "{{ self.__init__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
    ],
)
def test_the_sandbox_gives_nothing_away(source: str) -> None:
    try:
        text = render(source)
    except (InvalidRequest, CheckpointError):
        return
    assert text in ("", "[Undefined]") or "Undefined" in text


def test_a_refusal_of_the_template_keeps_its_words() -> None:
    with pytest.raises(InvalidRequest, match="roles must alternate") as caught:
        render("{{ raise_exception('roles must alternate') }}")
    assert caught.value.status == 400


def test_an_error_in_an_expression_is_the_requests() -> None:
    with pytest.raises(InvalidRequest, match="nothing"):
        render("{{ nothing.here }}")
    with pytest.raises(InvalidRequest):
        render("{{ messages[0].content + 1 }}")


@pytest.mark.parametrize(
    "source",
    [
        "{% for %}",
        "{{ x",
        "{% endfor %}",
        "{{ 1 | nofilter }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% if true %}" * 200 + "{% endif %}" * 200,
        "x" * ((1 << 20) + 1),
    ],
    ids=["tag", "open", "end", "filter", "deep", "blocks", "long"],
)
def test_a_template_that_cannot_be_compiled_is_a_checkpoint_error(source: str) -> None:
    with pytest.raises(CheckpointError, match="chat template"):
        ChatTemplate(source)


def test_parts_become_text_unless_the_template_reads_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat = [{"role": "user", "content": parts}]
    assert render("{{ messages[0].content }}", chat) == "a\nb"
    reads = (
        "{% for m in messages %}{% for p in m['content'] %}<{{ p.text }}>{% endfor %}{% endfor %}"
    )
    assert render(reads, chat) == "<a><b>"
    through = "{% set c = messages[0].content %}{% for p in c %}<{{ p.text }}>{% endfor %}"
    assert render(through, chat) == "<a><b>"
    with pytest.raises(InvalidRequest, match="image_url"):
        render("{{ messages[0].content }}", [{"role": "user", "content": [{"type": "image_url"}]}])


def test_arguments_in_json_text_become_objects() -> None:
    call = {"function": {"name": "f", "arguments": '{"a": "é"}'}}
    chat = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}{{ messages[0].content }}"
    assert render(source, chat) == '{"a": "é"}'
    call["function"]["arguments"] = "not json"
    assert render(source, chat) == '"not json"'


def test_named_templates_serve_tools() -> None:
    template = ChatTemplate("plain", named={"tool_use": "tools"})
    assert template.render(USER) == "plain"
    assert template.render(USER, tools=[{"type": "function"}]) == "tools"


def test_template_variables_of_the_request_reach_it() -> None:
    assert render("{{ enable_thinking }}", enable_thinking=False) == "False"


def test_continuing_the_last_message() -> None:
    source = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}"
    chat = [*USER, {"role": "assistant", "content": "so "}]
    settings = {"add_generation_prompt": False, "continue_final_message": True}
    assert render(source, chat, **settings) == "[hi][so"
    assert render(source.replace(" | trim", ""), chat, **settings) == "[hi][so "
    with pytest.raises(InvalidRequest):
        render(source, chat, continue_final_message=True)
    with pytest.raises(InvalidRequest):
        render("nothing", chat, **settings)
    with pytest.raises(InvalidRequest):
        render(source, [], **settings)


def test_many_threads_render_at_once() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content * 3 }}{% endfor %}")
    wrong: list[str] = []

    def work(mark: str) -> None:
        for _ in range(50):
            text = template.render([{"role": "user", "content": mark}] * 20)
            if text != mark * 60:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(chr(97 + i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_long_conversation_fits_the_budget() -> None:
    source = (
        "{%- for m in messages %}{%- set c = m.content | trim %}"
        "{{- '<|im_start|>' + m.role + '\n' + c + '<|im_end|>\n' }}{%- endfor %}"
    )
    chat = [{"role": "user", "content": json.dumps({"line": i}) * 40} for i in range(2000)]
    assert len(render(source, chat)) > 1_000_000
    assert len(render(source, [{"role": "user", "content": "x" * 6_000_000}])) > 6_000_000
