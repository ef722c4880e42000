"""Decoding and prefill of one GGUF file: ours against llama.cpp's llama-bench, in turns.

    python bench/decode.py MODEL.gguf --llama-bench PATH [--threads N] [--rounds N]

Each round runs both, one after the other, with the same threads; medians over rounds are compared.
Our answer is checked first: greedy decoding twice must give the same tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import NamedTuple

from edgeserve import LLM, SamplingParams


class Speed(NamedTuple):
    """Tokens per second."""

    prefill: float
    decode: float


def ours(llm: LLM, prompt_tokens: int, tokens: int) -> Speed:
    """One request without prefix reuse; its times come from the engine."""
    params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, reuse_context=False)
    figures: list = []
    prompt = [1 + i % 1000 for i in range(prompt_tokens)]
    made = 0
    for delta in llm.generate_stream(prompt, params, on_metrics=figures.append):
        made += len(delta.token_ids)
    if made != tokens:
        raise SystemExit(f"asked for {tokens} tokens, got {made}")
    metrics = figures[0]
    prefill_s = metrics.time_to_first_token_s - metrics.queue_s
    return Speed(prompt_tokens / prefill_s, metrics.decode_tokens_per_second)


def theirs(binary: str, model: str, threads: int, prompt_tokens: int, tokens: int) -> Speed:
    command = [binary, "-m", model, "-t", str(threads), "-p", str(prompt_tokens)]
    command += ["-n", str(tokens), "-r", "1", "-o", "json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"llama-bench ended with {done.returncode}: {done.stderr[-500:]}")
    rows = json.loads(done.stdout)
    return Speed(
        next(row["avg_ts"] for row in rows if row["n_gen"] == 0),
        next(row["avg_ts"] for row in rows if row["n_prompt"] == 0),
    )


def check(llm: LLM) -> str:
    """Greedy decoding must repeat itself; returns a sample to look at."""
    params = SamplingParams(temperature=0, max_tokens=24)
    texts = {llm.complete("The capital of Japan is", params)[0].text for _ in range(2)}
    if len(texts) != 1:
        raise SystemExit(f"greedy decoding is not repeatable: {texts}")
    return texts.pop()


def median(speeds: list[Speed]) -> Speed:
    return Speed(*(statistics.median(column) for column in zip(*speeds, strict=True)))


def spread(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def report(mine: list[Speed], rival: list[Speed]) -> None:
    print(f"{'':8} {'ours':>10} {'llama.cpp':>10} {'ratio':>7}   ours spread / llama.cpp spread")
    for index, name in enumerate(Speed._fields):
        a, b = [speed[index] for speed in mine], [speed[index] for speed in rival]
        left, right = median(mine)[index], median(rival)[index]
        print(
            f"{name:8} {left:10.1f} {right:10.1f} {left / right:7.2f}   {spread(a)} / {spread(b)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help=".gguf file")
    parser.add_argument("--llama-bench", required=True, metavar="PATH")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    mine: list[Speed] = []
    rival: list[Speed] = []
    sizes = (args.prompt_tokens, args.tokens)
    with LLM(args.model, threads=args.threads, max_batch_size=1) as llm:
        print(f"sample: {check(llm)!r}", file=sys.stderr)
        ours(llm, *sizes)  # the first request touches all pages
        for _ in range(args.rounds):
            mine.append(ours(llm, *sizes))
            rival.append(theirs(args.llama_bench, args.model, args.threads, *sizes))
    report(mine, rival)


if __name__ == "__main__":
    main()
