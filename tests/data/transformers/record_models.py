"""Records what transformers computes for real models from the same GGUF files that we serve.

    python -m tests.data.transformers.record_models NAME FILE.gguf

Needs the extra [parity]. transformers dequantises the GGUF to float32, so both sides run the same
weights. Writes NAME.json (greedy texts) and NAME.npz (distributions over text.txt) beside itself.

Greedy: of the candidate prompts the ten whose smallest margin between the two best logits, over 64
tokens, is largest. Ends of text are ignored, so every run has 64 tokens.
Distributions: for 300 positions the 512 most likely tokens with their log-probabilities, in steps
of 1/2048. What is left of the probability goes into one more bin, so a KL divergence from these
numbers is a lower bound; `remainder` says how much mass that bin has.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TOKENS, PROMPTS, POSITIONS, TOP, STEPS = 64, 10, 300, 512, 2048

CANDIDATES = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "List the first ten prime numbers.",
    "Explain in two sentences why the sky is blue.",
    "Write a Python function that reverses a string.",
    "What is the largest planet of the solar system?",
    "Translate 'good morning' into French, German and Spanish.",
    "Name three uses of a paper clip.",
    "Write a short letter that thanks a friend for a gift.",
    "How do plants make food from sunlight?",
    "Write a SQL query that counts the rows of a table named users.",
    "What are the days of the week?",
    "Summarise the plot of Romeo and Juliet.",
    "Count from one to twenty.",
    "What is the difference between a list and a tuple in Python?",
    "Give me a recipe for pancakes.",
    "Write a JavaScript function that adds two numbers.",
    "Who wrote Hamlet, and when?",
    "Write a bash command that lists all files in a folder.",
    "Why is exercise good for the heart?",
    "Describe a sunset in one paragraph.",
    "What is photosynthesis?",
    "Write an HTML page with a heading and a paragraph.",
    "What is 12 times 12?",
)


def load_model(gguf: Path) -> Any:
    """The model in float32, read from a folder that holds nothing but the GGUF."""
    import torch
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / gguf.name).symlink_to(gguf.resolve())
        return AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=gguf.name, dtype=torch.float32
        ).eval()


def prompt_ids(gguf: Path) -> tuple[list[list[int]], list[int]]:
    """Each candidate as a chat turn, and the text, as our tokenizer and template make them."""
    from edgeserve.checkpoint.open import open_checkpoint
    from edgeserve.checkpoint.resolve import resolve_path
    from edgeserve.family import discover

    checkpoint = open_checkpoint(resolve_path(gguf))
    family = discover.load(checkpoint.model_type)
    tokenizer, template = family.tokenizer(checkpoint), family.template(checkpoint)
    chats = [template.render([{"role": "user", "content": text}]) for text in CANDIDATES]
    text = (HERE / "text.txt").read_text(encoding="utf-8")
    return [tokenizer.encode(chat, special=False) for chat in chats], tokenizer.encode(text)


def greedy(model: Any, prompts: list[list[int]]) -> list[list[int]]:
    """TOKENS tokens for each prompt, each the most likely one; all prompts as one padded batch,
    which is quick. `margin` checks the result of each prompt on its own."""
    import torch

    width = max(len(ids) for ids in prompts)
    step = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts])
    mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    tokens: list[Any] = []
    cache = None
    with torch.inference_mode():
        while len(tokens) < TOKENS:
            out = model(
                step,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            step = out.logits[:, -1].argmax(dim=1, keepdim=True)
            tokens.append(step)
            mask = torch.cat([mask, torch.ones_like(step)], dim=1)
            positions = positions[:, -1:] + 1
    chosen: list[list[int]] = torch.cat(tokens, dim=1).tolist()
    return chosen


def margin(model: Any, ids: list[int], tokens: list[int]) -> float:
    """The smallest lead of a token over the second best, in one pass over prompt and tokens: 0 when
    a token is not the best. All leads positive means that the greedy text is `tokens`."""
    import torch

    with torch.inference_mode():
        logits = model(torch.tensor([ids + tokens]), logits_to_keep=TOKENS + 1).logits[0, :-1]
    best = logits.topk(2)
    if best.indices[:, 0].tolist() != tokens:
        return 0.0
    return float((best.values[:, 0] - best.values[:, 1]).min())


def record_greedy(model: Any, prompts: list[list[int]]) -> list[dict[str, Any]]:
    runs = []
    chosen = greedy(model, prompts)
    for text, ids, tokens in zip(CANDIDATES, prompts, chosen, strict=True):
        lead = margin(model, ids, tokens)
        runs.append({"message": text, "prompt": ids, "tokens": tokens, "margin": round(lead, 4)})
    runs.sort(key=lambda run: -run["margin"])
    return runs[:PROMPTS]


def log_probabilities(model: Any, ids: list[int]) -> np.ndarray:
    """float64 [POSITIONS, vocab]: row i is the distribution of ids[i + 1]."""
    import torch

    with torch.inference_mode():
        logits = model(torch.tensor([ids[:POSITIONS]])).logits[0].double()
    return torch.log_softmax(logits, dim=-1).numpy()


def record_text(model: Any, ids: list[int]) -> dict[str, np.ndarray]:
    full = log_probabilities(model, ids)
    top = np.sort(np.argpartition(-full, TOP, axis=1)[:, :TOP], axis=1)
    kept = np.take_along_axis(full, top, axis=1)
    return {
        "ids": np.asarray(ids[: POSITIONS + 1], np.int32),
        "top": top.astype(np.int32),
        "logprobs": np.round(-kept * STEPS).clip(0, 65535).astype(np.uint16),
        "remainder": (1.0 - np.exp(kept).sum(axis=1)).astype(np.float32),
        "argmax": full.argmax(axis=1).astype(np.int32),
    }


def main(name: str, gguf: Path) -> None:
    prompts, text = prompt_ids(gguf)
    model = load_model(gguf)
    arrays = record_text(model, text)
    np.savez_compressed(HERE / f"{name}.npz", **arrays)
    runs = record_greedy(model, prompts)
    lines = ",\n".join(json.dumps(run) for run in runs)
    (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{name}: margins {[run['margin'] for run in runs]}")
    print(f"{name}: mean mass outside the top {TOP}: {arrays['remainder'].mean():.5f}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
