"""From options to a `Runtime`: checkpoint, family, limits, bundle, backend; in this order, or an
error that names what is missing. Runs once, in a thread of the process that owns the engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from edgeserve._native.stream import Vocabulary
from edgeserve.backends.contract import Backend
from edgeserve.bundle.bundle import Bundle
from edgeserve.bundle.ensure import ensure
from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import Resolved, resolve, resolve_path
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import PAGE_TOKENS, EngineOptions
from edgeserve.engine.runtime import Runtime
from edgeserve.errors import BadConfig
from edgeserve.family import discover
from edgeserve.family.contract import Family, GraphOptions, ModelSpec, Option, Sampler
from edgeserve.graph.values import Graph
from edgeserve.log import Log
from edgeserve.model_info import FamilyOption, Limits, ModelInfo
from edgeserve.sampling import SamplerDefaults
from edgeserve.worker.limits import Room, longest_sequence, make_limits
from edgeserve.worker.memory import available_bytes

if TYPE_CHECKING:
    from edgeserve.engine.guide_tokenizer import GuideTokenizer

log = Log("worker")

Progress = Callable[[str, int, int], None]

BACKENDS = {"cpu": "edgeserve.backends.cpu.backend:CpuBackend"}


def load_runtime(
    options: EngineOptions, progress: Progress | None = None, identity: str = "", name: str = ""
) -> Runtime:
    """A model that is ready to run. With `identity` and `name`, `options.checkpoint` is a path that
    a front has resolved already."""
    tell = progress or _silent
    found = _find(options, tell, identity, name)
    checkpoint = open_checkpoint(found)
    family = discover.load(options.family or checkpoint.model_type)
    backend = load_backend(options.backend)
    bundle = ensure(checkpoint, family, backend, options, tell, info=_note, name=found.name)
    try:
        return _load(options, found, family, backend, bundle)
    except BaseException:
        bundle.close()
        raise


def load_backend(name: str) -> Backend:
    if name not in BACKENDS:
        raise BadConfig(f"there is no backend '{name}'; choose one of {', '.join(BACKENDS)}")
    module, _, made = BACKENDS[name].partition(":")
    return cast(Backend, getattr(importlib.import_module(module), made)())


def _find(options: EngineOptions, tell: Progress, identity: str, name: str) -> Resolved:
    if not identity:
        return resolve(
            options.checkpoint,
            cache_dir=options.cache_dir,
            offline=options.offline,
            progress=tell,
        )
    found = resolve_path(Path(options.checkpoint))
    return Resolved(found.path, identity, found.kind, name or found.name)


def _load(
    options: EngineOptions, found: Resolved, family: Family, backend: Backend, bundle: Bundle
) -> Runtime:
    checkpoint = bundle.checkpoint  # has all but the weights, and opens at once
    spec, sampler = family.spec(checkpoint), family.sampler(checkpoint)
    free = available_bytes()
    room = Room(
        spec.context,
        page_bytes=0,
        free_bytes=None if free is None else max(0, free - packed_bytes(bundle)),
    )
    graph, limits, room = size_up(options, checkpoint, family, backend, room)
    with ThreadPoolExecutor(1) as aside:  # the tokenizer takes as long as the weights
        words = aside.submit(read_vocabulary, family, checkpoint, spec.vocab)
        forward = backend.load(
            graph,
            bundle.component(),
            bundle.layout(),
            msgspec.structs.replace(options, step_tokens=limits.step_tokens),
            pages=limits.pages,
            page_tokens=limits.page_tokens,
        )
        vocabulary = words.result()
    info = describe(options, family, bundle, spec, sampler, limits)
    info = msgspec.structs.replace(
        info,
        page_bytes=room.page_bytes,
        isa=getattr(forward, "isa", info.isa),
        threads=getattr(forward, "threads", info.threads),
    )
    if found.kind != "bundle":  # which knows better than its folder's name
        info = msgspec.structs.replace(info, identity=found.identity, name=found.name)
    return Runtime(
        info=info,
        forward=forward,
        vocabulary=vocabulary,
        suppress_ids=sampler.suppress_ids,
        hook=sampler.hook,
        guide_tokenizer=partial(read_guide_tokenizer, family, checkpoint, info),
        cache_records=options.context_cache_max_records,
        close=bundle.close,
    )


def read_vocabulary(family: Family, checkpoint: Checkpoint, size: int) -> Vocabulary:
    tokenizer = family.tokenizer(checkpoint)
    return Vocabulary(tokenizer.token_bytes(size), tokenizer.special_ids)


def read_guide_tokenizer(family: Family, checkpoint: Checkpoint, info: ModelInfo) -> GuideTokenizer:
    from edgeserve.engine.guide_tokenizer import GuideTokenizer

    tokenizer = family.tokenizer(checkpoint)
    return GuideTokenizer(
        tokenizer.token_bytes(info.vocab),
        tokenizer.special_ids,
        info.eos_ids,
        lambda text: tokenizer.encode(text, special=False),
    )


def packed_bytes(bundle: Bundle) -> int:
    """Bytes of the packed files, most of which will be in memory."""
    components = bundle.manifest.components.values()
    return sum(entry.size for component in components for entry in component.files.values())


def size_up(
    options: EngineOptions, checkpoint: Checkpoint, family: Family, backend: Backend, room: Room
) -> tuple[Graph, Limits, Room]:
    """The graph for the longest sequence that fits, the limits, and the room with its page size."""
    longest = longest_sequence(options, room.context)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=longest))
    room = room._replace(page_bytes=backend.page_bytes(graph, options, PAGE_TOKENS))
    limits = make_limits(options, room)
    if limits.max_model_len != longest:  # what fits is shorter: the graph may depend on it
        graph = family.graph(checkpoint, GraphOptions(max_model_len=limits.max_model_len))
    return graph, limits, room


def describe(
    options: EngineOptions,
    family: Family,
    bundle: Bundle,
    spec: ModelSpec,
    sampler: Sampler,
    limits: Limits,
) -> ModelInfo:
    checkpoint = bundle.checkpoint
    return ModelInfo(
        identity=checkpoint.identity,
        name=bundle.manifest.name,
        bundle=str(bundle.path),
        key=bundle.manifest.key,
        model_type=checkpoint.model_type,
        family=family.name,
        backend=options.backend,
        isa=options.isa or "",
        dtype="bf16" if options.dtype == "auto" else options.dtype,
        kv_dtype=_kv_dtype(options),
        threads=options.threads or 1,
        layers=spec.layers,
        vocab=spec.vocab,
        context=spec.context,
        eos_ids=tuple(dict.fromkeys((*spec.eos_ids, *sampler.stop_ids))),
        tasks=spec.tasks,
        notes=spec.notes,
        limits=limits,
        context_reuse=options.context_reuse,
        family_defaults=sampler.defaults,
        generation_defaults=SamplerDefaults.from_generation_config(checkpoint.generation_config),
        options=tuple(map(describe_option, sampler.options)),
    )


def _kv_dtype(options: EngineOptions) -> str:
    if options.kv_dtype != "auto":
        return options.kv_dtype
    return "f32" if options.dtype == "f32" else "bf16"


def describe_option(option: Option) -> FamilyOption:
    return FamilyOption(
        name=option.name,
        type=option.type.__name__,
        default=option.default,
        minimum=option.minimum,
        maximum=option.maximum,
        help=option.help,
    )


def _note(sentence: str) -> None:
    log.debug("bundle", text=sentence)


def _silent(stage: str, done: int, total: int) -> None:
    """Nobody watches."""
