"""One answer in the terminal: printed as it comes, with its figures; Ctrl-C ends the answer."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeserve.cli import number
from edgeserve.cli.model_flags import (
    CHECKPOINT_HELP,
    add_bundle_flags,
    add_cache_flags,
    add_engine_flags,
    engine_options,
)
from edgeserve.cli.progress import reporter
from edgeserve.cli.sampling_flags import add_sampling_flags, sampler_defaults

if TYPE_CHECKING:
    from edgeserve.llm import LLM
    from edgeserve.pipeline.output import GenerationMetrics
    from edgeserve.sampling import SamplingParams


def add_generation_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the commands that run a model in this process."""
    add = parser.add_argument
    add("--model", dest="checkpoint", metavar="CHECKPOINT", help=CHECKPOINT_HELP)
    add("--system", metavar="TEXT", help="system message")
    add("--max-tokens", type=number.positive, metavar="N", help="longest answer")
    add("--seed", type=number.natural, metavar="N", help="the same seed gives the same answer")
    add_sampling_flags(parser, "sampling")
    add_bundle_flags(parser)
    add_engine_flags(parser)
    add_cache_flags(parser)


def sampling_params(args: argparse.Namespace) -> SamplingParams:
    import msgspec

    from edgeserve.sampling import SamplingParams

    given: dict[str, Any] = msgspec.structs.asdict(sampler_defaults(args))
    given |= {"max_tokens": args.max_tokens, "seed": args.seed}
    return SamplingParams(**{name: value for name, value in given.items() if value is not None})


def open_model(args: argparse.Namespace) -> LLM:
    """Load the model of the command line, with progress on stderr."""
    from edgeserve.llm import LLM

    with reporter() as progress:
        return LLM.from_options(engine_options(args), on_progress=progress)


class Reply(NamedTuple):
    """What was printed. `metrics` is None when the request never ran."""

    text: str
    metrics: GenerationMetrics | None
    interrupted: bool


def stream_answer(
    llm: LLM,
    prompt: str | list[dict[str, str]],
    params: SamplingParams,
    *,
    apply_chat_template: bool = True,
) -> Reply:
    """Print an answer as it comes. Ctrl-C ends the answer; what came so far is returned."""
    text: list[str] = []
    metrics: list[GenerationMetrics] = []
    interrupted = False
    stream = llm.generate_stream(
        prompt, params, apply_chat_template=apply_chat_template, on_metrics=metrics.append
    )
    try:
        for delta in stream:
            text.append(delta.text)
            sys.stdout.write(delta.text)
            sys.stdout.flush()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        stream.close()
    return Reply("".join(text), metrics[0] if metrics else None, interrupted)
