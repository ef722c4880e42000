"""The flags of the two servers that people come from, and what each of them does here.

One table, `FLAGS`; `serve` adds from it what is accepted without effect and what is refused by
name. `docs/differences.md` shows the table, and a test walks it.
"""

from __future__ import annotations

import argparse
from enum import Enum
from typing import Any, NamedTuple, NoReturn

EDGE, CONNECT = "Edge-LLM", "Model-Connect"


class Fate(Enum):
    SAME = "same"
    MAPPED = "mapped"
    NO_OP = "accepted, no effect"
    REFUSED = "refused"


class Flag(NamedTuple):
    """One flag of a reference server. `note`: our flag (mapped), or the reason."""

    name: str
    source: str
    fate: Fate
    note: str = ""
    takes_value: bool = True


SAME, MAPPED, NO_OP, REFUSED = Fate.SAME, Fate.MAPPED, Fate.NO_OP, Fate.REFUSED
_NO_SPECULATION = "speculative decoding is not supported yet"
_NO_MEDIA = "image and audio input are not supported yet"
_NO_PLE = "weights are packed into the bundle; nothing is paged in per layer"

FLAGS: tuple[Flag, ...] = (
    Flag("--host", EDGE, SAME, "default 127.0.0.1; another address needs a key"),
    Flag("--port", EDGE, SAME),
    Flag("--served-model-name", EDGE, SAME, "also --model-name; several names are aliases"),
    Flag("--api-key", EDGE, SAME, "may be repeated"),
    Flag("--reasoning-parser", EDGE, SAME, "default: auto; also mistral and harmony"),
    Flag("--tool-call-parser", EDGE, SAME, "default: auto; each name is a parser of its own"),
    Flag("--enable-auto-tool-choice", EDGE, NO_OP, "nothing has to be switched on", False),
    Flag("--max-queued-requests", EDGE, SAME, "default 64"),
    Flag("--queue-timeout", EDGE, SAME, "holds with batching too"),
    Flag("--allowed-local-media-path", EDGE, REFUSED, _NO_MEDIA),
    Flag("--log-level", EDGE, SAME),
    Flag("--cache-dir", EDGE, SAME, "default ~/.cache/edgeserve"),
    Flag("--engine-cache-max-size-gb", EDGE, MAPPED, "--cache-max-size-gb"),
    Flag("--clear-engine-cache", EDGE, REFUSED, "run 'edgeserve cache clear' instead", False),
    Flag("--max-input-len", EDGE, SAME, "default: the context minus 1"),
    Flag("--max-batch-size", EDGE, SAME, "default 8"),
    Flag("--max-kv-cache-capacity", EDGE, SAME, "default: the model's context or what fits"),
    Flag("--max-image-tokens", EDGE, REFUSED, _NO_MEDIA),
    Flag("--max-image-tokens-per-image", EDGE, REFUSED, _NO_MEDIA),
    Flag("--speculative-config", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--draft-top-k", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--draft-step", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--spec-draft-step", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--spec-proposal-tokens", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--verify-tree-size", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--spec-verify-tokens", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--max-verify-tree-size", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--max-spec-verify-tokens", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--max-draft-tree-size", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--max-spec-draft-tokens", EDGE, REFUSED, _NO_SPECULATION),
    Flag("--enable-context-reuse", EDGE, NO_OP, "on; --no-context-reuse switches off", False),
    Flag("--context-cache-max-records", EDGE, SAME, "default: bounded by the page pool alone"),
    Flag(
        "--context-cache-recurrent-snapshot-pool-bytes",
        EDGE,
        REFUSED,
        "models with recurrent state are not supported yet",
    ),
    Flag(
        "--context-cache-partial-kv-snapshot-pool-bytes",
        EDGE,
        REFUSED,
        "prefixes are reused in pages of 16 tokens, so there are no partial snapshots",
    ),
    Flag("--context-cache-encoder-embedding-budget-bytes", EDGE, REFUSED, _NO_MEDIA),
    Flag("--enable-in-flight-batching", EDGE, NO_OP, "on; --max-batch-size 1 switches off", False),
    Flag("--ifb-scheduling-mode", EDGE, NO_OP, "prompts and decoding always share steps"),
    Flag("--min-request-priority", EDGE, SAME),
    Flag("--ple-residency", EDGE, REFUSED, _NO_PLE),
    Flag("--ple-cache-slots", EDGE, REFUSED, _NO_PLE),
    Flag("--ple-file", EDGE, REFUSED, _NO_PLE),
    Flag("--model-name", CONNECT, SAME, "default: hub id, or the folder's or package's name"),
    Flag("--model", CONNECT, MAPPED, "NAME=PATH is CHECKPOINT and --model-name; one model"),
    Flag("--replicas", CONNECT, MAPPED, "1 is accepted; more than one is refused for now"),
    Flag("--host", CONNECT, SAME),
    Flag("--port", CONNECT, SAME),
    Flag("--runtime-root", CONNECT, REFUSED, "the native core is part of the installation"),
    Flag("--kv-cache-size", CONNECT, MAPPED, "--kv-pool-size, in bytes"),
    Flag("--runtime-cache", CONNECT, REFUSED, "compiled code is kept in the bundle"),
    Flag("--cuda-graphs", CONNECT, NO_OP, "a backend that has them uses them", False),
    Flag("--startup-timeout", CONNECT, SAME, "default 600 s"),
    Flag("--request-timeout", CONNECT, SAME, "default: off"),
    Flag("--max-body-bytes", CONNECT, SAME, "default 8 MiB"),
    Flag("--max-prompt-bytes", CONNECT, REFUSED, "limits are in tokens: --max-input-len"),
    Flag(
        "--max-new-tokens",
        CONNECT,
        REFUSED,
        "an answer is bounded by --max-kv-cache-capacity and --default-max-tokens",
    ),
    Flag("--records", CONNECT, REFUSED, "use the log and /metrics"),
    Flag("--access-log", CONNECT, SAME),
    Flag("--worker-binary", CONNECT, REFUSED, "the worker is part of the installation"),
)


class _Refuse(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: object,
        _values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        parser.error(f"{option_string} is not available here: {self.const}")


class _Ignore(argparse.Action):
    def __call__(self, *_: Any, **__: Any) -> None:
        return


def add_foreign_flags(parser: argparse.ArgumentParser) -> None:
    """What the table accepts without effect or refuses; hidden from --help."""
    for flag in FLAGS:
        if flag.fate in (NO_OP, REFUSED):
            parser.add_argument(
                flag.name,
                action=_Refuse if flag.fate is REFUSED else _Ignore,
                # A refused flag refuses however it is written, with or without a value.
                nargs="?" if flag.takes_value else 0,
                const=flag.note,
                dest=argparse.SUPPRESS,
                default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )
