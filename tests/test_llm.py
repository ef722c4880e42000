"""`LLM` as a user of the Python API meets it, over the real engine and the scripted family."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeserve import LLM, GenerationMetrics, SamplingParams
from edgeserve.errors import InvalidRequest, PromptTooLong

HELLO = "Hello! How can I help you today?"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def make_llm(scripted_checkpoint: Path, cache: Path) -> Callable[..., LLM]:
    def make(**options: Any) -> LLM:
        given = {"threads": 1, "pin": False, "max_kv_cache_capacity": 512, **options}
        return LLM(str(scripted_checkpoint), cache_dir=cache, **given)

    return make


@pytest.fixture(scope="module")
def shared(make_llm: Callable[..., LLM]) -> Iterator[LLM]:
    with make_llm() as llm:
        yield llm


@pytest.fixture
def llm(shared: LLM) -> Iterator[LLM]:
    """After each test, nothing of it is left in the engine."""
    yield shared
    until(lambda: shared.get_scheduling_metrics().resident == 0)
    assert shared.get_scheduling_metrics().queued == 0


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    stop = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < stop, "it did not happen in time"
        time.sleep(0.005)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


# Prompts ---------------------------------------------------------------------------------------


def test_generate_always_gives_a_list(llm: LLM) -> None:
    outputs = llm.generate("script:hello")
    assert [output.text for output in outputs] == [HELLO]
    output = outputs[0]
    assert output.finish_reason == "stop"
    assert output.prompt_tokens > len("script:hello")  # the template is around it
    assert len(output.token_ids) == len(HELLO) + 1  # with the end-of-sequence token


@pytest.mark.works("`LLM.generate` answers texts and conversations, all in one batch")
@pytest.mark.parametrize(
    "prompts",
    [
        ["script:hello", "say:two"],
        [user("script:hello"), user("say:two")],
        ["script:hello", user("say:two")],
    ],
)
def test_a_list_gives_one_output_per_prompt_in_order(llm: LLM, prompts: Any) -> None:
    assert [output.text for output in llm.generate(prompts)] == [HELLO, "two"]


def test_one_conversation_is_one_prompt(llm: LLM) -> None:
    assert [output.text for output in llm.generate(user("say:one"))] == ["one"]
    assert llm.chat(user("say:one")).text == "one"
    assert llm.chat("say:one").text == "one"


def test_no_prompts_give_no_outputs(llm: LLM) -> None:
    assert llm.generate([]) == []


def test_a_raw_text_is_continued_as_it_stands(llm: LLM) -> None:
    for outputs in (
        llm.complete("say:raw"),
        llm.generate("say:raw", apply_chat_template=False),
    ):
        assert [output.text for output in outputs] == ["raw"]
        assert outputs[0].prompt_tokens == len("say:raw")


def test_token_ids_are_used_as_they_are(llm: LLM) -> None:
    ids = list(b"say:ids")
    assert llm.complete(ids)[0].text == "ids"
    assert [output.text for output in llm.complete([ids, list(b"say:x")])] == ["ids", "x"]


def test_a_raw_completion_makes_16_tokens_and_a_chat_goes_on(llm: LLM) -> None:
    assert len(llm.complete("tokens=100 say:abc")[0].token_ids) == 16
    assert len(llm.chat("tokens=100 say:abc").token_ids) == 101


def test_choices_of_a_prompt_stand_together(llm: LLM) -> None:
    outputs = llm.generate(["say:a", "say:b"], SamplingParams(n=2))
    assert [(output.text, output.index) for output in outputs] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    with pytest.raises(InvalidRequest, match="generate"):
        llm.chat("say:a", SamplingParams(n=2))


@pytest.mark.parametrize(
    "prompts", [5, [5.5], [[]], [["a"]], [None], b"x", [b"x"], {"role": "user"}]
)
def test_what_is_no_prompt_is_refused(llm: LLM, prompts: Any) -> None:
    with pytest.raises((TypeError, InvalidRequest)):
        llm.generate(prompts)


def test_a_prompt_over_the_limit_raises_with_both_numbers(llm: LLM) -> None:
    with pytest.raises(PromptTooLong, match=r"600 tokens, 89 more .* 511"):
        llm.complete("x" * 600)


def test_parameters_that_are_no_sampling_params_are_refused(llm: LLM) -> None:
    with pytest.raises(TypeError, match="SamplingParams"):
        llm.generate("x", {"temperature": 0})  # type: ignore[arg-type]


# Answers ---------------------------------------------------------------------------------------


def test_stop_strings_end_an_answer_before_them(llm: LLM) -> None:
    output = llm.chat("script:hello", SamplingParams(stop=["can", "zzz"]))
    assert (output.text, output.finish_reason, output.stop_reason) == ("Hello! How ", "stop", "can")


def test_max_tokens_ends_an_answer(llm: LLM) -> None:
    output = llm.chat("script:endless", SamplingParams(max_tokens=8))
    assert (output.text, output.finish_reason) == ("all work", "length")


def test_logprobs_have_the_chosen_token_and_its_exact_bytes(llm: LLM) -> None:
    output = llm.chat("say:é", SamplingParams(logprobs=2))
    assert output.logprobs is not None
    assert len(output.logprobs) == len(output.token_ids)
    for token, candidates in zip(output.token_ids, output.logprobs, strict=True):
        assert token in [one.token_id for one in candidates]
        assert candidates == sorted(candidates, key=lambda one: -one.logprob)
    chosen = next(one for one in output.logprobs[0] if one.token_id == output.token_ids[0])
    assert (chosen.bytes, chosen.token) == (b"\xc3", "\ufffd")
    assert llm.chat("say:x").logprobs is None


def test_the_seed_of_an_answer_repeats_it(llm: LLM) -> None:
    first = llm.chat("script:free", SamplingParams(max_tokens=20))
    again = llm.chat("script:free", SamplingParams(max_tokens=20, seed=first.seed))
    assert again.token_ids == first.token_ids
    other = llm.chat("script:free", SamplingParams(max_tokens=20))
    assert other.token_ids != first.token_ids


def test_a_prompt_in_a_list_gets_what_it_gets_alone(llm: LLM) -> None:
    params = SamplingParams(max_tokens=20, seed=7)
    prompts = [f"script:free {i}" for i in range(12)]
    alone = [llm.chat(prompt, params).token_ids for prompt in prompts]
    assert [output.token_ids for output in llm.generate(prompts, params)] == alone


def test_equal_prompts_draw_apart_without_a_seed(llm: LLM) -> None:
    outputs = llm.generate(["script:free"] * 3, SamplingParams(max_tokens=20))
    assert len({tuple(output.token_ids) for output in outputs}) == 3


# Streams ---------------------------------------------------------------------------------------


def test_a_stream_says_what_a_whole_answer_says(llm: LLM) -> None:
    deltas = list(llm.generate_stream(user("script:unicode")))
    whole = llm.chat("script:unicode")
    assert "".join(delta.text for delta in deltas) == whole.text
    assert [token for delta in deltas for token in delta.token_ids] == whole.token_ids
    assert [delta.finish_reason for delta in deltas if delta.finished] == ["stop"]
    assert all(delta.prompt_tokens == whole.prompt_tokens for delta in deltas)


def test_a_stream_comes_while_it_is_made(llm: LLM) -> None:
    stream = llm.generate_stream(user("delay_ms=5 script:endless"), SamplingParams(max_tokens=400))
    started = time.monotonic()
    next(stream)
    assert time.monotonic() - started < 1
    stream.close()


def test_metrics_of_a_stream_are_told_once(llm: LLM) -> None:
    told: list[GenerationMetrics] = []
    stream = llm.generate_stream(user("script:hello"), on_metrics=told.append)
    list(stream)
    stream.close()
    assert len(told) == 1
    metrics = told[0]
    assert metrics.generated_tokens == len(HELLO) + 1
    assert metrics.decoded_tokens == len(HELLO)
    assert metrics.decode_tokens_per_second > 0
    assert 0 < metrics.time_to_first_token_s <= metrics.total_s


@pytest.mark.works(
    "`LLM.generate_stream`: cancelled or closed, it frees its row and tells its metrics"
)
@pytest.mark.parametrize("how", ["cancel", "close"])
def test_a_stopped_stream_frees_its_row_and_tells_its_metrics(llm: LLM, how: str) -> None:
    told: list[GenerationMetrics] = []
    stream = llm.generate_stream("delay_ms=2 script:endless", on_metrics=told.append)
    for _ in range(5):
        next(stream)
    getattr(stream, how)()
    list(stream)
    assert [metrics.cancelled for metrics in told] == [True]
    assert told[0].generated_tokens >= 5
    until(lambda: llm.get_scheduling_metrics().resident == 0)


def test_another_thread_in_next_wakes_on_cancel(llm: LLM) -> None:
    stream = llm.generate_stream("first_ms=300 delay_ms=2 script:endless")
    texts: list[str] = []
    reader = threading.Thread(target=lambda: texts.extend(delta.text for delta in stream))
    reader.start()
    stream.cancel()
    reader.join(5)
    assert not reader.is_alive()


def test_a_dropped_stream_frees_its_row(llm: LLM) -> None:
    stream = llm.generate_stream("delay_ms=2 script:endless")
    next(stream)
    del stream
    gc.collect()
    until(lambda: llm.get_scheduling_metrics().resident == 0)


def test_a_plugin_that_fails_is_an_error_of_its_request_alone(llm: LLM) -> None:
    stream = llm.generate_stream(user("script:fail"))
    with pytest.raises(Exception, match="failed"):
        list(stream)
    assert llm.chat("script:hello").text == HELLO


# Threads ---------------------------------------------------------------------------------------


@pytest.mark.works("`LLM` is called from several threads at once; their calls share the batch")
def test_calls_from_several_threads_run_in_one_batch(llm: LLM) -> None:
    """Three times as many as there are seats: the engine is shared, none is refused."""
    before = llm.get_scheduling_metrics()
    texts: dict[int, str] = {}

    def ask(number: int) -> None:
        texts[number] = llm.chat(f"delay_ms=1 say:answer {number}").text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts == {number: f"answer {number}" for number in range(24)}
    after = llm.get_scheduling_metrics()
    assert after.completed - before.completed == 24
    assert after.admitted_mid_flight > before.admitted_mid_flight


def test_more_prompts_than_seats_all_come(llm: LLM) -> None:
    prompts = [f"say:{number}" for number in range(50)]
    assert [output.text for output in llm.generate(prompts)] == [str(i) for i in range(50)]


# Life ------------------------------------------------------------------------------------------


def test_it_says_what_it_is(llm: LLM, scripted_checkpoint: Path, cache: Path) -> None:
    assert llm.model_dir == str(scripted_checkpoint)
    assert llm.model_id == scripted_checkpoint.name
    assert Path(llm.bundle_dir).is_relative_to(cache)
    assert llm.cache_dir == str(cache)
    assert llm.max_batch_size == 8
    assert llm.context == 512
    assert llm.context_cache_enabled


def test_the_context_cache_is_counted(llm: LLM) -> None:
    text = "say:" + "once upon a time there was a prompt " * 4
    llm.complete(text)
    assert llm.complete(text)[0].cached_tokens >= 64
    metrics = llm.get_context_cache_metrics()
    assert metrics is not None
    assert metrics.reused_tokens >= 64


def test_reuse_can_be_switched_off(make_llm: Callable[..., LLM]) -> None:
    with make_llm(context_cache_config={"enabled": False}) as llm:
        assert not llm.context_cache_enabled
        assert llm.get_context_cache_metrics() is None
        text = "say:" + "x" * 100
        llm.complete(text)
        assert llm.complete(text)[0].cached_tokens == 0


def test_close_waits_for_open_calls_and_then_refuses(make_llm: Callable[..., LLM]) -> None:
    llm = make_llm()
    stream = llm.generate_stream("delay_ms=2 tokens=50 say:abc")
    closer = threading.Thread(target=llm.close)
    closer.start()
    assert len([delta for delta in stream if delta.token_ids]) > 0
    closer.join(10)
    assert not closer.is_alive()
    for call in (llm.generate, llm.generate_stream, llm.complete, llm.chat):
        with pytest.raises(RuntimeError, match="closed"):
            call("x")
    llm.close()


def test_dropping_it_frees_its_threads(make_llm: Callable[..., LLM]) -> None:
    def engines() -> int:
        return sum(thread.name.startswith("edgeserve") for thread in threading.enumerate())

    before = engines()
    llm = make_llm()
    llm.complete("say:x")
    assert engines() > before
    del llm
    gc.collect()
    until(lambda: engines() == before)


def test_dropping_it_and_its_open_stream_frees_everything(make_llm: Callable[..., LLM]) -> None:
    before = threading.active_count()
    llm = make_llm()
    stream = llm.generate_stream("delay_ms=2 script:endless")
    next(stream)
    del llm
    gc.collect()
    assert next(stream).finish_reason is None  # the stream keeps the model
    del stream
    gc.collect()
    until(lambda: threading.active_count() <= before)


def test_a_fork_is_told_that_its_engine_stayed_behind(llm: LLM) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            llm.generate("say:a")
        except RuntimeError as error:
            code = 0 if "before a fork" in str(error) else 2
        finally:
            llm.close()
            llm._stop()  # as at the interpreter's exit
            os._exit(code)
    until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert llm.generate("say:a")[0].text == "a"
