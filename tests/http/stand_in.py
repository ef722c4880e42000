"""A front without a worker: real HTTP, protocol and pipeline over a generator that replays.

The generator answers with the text that the prompt asks for: a chat's or completion's prompt is a
JSON object `{"say": [pieces], "finish": "stop"|"length", ...}`, or any other text, which is echoed
byte by byte. Tokens are bytes; 256 ends a text.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from edgeserve.config import EngineOptions, ServeOptions
from edgeserve.errors import Busy, Cancelled, EdgeserveError, EngineUnavailable
from edgeserve.generation import (
    Admitted,
    Failed,
    Finish,
    Finished,
    GenerationRequest,
    Piece,
    Pieces,
    PromptLogprobs,
    TokenLogprob,
    Usage,
)
from edgeserve.http.app import Application
from edgeserve.http.front import ReplicaCount, State
from edgeserve.http.listen import bind
from edgeserve.http.server import HttpServer
from edgeserve.model_info import Limits, ModelInfo
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.stats import EngineStats
from edgeserve.ticket import Desk, Ticket

EOS = 256
NAME = "stand-in"
INFO = ModelInfo(
    identity="example/stand-in",
    name=NAME,
    bundle="",
    key="0123456789abcdef",
    model_type="scripted",
    family="scripted",
    backend="cpu",
    isa="scalar",
    dtype="f32",
    kv_dtype="f32",
    threads=1,
    layers=1,
    vocab=257,
    context=4096,
    eos_ids=(EOS,),
    limits=Limits(
        max_model_len=4096,
        max_input_len=4095,
        seats=4,
        pages=256,
        page_tokens=16,
        step_tokens=512,
        prefill_chunk=512,
    ),
)


class Bytes:
    """A tokenizer whose tokens are bytes."""

    bos_id = None
    eos_ids = (EOS,)
    special_ids = frozenset([EOS])
    size = 257

    def id_of(self, token: str) -> None:
        """No marker of a parser is a token of its own."""

    def encode(self, text: str, *, special: bool = True) -> list[int]:  # noqa: ARG002
        return list(text.encode())

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:  # noqa: ARG002
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def token_bytes(self, rows: int | None = None) -> list[bytes]:  # noqa: ARG002
        return [bytes([i]) for i in range(256)] + [b"<eos>"]


class LastMessage:
    """A chat template that renders the last message alone."""

    all_sources = "<tool_call> <think>"  # of the kind that is read as Hermes and Qwen 3
    takes_tools = True

    def render(self, messages: Sequence[Mapping[str, Any]], **_: object) -> str:
        return str(messages[-1]["content"])


class Replay:
    """The generator: replays what prompts ask for, on the loop that uses it."""

    def __init__(self) -> None:
        self._desk = Desk()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.requests: list[GenerationRequest] = []
        self.cancelled: list[int] = []
        self.waiting = 0  # requests that wait for a seat

    def next_id(self) -> int:
        return self._desk.next_id()

    async def submit(self, request: GenerationRequest) -> Ticket:
        self.requests.append(request)
        wish = wish_of(request)
        if wish.get("refuse") == "busy":
            raise Busy("all seats are taken", retry_after_s=7)
        if wish.get("refuse") == "dead":
            raise EngineUnavailable("the engine was stopped")
        if wish.get("refuse") == "fault":
            raise ZeroDivisionError("a secret text")
        ticket = self._desk.open(request.id, self._cancel)
        self._tasks[request.id] = asyncio.create_task(self._run(request, wish))
        self.waiting += 1
        try:
            await ticket.admission()
        except BaseException:
            ticket.cancel()
            raise
        finally:
            self.waiting -= 1
        return ticket

    def _cancel(self, request_id: int) -> None:
        self.cancelled.append(request_id)
        task = self._tasks.pop(request_id, None)
        if task is not None:
            task.cancel()
        self._desk.deliver(Failed(request_id, Cancelled().info()))

    async def _run(self, request: GenerationRequest, wish: Mapping[str, Any]) -> None:
        await asyncio.sleep(wish.get("queue_s", 0))
        self._desk.deliver(Admitted(request.id, wish.get("cached", 0)))
        if request.prompt_logprobs is not None:
            told = tuple(logprob(token, request.prompt_logprobs) for token in request.prompt[1:])
            self._desk.deliver(PromptLogprobs(request.id, told))
        tokens = 0
        for number, text in enumerate(wish["say"] * wish.get("times", 1)):
            await asyncio.sleep(wish.get("delay_s", 0))
            if number == wish.get("fail_at"):
                error = EngineUnavailable("the worker died")
                self._desk.deliver(Failed(request.id, error.info()))
                return
            for choice in range(request.choices):
                tokens += self._say(request, choice, text)
        for choice in range(request.choices):
            tokens += self._end(request, choice, wish.get("finish", "stop"))
        usage = Usage(len(request.prompt), tokens, wish.get("cached", 0), 0.01, 0.02, 0.1, tokens)
        self._desk.deliver(Finished(request.id, usage))

    def _say(self, request: GenerationRequest, choice: int, text: str) -> int:
        tokens = tuple(text.encode())
        self._send(request, Piece(choice, text, tokens, self._logprobs(request, tokens)))
        return len(tokens)

    def _end(self, request: GenerationRequest, choice: int, finish: str) -> int:
        if finish == "length":
            self._send(request, Piece(choice, "", finish=Finish.LENGTH))
            return 0
        logprobs = self._logprobs(request, (EOS,))
        piece = Piece(choice, "", (EOS,), logprobs, finish=Finish.STOP, stop=EOS)
        self._send(request, piece)
        return 1

    def _logprobs(
        self, request: GenerationRequest, tokens: Sequence[int]
    ) -> tuple[TokenLogprob, ...]:
        if request.logprobs is None:
            return ()
        return tuple(logprob(token, request.logprobs) for token in tokens)

    def _send(self, request: GenerationRequest, piece: Piece) -> None:
        self._desk.deliver(Pieces(request.id, (piece,)))


def logprob(token: int, alternatives: int) -> TokenLogprob:
    """The token itself comes second of its alternatives; the last one is impossible."""
    others = [(token + 1) % 256, token, *((token + i) % 256 for i in range(2, 60))]
    top = [(other, -0.5 - i) for i, other in enumerate(others[:alternatives])]
    if len(top) > 2:
        top[-1] = (top[-1][0], float("-inf"))
    return TokenLogprob(token, -1.5, tuple(top))


def wish_of(request: GenerationRequest) -> dict[str, Any]:
    text = bytes(i for i in request.prompt if i < 256).decode(errors="replace")
    try:
        wish = json.loads(text)
        if isinstance(wish, dict) and isinstance(wish.get("say", []), list):
            return {"say": [], **wish}
    except ValueError:
        pass
    return {"say": list(text[: request.max_tokens])}


class StandIn:
    """The front."""

    name = NAME

    def __init__(self) -> None:
        self.state: State = "ready"
        self.reason = ""
        self.replay = Replay()
        self.model: ServedModel | None = ServedModel(
            INFO,
            self.replay,
            Bytes(),  # type: ignore[arg-type]
            LastMessage(),  # type: ignore[arg-type]
            ModelOptions(name=NAME),
        )
        self.replicas = ReplicaCount(1, 1)

    @property
    def queued(self) -> int:
        return self.replay.waiting

    def stats(self) -> list[EngineStats]:
        return [EngineStats()]


class Running:
    """A server on a real socket, in a thread with a loop of its own."""

    def __init__(self, front: StandIn, options: ServeOptions, drain_timeout_s: float) -> None:
        self.front = front
        self.sock = bind("127.0.0.1", 0)
        self.port = int(self.sock.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.error: BaseException | None = None
        self._options = options
        self._drain_timeout_s = drain_timeout_s
        self._started = threading.Event()
        self.thread = threading.Thread(target=self._main)
        self.thread.start()
        assert self._started.wait(10)

    def _main(self) -> None:
        import uvloop

        try:
            uvloop.run(self._run())
        except BaseException as error:
            self.error = error
            self._started.set()

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.application = Application(self.front, self._options)
        self.server = HttpServer(self.application, self.sock, drain_timeout_s=self._drain_timeout_s)
        self.loop.call_soon(self._started.set)
        await self.server.run()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)

    def join(self) -> None:
        self.thread.join(20)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error

    def until(self, check: Any, timeout_s: float = 5.0) -> None:
        """Wait until `check()` holds."""
        import time

        end = time.monotonic() + timeout_s
        while not check():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.005)


@contextmanager
def running(
    front: StandIn | None = None, *, drain_timeout_s: float = 5.0, **settings: Any
) -> Iterator[Running]:
    options = ServeOptions(engine=EngineOptions(checkpoint="x"), **settings)
    server = Running(front or StandIn(), options, drain_timeout_s)
    try:
        yield server
    finally:
        if server.thread.is_alive():
            server.stop()
            server.stop()
        server.join()
    assert not server.application.serving.drain.answers, "every answer is let go"
    assert server.application.serving.drain.active == 0, "every request is counted out"


def say(*pieces: str, **more: Any) -> str:
    """The text of a prompt that makes the stand-in say these pieces."""
    return json.dumps({"say": list(pieces), **more}, ensure_ascii=False)


__all__ = ["NAME", "EdgeserveError", "Running", "StandIn", "running", "say"]
