"""Records what transformers computes for the tiny checkpoints: logits and rotary frequencies.

    python -m tests.data.transformers.record_tiny

Needs the extra [parity]. Writes tiny.npz beside itself: for each variant the logits of its text at
float32, and the frequencies and attention factor that the model used for it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.data import tiny

FILE = Path(__file__).with_name("tiny.npz")


def record(variant: tiny.Variant, folder: Path) -> dict[str, np.ndarray]:
    """Arrays by name for one variant."""
    import torch
    from transformers import AutoModelForCausalLM

    tiny.write(variant, folder)
    model, loading = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    wrong = {key: names for key, names in loading.items() if names}
    if wrong:
        raise SystemExit(f"{variant.name}: transformers did not load all tensors: {wrong}")
    with torch.inference_mode():
        logits = model.eval()(torch.from_numpy(variant.ids())[None]).logits[0].numpy()
    rotary = model.model.rotary_emb
    return {
        f"{variant.name}/logits": logits.astype(np.float32),
        f"{variant.name}/frequencies": rotary.inv_freq.numpy().astype(np.float32),
        f"{variant.name}/attention_factor": np.float32(rotary.attention_scaling),
    }


def record_all() -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        for variant in tiny.VARIANTS.values():
            arrays.update(record(variant, Path(folder) / variant.name))
    return arrays


if __name__ == "__main__":
    np.savez_compressed(FILE, **record_all())
    print(f"{FILE}: {FILE.stat().st_size} bytes")
