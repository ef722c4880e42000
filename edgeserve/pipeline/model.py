"""What a front knows of a model it serves, and how a call starts on it.

Everything that can be wrong with a call is found here, before anything is sent to the engine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from edgeserve.generation import GenerationRequest
from edgeserve.model_info import ModelInfo
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.call import Call
from edgeserve.pipeline.guides import GuideDesk
from edgeserve.pipeline.prompt import Encoder, Thinking, Tokens, param_of
from edgeserve.pipeline.reading import AUTO, Readers
from edgeserve.pipeline.thinking import Course, courses
from edgeserve.sampling import SEED_MASK, SamplerDefaults, SamplerSettings, bad, resolve
from edgeserve.ticket import Generator

if TYPE_CHECKING:
    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer

GOLDEN = 0x9E3779B97F4A7C15  # odd, about 2**64 / golden ratio: its multiples are far apart


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decided about calls of one model."""

    name: str | None = None  # served name; default: the model's own
    sampler: SamplerDefaults = SamplerDefaults()  # server flags
    default_max_tokens: int | None = None  # of calls that do not say
    enable_thinking: Thinking = "auto"  # on: also for calls that do not say; off: never
    tool_call_parser: str = AUTO
    reasoning_parser: str = AUTO
    chat_template: str | None = None  # instead of the model's own


class ServedModel:
    """One model behind a `Generator`: tokenizer, template, defaults and limits."""

    def __init__(
        self,
        info: ModelInfo,
        generator: Generator,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        options: ModelOptions,
        guides: GuideDesk | None = None,
    ) -> None:
        self.info = info
        self.name = options.name or info.name
        self.tokenizer = tokenizer
        self.template = template
        self.encoder = Encoder(
            self.name,
            tokenizer,
            template,
            family=info.family,
            vocab=info.vocab,
            longest=min(info.limits.max_input_len, info.limits.max_model_len - 1),
            thinking=options.enable_thinking,
        )
        self._readers = Readers(
            tokenizer,
            template,
            model_type=info.model_type,
            tool=options.tool_call_parser,
            reasoning=options.reasoning_parser,
        )
        self._guides = guides or GuideDesk()
        self._generator = generator
        self._options = options

    @classmethod
    def from_info(
        cls, info: ModelInfo, generator: Generator, options: ModelOptions | None = None
    ) -> ServedModel:
        """The front's view of what a worker serves, from its bundle alone."""
        options = options or ModelOptions()
        from edgeserve.pipeline.parts import read_text_parts  # families and tokenizers: not at once

        tokenizer, template = read_text_parts(info, options.chat_template)
        return cls(info, generator, tokenizer, template, options)

    def with_options(self, options: ModelOptions, generator: Generator) -> ServedModel:
        """The same model with other wishes of its operator, reached another way."""
        return ServedModel(
            self.info, generator, self.tokenizer, self.template, options, self._guides
        )

    def close(self) -> None:
        """End what makes guides. Calls with one cannot start any more."""
        self._guides.close()

    async def start(self, call: Call) -> Answer:
        """The admitted call. Raises an `EdgeserveError` for what is wrong with it (nothing was
        sent then), or for an engine that refuses it."""
        prompts = await self.encoder.encode(call)
        reading = self._readers.reading(call, prompts)
        guide = await self._guides.make(call, self._readers)
        planned = courses(guide, call, prompts, self._readers, self.encoder)
        requests, clipped = self.requests(call, prompts, planned)
        params = call.params
        return await Answer.open(
            self._generator,
            prompts,
            requests,
            reading,
            clipped=clipped,
            window=max(1, 2 * self.info.limits.seats // params.drawn),
            kept=params.choices,
        )

    def requests(
        self, call: Call, prompts: list[Tokens], planned: Sequence[Course]
    ) -> tuple[list[GenerationRequest], bool]:
        """One request per prompt, and whether a wished max_tokens was clipped."""
        params = call.params
        # A text that follows a guide ends where the guide lets it, and nowhere else.
        ends_freely = all(one.guide is None or one.guide.has_free_text for one in planned)
        samplers = apart(self.settings(call), prompts, fixed=params.seed is not None)
        wished = params.token_limit or self._options.default_max_tokens or call.default_max_tokens
        prompt_logprobs = params.prompt_logprobs
        if prompt_logprobs is None and call.echo:
            prompt_logprobs = params.alternatives  # an echoed prompt is told like the rest
        is_ranked = params.drawn > params.choices and params.alternatives is None
        requests: list[GenerationRequest] = []
        clipped = False
        for index, (prompt, sampler) in enumerate(zip(prompts, samplers, strict=True)):
            room = self.room(len(prompt.ids), param_of(call.prompts[index]))
            clipped = clipped or (params.token_limit or 0) > room
            max_tokens = min(wished or room, room)
            if (params.min_tokens or 0) > max_tokens:
                raise bad("min_tokens", f"at most the tokens that may come, {max_tokens}")
            requests.append(
                GenerationRequest(
                    id=self._generator.next_id(),
                    prompt=prompt.ids,
                    sampler=sampler,
                    max_tokens=max_tokens,
                    choices=params.drawn,
                    stop=params.stops if ends_freely else (),
                    include_stop=bool(params.include_stop_str_in_output),
                    stop_token_ids=tuple(params.stop_token_ids or ()) if ends_freely else (),
                    ignore_eos=bool(params.ignore_eos),
                    skip_special_tokens=params.skip_special_tokens is not False,
                    logprobs=0 if is_ranked else params.alternatives,
                    prompt_logprobs=prompt_logprobs,
                    reasoning=planned[index].reasoning,
                    guide=planned[index].guide,
                    reuse_context=params.reuse_context is not False,
                    cache_generated_tokens=params.cache_generated_tokens is not False,
                    cache_salt=call.cache_salt,
                    priority=call.priority,
                    timeout_s=call.timeout_s,
                )
            )
        return requests, clipped

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The exact bytes of each token id, for logprobs. The first time takes up to 0.3 s: a loop
        that others wait for calls `load_token_bytes`."""
        return self.tokenizer.token_bytes(self.info.vocab)

    async def load_token_bytes(self) -> list[bytes]:
        """`token_bytes`, made in a thread the first time."""
        return await asyncio.to_thread(lambda: self.token_bytes)

    def settings(self, call: Call) -> SamplerSettings:
        """The effective sampler settings; token ids are checked against the vocabulary."""
        params = call.params
        self.encoder.check_ids([token for token, _ in params.biases], "logit_bias")
        self.encoder.check_ids(params.stop_token_ids or (), "stop_token_ids")
        return resolve(
            params,
            self._options.sampler,
            self.info.family_defaults,
            self.info.generation_defaults,
            bad_words=self.encoder.words(params.bad_words or ()),
        )

    def room(self, tokens: int, param: str = "messages") -> int:
        """How many tokens may follow a prompt of `tokens`. Raises `PromptTooLong` for none."""
        self.encoder.check_length(tokens, param)
        return self.info.limits.max_model_len - tokens


def apart(
    settings: SamplerSettings, prompts: list[Tokens], *, fixed: bool
) -> Iterator[SamplerSettings]:
    """Settings for each prompt. Equal prompts of one call draw apart unless its caller fixed the
    seed; all others keep the seed, so that a prompt in a list gets what it gets alone."""
    seen: Counter[tuple[int, ...]] = Counter()
    for prompt in prompts:
        seed = settings.seed + (0 if fixed else seen[prompt.ids] * GOLDEN)
        yield msgspec.structs.replace(settings, seed=seed & SEED_MASK)
        seen[prompt.ids] += 1
