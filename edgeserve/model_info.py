"""What a served model is, as data: made by the worker once it is ready, used by fronts.

A leaf. Everything a front needs without the checkpoint: where the bundle is (tokenizer, template
and configs lie in it), the model's numbers, the limits that this start computed, and defaults.
"""

from __future__ import annotations

import msgspec

from edgeserve.sampling import SamplerDefaults


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers fixed for the life of an engine, computed once from options, model and memory."""

    max_model_len: int  # longest sequence, prompt and output together, in tokens
    max_input_len: int  # longest prompt, at most max_model_len - 1
    seats: int  # choices that are computed at the same time
    pages: int  # pages of keys and values in the pool
    page_tokens: int  # positions of a page
    step_tokens: int  # tokens of all rows in one step
    prefill_chunk: int  # tokens of one prompt in one step


class FamilyOption(msgspec.Struct, frozen=True, kw_only=True):
    """A declared request option of the family; `type` is bool, int, float or str."""

    name: str
    type: str
    default: bool | int | float | str | None = None
    minimum: float | None = None
    maximum: float | None = None
    help: str = ""


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One served model."""

    identity: str  # of the checkpoint, as the user sees it: hub id, file name, package
    name: str  # the default served name
    bundle: str  # folder of the bundle
    key: str  # the bundle's key
    model_type: str
    family: str
    backend: str
    isa: str  # instruction set or device architecture that runs it
    dtype: str  # of activations
    kv_dtype: str
    threads: int
    layers: int
    vocab: int
    context: int  # positions the model was made for; the effective limit is in `limits`
    eos_ids: tuple[int, ...]  # end-of-sequence ids, the family's extra stop ids included
    tasks: tuple[str, ...] = ("generate",)
    notes: tuple[str, ...] = ()
    limits: Limits
    context_reuse: bool = True
    page_bytes: int = 0  # bytes of one page over all layers
    family_defaults: SamplerDefaults = SamplerDefaults()
    generation_defaults: SamplerDefaults = SamplerDefaults()  # from generation_config.json
    options: tuple[FamilyOption, ...] = ()
