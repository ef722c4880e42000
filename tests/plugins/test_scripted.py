"""The scripted family: what it says, and that its parts fit together like any family's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import resolve_path
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.reference import Reference

EOS = 258


@pytest.fixture(scope="module")
def checkpoint(scripted_checkpoint: Path):
    return open_checkpoint(resolve_path(scripted_checkpoint))


@pytest.fixture(scope="module")
def family(checkpoint):
    return discover.load(checkpoint.model_type)


@pytest.fixture(scope="module")
def tokenizer(family, checkpoint):
    return family.tokenizer(checkpoint)


@pytest.fixture(scope="module")
def speak(family, checkpoint, tokenizer):
    """Runs the hook over plain logits, as the engine does."""
    hook = family.sampler(checkpoint).hook
    template = family.template(checkpoint)

    def run(*messages: dict, raw: str | None = None, limit: int = 80) -> str:
        text = template.render(messages) if raw is None else raw
        prompt = tokenizer.encode(text)
        ids = list(prompt)
        while len(ids) - len(prompt) < limit and ids[-1] != EOS:
            logits = np.zeros(288, np.float32)
            hook(ids, len(prompt), logits)
            ids.append(int(logits.argmax()))
        return tokenizer.decode(ids[len(prompt) :], skip_special=False)

    return run


def user(text: str) -> dict:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Good day.", "Good day.<|im_end|>"),
        ("say:a\nb", "a\nb<|im_end|>"),
        ("say:<think>x</think>4", "<think>x</think>4<|im_end|>"),
        ("script:hello", "Hello! How can I help you today?<|im_end|>"),
        ("script:empty", "<|im_end|>"),
        ("script:unicode", "naïve café – 日本語 👩‍👩‍👧 ✓<|im_end|>"),
        ("tokens=5 say:ab", "ababa<|im_end|>"),
        ("script:hello tokens=5", "Hello<|im_end|>"),
        ("repeat=1 say:ab", "ab" * 40),
        ("script:nope", "no script 'nope'; there are: agent, broken-utf8, empty, endless, fail, f"),
    ],
)
def test_the_last_user_message_chooses_what_is_said(speak, message: str, answer: str) -> None:
    history = [{"role": "system", "content": "s"}, user("script:tool"), user(message)]
    assert speak(*history).startswith(answer)


def test_a_prompt_without_markers_is_one_message(speak) -> None:
    assert speak(raw="say:raw") == "raw<|im_end|>"
    assert speak(raw="just text") == "just text<|im_end|>"


def test_an_agent_script_goes_on_after_a_tool_result(speak) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": []}
    result = {"role": "tool", "content": "22 degrees"}
    assert speak(user("script:agent")).startswith("<tool_call>\n{")
    assert speak(user("script:agent"), call, result) == "It is sunny in Paris.<|im_end|>"


def test_said_text_may_look_like_a_directive(speak) -> None:
    assert speak(user("say:script:hello tokens=3")) == "script:hello tokens=3<|im_end|>"


@pytest.mark.usefixtures("scripted_plugin")
def test_delays_are_slept_per_token() -> None:
    from edgeserve_scripted import encode
    from edgeserve_scripted.family import hook

    slept: list[float] = []
    force = hook({}, sleep=slept.append)
    prompt = encode("first_ms=50 delay_ms=20 say:abc")
    for index in range(3):
        force([*prompt, *encode("abc")[:index]], len(prompt), np.zeros(288, np.float32))
    assert slept == pytest.approx([0.07, 0.02, 0.02])


def test_a_script_can_fail_at_a_token(speak) -> None:
    with pytest.raises(RuntimeError, match="token 2 of this script fails"):
        speak(user("fail_at=2 say:abcdef"))
    assert speak(user("fail_at=2 say:abcdef"), limit=2) == "ab"


def test_a_free_script_leaves_the_logits_alone(family, checkpoint, tokenizer) -> None:
    before = np.random.RandomState(1).standard_normal(288).astype(np.float32)
    logits = before.copy()
    prompt = tokenizer.encode("script:free")
    family.sampler(checkpoint).hook(prompt, len(prompt), logits)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.usefixtures("scripted_plugin")
def test_scripts_of_a_checkpoint_come_beside_the_built_in_ones(tmp_path) -> None:
    from edgeserve_scripted import Script, write_checkpoint
    from edgeserve_scripted.script import choose, from_config
    from edgeserve_scripted.vocabulary import encode

    scripts = {"mine": Script(ids=(65, 259, 66), delay_ms=3.0), "hello": Script("Other.")}
    folder = write_checkpoint(tmp_path / "own", scripts)
    config = open_checkpoint(resolve_path(folder)).config["scripts"]
    known = from_config(config)
    script = choose(encode("script:mine"), known)
    assert [script.token(i) for i in range(4)] == [65, 259, 66, EOS]
    assert script.delay_ms == 3.0
    assert known["hello"].text == "Other." and "unicode" in known


@pytest.mark.usefixtures("scripted_plugin")
def test_the_tokenizer_is_the_one_the_plugin_describes(tokenizer) -> None:
    from edgeserve_scripted import encode

    text = "héllo <think>\n日本 </tool_call><|im_start|>x <|im_end|>\x00é"
    assert tokenizer.encode(text) == encode(text)
    assert tokenizer.decode(encode(text), skip_special=False) == text


def test_the_template_renders_tools_and_thinking(family, checkpoint) -> None:
    template = family.template(checkpoint)
    text = template.render(
        [{"role": "system", "content": "Be brief."}, user("Hi")],
        tools=[{"type": "function", "function": {"name": "f"}}],
        enable_thinking=False,
    )
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n{")
    assert text.endswith(
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert template.render([user("Hi")]) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_network_is_real(family, checkpoint) -> None:
    spec = family.spec(checkpoint)
    assert spec.eos_ids == (256, 258)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=spec.context))
    assert {weight.name for weight in graph.weights} == set(checkpoint.tensors())
    reference = Reference(graph, checkpoint.dequantise, pages=1)
    logits = reference.run([1, 2, 3], [(0, 3, [0])], [0, 1, 2])
    assert logits.shape == (3, 288)
    assert len({row.tobytes() for row in logits}) == 3
