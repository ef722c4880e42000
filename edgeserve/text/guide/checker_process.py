"""The child process of `checker.py`: compiles a grammar, tries its first steps, says what is wrong.

Run by path, so it imports nothing of the package. One JSON line in, one out. The parent kills it
when a grammar takes too long, and limits its memory here, so a hostile grammar hurts nobody.
"""

import json
import signal
import sys
from typing import cast

sys.path.pop(0)  # this folder: its names are not for the libraries below

import llguidance

EOS = 256
STEPS = 8
ALONE_S = 5


class _Bytes:
    """A tokenizer of single bytes."""

    is_tokenizer_wrapper = True
    bos_token_id = None
    eos_token_id = EOS
    special_token_ids = (EOS,)
    tokens = (*(bytes([i]) for i in range(256)), b"<eos>")

    def __call__(self, text: object) -> list[int]:
        return list(text if isinstance(text, bytes) else str(text).encode())


def check(
    tokenizer: llguidance.LLTokenizer, grammar: str, limits: llguidance.LLParserLimits
) -> str:
    """Why the grammar cannot be used; empty when it can."""
    failed, said = llguidance.LLMatcher.validate_grammar_with_warnings(grammar, limits=limits)
    if failed:
        return str(said[0])
    matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0, limits=limits)
    for _ in range(STEPS):
        if matcher.is_error() or matcher.is_stopped():
            break
        mask = matcher.compute_bitmask()
        allowed = [i for i in range(EOS) if mask[i // 8] >> (i % 8) & 1]
        if matcher.is_error() or not allowed:
            break
        matcher.consume_token(allowed[len(allowed) // 2])
    if not matcher.is_error():
        return ""
    error = str(matcher.get_error())
    return "nothing satisfies it" if "NoExtension" in error else f"it is too complex ({error})"


def set_alarm(seconds: int) -> None:
    """Where it exists, the signal ends this process even inside the library: for the case that
    the parent is gone and nobody kills it."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def main() -> None:
    try:
        import resource

        limit = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass  # without the limit, time alone bounds it
    fuel = json.loads(sys.argv[2])
    limits = llguidance.LLParserLimits(verbose_errors=False, **fuel)
    wrapper = cast(llguidance.TokenizerWrapper, _Bytes())  # what the library calls of it
    tokenizer = llguidance.LLTokenizer(wrapper, n_vocab=257, slices=[])
    for line in sys.stdin:
        set_alarm(ALONE_S)
        try:
            answer = check(tokenizer, json.loads(line), limits)
        except Exception as error:
            answer = f"it cannot be compiled ({error})"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        set_alarm(0)


if __name__ == "__main__":
    main()
