"""Loading: a checkpoint or a bundle becomes a runtime that speaks, or an error says why not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgeserve._native import kernels
from edgeserve.config import EngineOptions
from edgeserve.errors import BadConfig, CheckpointError
from edgeserve.worker.load import load_runtime
from tests.engine.client import Client


def say(runtime, text: str, **fields: object) -> tuple[str, Client]:
    """What the scripted model answers to a prompt that holds its script."""
    client = Client(runtime)
    id_ = client.run(tuple(text.encode()), max_tokens=60, ignore_eos=False, **fields)
    answer = "".join(piece.text for piece in client.pieces(id_))
    client.service.close()
    return answer, client


def test_a_checkpoint_is_packed_once_and_its_bundle_serves_as_well(
    scripted_checkpoint: Path, tmp_path: Path
) -> None:
    options = EngineOptions(checkpoint=str(scripted_checkpoint), cache_dir=tmp_path, threads=1)
    stages: list[str] = []
    first = load_runtime(options, lambda stage, *_: stages.append(stage))
    assert stages
    stages.clear()
    again = load_runtime(
        options, lambda stage, *_: stages.append(stage), "org/name", first.info.name
    )
    assert not stages
    assert (again.info.identity, again.info.name) == ("org/name", first.info.name)
    assert (again.info.bundle, again.info.key) == (first.info.bundle, first.info.key)
    bundle = EngineOptions(checkpoint=first.info.bundle, cache_dir=tmp_path, threads=1)
    served = load_runtime(bundle)
    assert (served.info.identity, served.info.name) == (first.info.identity, first.info.name)
    prompt = "say:naïve café – 日本語"
    answers = [say(runtime, prompt)[0] for runtime in (first, again, served)]
    assert len(set(answers)) == 1
    assert first.info.family == "scripted"
    assert first.info.threads == 1


def test_the_info_tells_what_really_runs(scripted_checkpoint: Path, tmp_path: Path) -> None:
    options = EngineOptions(checkpoint=str(scripted_checkpoint), cache_dir=tmp_path, threads=1)
    page_bytes = {}
    for kv_dtype in ("auto", "f32", "bf16"):
        runtime = load_runtime(msgspec.structs.replace(options, kv_dtype=kv_dtype))
        assert runtime.info.isa in kernels.isas()
        page_bytes[kv_dtype] = (runtime.info.kv_dtype, runtime.info.page_bytes)
        runtime.close()
    assert [dtype for dtype, _ in page_bytes.values()] == ["bf16", "f32", "bf16"]
    assert page_bytes["auto"] == page_bytes["bf16"]
    assert page_bytes["f32"][1] == 2 * page_bytes["bf16"][1]


def test_a_failing_plugin_fails_its_request_alone_and_is_named(
    scripted_checkpoint: Path, tmp_path: Path
) -> None:
    options = EngineOptions(checkpoint=str(scripted_checkpoint), cache_dir=tmp_path, threads=1)
    client = Client(load_runtime(options))
    script = "<|im_start|>user\nscript:{}<|im_end|>\n<|im_start|>assistant\n"
    from edgeserve_scripted.vocabulary import encode

    good = client.submit(tuple(encode(script.format("hello"))), ignore_eos=False, max_tokens=60)
    bad = client.submit(tuple(encode(script.format("fail"))), ignore_eos=False, max_tokens=60)
    client.end(good, bad)
    text = "".join(piece.text for piece in client.pieces(good))
    assert text == "Hello! How can I help you today?"
    error = client.error(bad).error
    assert (error.status, "scripted" in error.message) == (500, True)
    client.service.close()


def test_what_cannot_be_loaded_is_told(scripted_checkpoint: Path, tmp_path: Path) -> None:
    options = EngineOptions(checkpoint=str(scripted_checkpoint), cache_dir=tmp_path, backend="npu")
    with pytest.raises(BadConfig, match="no backend 'npu'; choose one of cpu"):
        load_runtime(options)
    with pytest.raises(CheckpointError):
        load_runtime(EngineOptions(checkpoint=str(tmp_path / "nothing"), cache_dir=tmp_path))


def test_a_refused_load_leaves_the_bundle_free(scripted_checkpoint: Path, tmp_path: Path) -> None:
    options = EngineOptions(
        checkpoint=str(scripted_checkpoint), cache_dir=tmp_path, kv_pool_pages=1
    )
    with pytest.raises(BadConfig, match="pages"):
        load_runtime(options)
    from edgeserve.bundle import cache

    assert cache.clear(tmp_path)
