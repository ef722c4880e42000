"""Serve a model over HTTP (OpenAI's protocol). Ctrl-C stops it.

edgeserve serve
edgeserve serve ./my-model --port 9000 --max-batch-size 16
"""

from __future__ import annotations

import argparse

from edgeserve.cli import number
from edgeserve.cli.environment import Environment
from edgeserve.cli.foreign import add_foreign_flags
from edgeserve.cli.model_flags import (
    CHECKPOINT_HELP,
    add_bundle_flags,
    add_cache_flags,
    add_engine_flags,
    engine_options,
)
from edgeserve.cli.sampling_flags import add_sampling_flags, sampler_defaults
from edgeserve.config import EngineOptions, ServeOptions
from edgeserve.errors import BadConfig, ShuttingDown

SUMMARY = "serve a model over HTTP"
LOG_LEVELS = ["debug", "info", "warning", "error"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", nargs="?", metavar="CHECKPOINT", help=CHECKPOINT_HELP)
    parser.add_argument("--model", metavar="NAME=CHECKPOINT", help="the same, with its name")
    _add_http_flags(parser)
    _add_queue_flags(parser)
    add_bundle_flags(parser)
    add_engine_flags(parser)
    add_sampling_flags(parser, "sampling defaults, for requests that do not say")
    add_cache_flags(parser)
    add_foreign_flags(parser)


def _add_http_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("HTTP").add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    add("--port", type=number.port, default=8000, help="0 takes a free port (default: 8000)")
    add(
        "--model-name",
        "--served-model-name",
        dest="model_names",
        action="append",
        metavar="NAME",
        help="name in the API; may be repeated, more names are aliases",
    )
    add("--api-key", dest="api_keys", action="append", metavar="KEY", help="may be repeated")
    add(
        "--allow-unauthenticated",
        action="store_true",
        help="listen on other addresses than 127.0.0.1 without a key",
    )
    add("--protect-metrics", action="store_true", help="/metrics needs a key too")
    add("--max-body-bytes", type=number.byte_size, metavar="SIZE", help="default: 8MiB")
    add("--default-max-tokens", type=number.positive, metavar="N", help="when a request has none")
    add("--enable-thinking", choices=["auto", "on", "off"], help="for models that can think")
    add("--tool-call-parser", metavar="NAME", help="how calls are written (default: auto)")
    add("--reasoning-parser", metavar="NAME", help="how thoughts are written (default: auto)")
    add("--log-level", choices=LOG_LEVELS, help="default: info")
    add("--access-log", action="store_true", help="log each HTTP request")


def _add_queue_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("queue and life").add_argument
    add("--max-queued-requests", type=number.natural, metavar="N", help="default: 64")
    add(
        "--queue-timeout",
        dest="queue_timeout_s",
        type=number.seconds,
        metavar="SECONDS",
        help="longest wait for a seat (default: 600)",
    )
    add(
        "--request-timeout",
        dest="request_timeout_s",
        type=number.seconds_or_off,
        metavar="SECONDS",
        help="longest request (default: off)",
    )
    add("--min-request-priority", type=number.not_positive, metavar="N", help="default: 0")
    add("--startup-timeout", dest="startup_timeout_s", type=number.seconds, metavar="SECONDS")
    add("--drain-timeout", dest="drain_timeout_s", type=number.seconds, metavar="SECONDS")
    add("--worker-restarts", type=number.natural, metavar="N", help="after crashes (default: 3)")
    add("--replicas", type=number.positive, default=1, metavar="N", help="1")


def serve_options(args: argparse.Namespace, environment: Environment | None = None) -> ServeOptions:
    """Flags over environment over defaults, checked together."""
    environment = environment or Environment()
    checkpoint, names = _model(args)
    if args.replicas != 1:
        raise BadConfig("--replicas: one replica is supported; start a second server for more")
    settings = {
        field: value
        for field in ServeOptions.__struct_fields__
        if (value := getattr(args, field, None)) is not None
    }
    settings["api_keys"] = tuple(args.api_keys or environment.words("API_KEY"))
    settings["model_name"] = names[0] if names else None
    settings["aliases"] = tuple(names[1:])
    settings["log_level"] = args.log_level or environment.text("LOG_LEVEL") or "info"
    if settings["log_level"] not in LOG_LEVELS:
        raise BadConfig(f"EDGESERVE_LOG_LEVEL: choose one of {', '.join(LOG_LEVELS)}")
    settings["sampler"] = sampler_defaults(args)
    settings["engine"] = engine_options(args, environment, checkpoint=checkpoint)
    options = ServeOptions(**settings)
    if args.tool_call_parser or args.reasoning_parser:
        from edgeserve.pipeline.reading import check_names

        check_names(options.tool_call_parser, options.reasoning_parser)
    _check_host(options)
    _check_lengths(options.engine)
    return options


def _model(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    names: list[str] = list(args.model_names or [])
    if args.model is None:
        return args.checkpoint, names
    name, found, checkpoint = args.model.partition("=")
    if args.checkpoint is not None or not (found and name and checkpoint):
        raise BadConfig("--model takes NAME=CHECKPOINT, and replaces the argument CHECKPOINT")
    return checkpoint, [name, *names]


def _check_host(options: ServeOptions) -> None:
    local = options.host in ("127.0.0.1", "localhost", "::1") or options.host.startswith("127.")
    if not (local or options.api_keys or options.allow_unauthenticated):
        raise BadConfig(
            f"--host {options.host} lets other machines in: set --api-key KEY, or allow it with "
            "--allow-unauthenticated"
        )


def _check_lengths(options: EngineOptions) -> None:
    longest, capacity = options.max_input_len, options.max_kv_cache_capacity
    if longest and capacity and longest >= capacity:
        raise BadConfig(
            f"--max-input-len {longest} leaves no room for an answer within "
            f"--max-kv-cache-capacity {capacity}; make it smaller"
        )


def run(args: argparse.Namespace) -> int:
    options = serve_options(args)
    from edgeserve.cli.announce import announce
    from edgeserve.cli.progress import reporter
    from edgeserve.http.serve import serve

    with reporter() as progress:

        def ready(url: str, *, model: str, chat: bool, key: bool) -> None:
            progress.close()
            announce(url, model=model, chat=chat, key=key)

        try:
            return serve(options, progress=progress, on_ready=ready)
        except ShuttingDown:  # stopped by a signal while it was loading
            return 0
