"""From what a caller sent to token ids: the model's template, its tokenizer, no special twice.

Short prompts are turned on the loop, long ones in a thread, so that nobody's stream stutters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from edgeserve.errors import (
    EdgeserveError,
    InternalError,
    InvalidRequest,
    NoTemplate,
    PromptTooLong,
)
from edgeserve.log import Log
from edgeserve.pipeline.call import Call, Chat, Prompt
from edgeserve.sampling import SamplingParams
from edgeserve.text.tool_prompt import written_out

if TYPE_CHECKING:
    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer

LOG = Log("pipeline")
Thinking = Literal["auto", "on", "off"]  # of requests that do not say, and whether they may
INLINE_CHARS = 2000  # up to about 1 ms of template and tokenizer
COUNTED_TOKENS = 64 * 1024  # turned to text for whoever asks, also beyond the context
SLICE_CHARS = 16 * 1024  # of a long text, tokenised at once to see how much it is
RENDER_ARGUMENTS = frozenset(
    ["self", "messages", "tools", "documents", "add_generation_prompt", "continue_final_message"]
)


class Tokens(msgspec.Struct, frozen=True):
    """A prompt as the engine takes it, and its text when that is wanted later: of a chat (how its
    answer begins), and when the caller wants it echoed."""

    ids: tuple[int, ...]
    text: str = ""


class Encoder:
    """Turns the prompts of one model into token ids. Any thread may use it."""

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        *,
        family: str,
        vocab: int,
        longest: int,
        thinking: Thinking = "auto",
    ) -> None:
        self._name = name
        self._family = family
        self._tokenizer = tokenizer
        self._template = template
        self._vocab = vocab
        self._longest = longest  # tokens of a prompt
        self._thinking = thinking

    async def encode(self, call: Call) -> list[Tokens]:
        """The tokens of each prompt. Raises `InvalidRequest` for what this model cannot take."""
        if sum(map(_chars, call.prompts)) <= INLINE_CHARS:
            return self.encode_now(call)
        return await asyncio.to_thread(self.encode_now, call)

    def encode_now(self, call: Call) -> list[Tokens]:
        with self._plugin():
            return [self._one(prompt, call) for prompt in call.prompts]

    async def tokenize(
        self, prompt: Chat | str, params: SamplingParams, *, special: bool
    ) -> list[int]:
        """The ids alone, of a prompt that nobody runs: it may be too long for that, but not by far.
        `special`: with what the tokenizer's own post-processor adds."""

        def tokenize() -> list[int]:
            with self._plugin():
                text = self._text(prompt, params)
                self._refuse_far_too_long(text, param_of(prompt))
                return self.text_ids(text) if special else self._encode(text)

        if _chars(prompt) <= INLINE_CHARS:
            return tokenize()
        return await asyncio.to_thread(tokenize)

    async def detokenize(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens included."""
        if len(ids) > COUNTED_TOKENS:
            self.check_length(len(ids), "tokens")
        self.check_ids(ids, "tokens")

        def detokenize() -> str:
            with self._plugin():
                return self._tokenizer.decode(ids, skip_special=False)

        return detokenize() if len(ids) <= INLINE_CHARS else await asyncio.to_thread(detokenize)

    def thinks(self, params: SamplingParams) -> bool:
        """Whether the template is asked for reasoning."""
        return bool(template_options(params, thinking=self._thinking)["enable_thinking"])

    @contextmanager
    def _plugin(self) -> Iterator[None]:
        """Tokenizer and template may be a plugin's: what it breaks is a fault of its own."""
        try:
            yield
        except EdgeserveError:
            raise
        except Exception as error:
            LOG.fault("plugin_failed", error, family=self._family)
            raise InternalError(f"family '{self._family}' failed on this prompt") from error

    def words(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The token sequences that write each word, at the start of a text and after a space."""
        forms = [form for word in words if word for form in (word, f" {word.lstrip()}")]
        encoded = (tuple(self._tokenizer.encode(form, special=False)) for form in forms)
        return tuple(dict.fromkeys(ids for ids in encoded if ids))

    def check_ids(self, ids: Sequence[int], param: str) -> None:
        if ids and (min(ids) < 0 or max(ids) >= self._vocab):
            wrong = next(token for token in ids if not 0 <= token < self._vocab)
            raise InvalidRequest(
                f"token id {wrong} is not in the vocabulary, whose ids are 0 to {self._vocab - 1}",
                param=param,
            )

    def check_length(self, tokens: int, param: str, *, about: bool = False) -> None:
        if tokens > self._longest:
            raise PromptTooLong(tokens, self._longest, param=param, about=about)

    def _refuse_far_too_long(self, text: str, param: str) -> None:
        """A text of many megabytes is refused for the work of its first part: the tokenizer needs
        seconds for it, and holds up everybody meanwhile. Slices count a little more than a whole,
        so only what is clearly too long is refused here."""
        if len(text) <= 4 * SLICE_CHARS:
            return
        tokens = start = 0
        while start < len(text):
            stop = start + SLICE_CHARS
            tokens += len(self._encode(text[start:stop]))
            start = stop
            if tokens > 1.1 * self._longest + 64:
                self.check_length(tokens * len(text) // min(start, len(text)), param, about=True)

    def _one(self, prompt: Prompt, call: Call) -> Tokens:
        if isinstance(prompt, (Chat, str)):
            text = self._text(prompt, call.params)
            self._refuse_far_too_long(text, param_of(prompt))
            is_rendered = isinstance(prompt, Chat) and prompt.apply_chat_template
            ids = self._encode(text) if is_rendered else self.text_ids(text)
        else:
            self.check_length(len(prompt), "prompt")
            self.check_ids(prompt, "prompt")
            ids = list(prompt)
            text = self._tokenizer.decode(ids, skip_special=False) if call.echo else ""
        if not ids:
            raise InvalidRequest("the prompt is empty", param=param_of(prompt))
        self.check_length(len(ids), param_of(prompt))
        is_wanted = call.echo or isinstance(prompt, Chat)
        return Tokens(tuple(ids), text if is_wanted else "")

    def _text(self, prompt: Chat | str, params: SamplingParams) -> str:
        if isinstance(prompt, str):
            text = prompt
        else:
            text = self._render(prompt, params) if prompt.apply_chat_template else plain(prompt)
        _check_unicode(text, param_of(prompt))
        return text

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, special=False)

    def text_ids(self, text: str) -> list[int]:
        """With what the tokenizer's own post-processor adds, but never a second BOS."""
        ids = self._tokenizer.encode(text, special=True)
        bos = self._tokenizer.bos_id
        if bos is not None and ids[:2] == [bos, bos]:
            del ids[0]  # the text begins with it, and the post-processor added another
        return ids

    def _render(self, chat: Chat, params: SamplingParams) -> str:
        if self._template is None:
            raise NoTemplate(self._name)
        messages, tools = chat.messages, chat.tools
        if not self._template.takes_tools:
            messages, tools = written_out(messages, tools), None
        return self._template.render(
            messages,
            tools=tools,
            documents=chat.documents,
            add_generation_prompt=chat.add_generation_prompt,
            continue_final_message=chat.continue_final_message,
            **template_options(params, thinking=self._thinking),
        )


def template_options(params: SamplingParams, *, thinking: Thinking) -> Mapping[str, Any]:
    """The template's own variables. `thinking` is what the operator said: only `on` thinks when
    the call says nothing. An effort alone asks for thinking, unless it is the least."""
    options: dict[str, Any] = {}
    thinks = thinking == "on"
    effort = params.reasoning_effort
    if effort:
        options["reasoning_effort"] = effort
        thinks = effort not in ("none", "minimal") and thinking != "off"
    if params.enable_thinking is not None:
        thinks = params.enable_thinking
    own = params.chat_template_kwargs or {}
    for name in sorted(RENDER_ARGUMENTS & own.keys()):
        raise InvalidRequest(
            f"'chat_template_kwargs' may not set '{name}'; the request has it elsewhere",
            param="chat_template_kwargs",
        )
    for name in ("enable_thinking", "reasoning_effort"):
        asked = getattr(params, name)
        if asked is not None and own.get(name, asked) != asked:
            raise InvalidRequest(
                f"'{name}' and the one in 'chat_template_kwargs' differ; send one of them",
                param=name,
            )
    thinks = own.get("enable_thinking", thinks)
    # Templates of DeepSeek and Granite have the other name for it.
    made = {"enable_thinking": thinks, "thinking": thinks, **options, **own}
    if thinking == "off" and (made["enable_thinking"] or made["thinking"]):
        raise InvalidRequest(
            "thinking is switched off on this server; leave 'enable_thinking' out",
            param="enable_thinking",
        )
    return made


def plain(chat: Chat) -> str:
    """The texts of a conversation that is already formatted, joined as they stand."""
    texts = [message.get("content") for message in chat.messages]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidRequest(
            "without the chat template each message must have a text", param="messages"
        )
    return "".join(map(str, texts))


def param_of(prompt: Prompt) -> str:
    """The field that an error about this prompt names."""
    return "messages" if isinstance(prompt, Chat) else "prompt"


def _check_unicode(text: str, param: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"'{param}' must be valid Unicode; it has a lone surrogate", param=param
        ) from None


def _chars(prompt: Prompt) -> int:
    """About how much text there is to turn; 0 for ids."""
    if isinstance(prompt, str):
        return len(prompt)
    if isinstance(prompt, Chat):
        return sum(map(_weight, (prompt.messages, prompt.tools, prompt.documents)))
    return 0


def _weight(value: object) -> int:
    weight, todo = 0, [value]  # no recursion: a client chooses how deep it goes
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            weight += len(one)
        elif isinstance(one, Mapping):
            weight += 16 * len(one)
            todo.extend(one.values())
        elif isinstance(one, (list, tuple)):
            todo.extend(one)
    return weight
