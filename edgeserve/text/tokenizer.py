"""Text to token ids and back, over the `tokenizers` library. Immutable; any thread may encode."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers

from edgeserve.errors import CheckpointError, InvalidRequest
from edgeserve.text.token_bytes import piece_bytes

if TYPE_CHECKING:
    from edgeserve.checkpoint.view import Checkpoint

_SOURCES = ("generation_config", "config")


class Tokenizer:
    """One model's tokenizer and the ids that mean something to a server."""

    def __init__(
        self, text: str, *, bos_id: int | None = None, eos_ids: tuple[int, ...] = ()
    ) -> None:
        """From the text of tokenizer.json."""
        try:
            tokenizer = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception
            raise CheckpointError(f"tokenizer.json cannot be read: {_short(error)}") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self._added = {i: token.content for i, token in added.items()}
        self.special_ids = frozenset(i for i, token in added.items() if token.special)
        self.bos_id = bos_id
        self.eos_ids = eos_ids

    @cached_property
    def size(self) -> int:
        """One more than the highest id. A front that only encodes never needs it."""
        vocab = self._tokenizer.get_vocab(with_added_tokens=True)
        return 1 + max(vocab.values(), default=-1)

    @cached_property
    def _decoder(self) -> Mapping[str, Any] | None:
        """As in tokenizer.json, without parsing its megabytes a second time."""
        decoder = self._tokenizer.decoder
        if decoder is None:
            return None
        found: Mapping[str, Any] = json.loads(decoder.__getstate__())
        return found

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Tokenizer:
        """With bos and eos ids of generation_config, config or tokenizer_config, in this order."""
        tokenizer = cls(checkpoint.tokenizer_json())
        names = checkpoint.tokenizer_config
        configs = [getattr(checkpoint, source) for source in _SOURCES]
        tokenizer.eos_ids = tokenizer._find("eos", configs, names)
        found = tokenizer._find("bos", configs, names)
        tokenizer.bos_id = found[0] if found else None
        return tokenizer

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """From a tokenizer.json alone, without bos and eos ids."""
        return cls(path.read_text("utf-8"))

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids. `special`: with what the post-processor adds. Special tokens written in the
        text are recognised either way."""
        try:
            return list(self._tokenizer.encode(text, add_special_tokens=special).ids)
        except TypeError:
            raise InvalidRequest(
                "the text holds a lone surrogate, which is not a character; send valid Unicode"
            ) from None

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special))

    def id_of(self, token: str) -> int | None:
        """The id of a token by its written form."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def token_bytes(self, rows: int | None = None) -> list[bytes]:
        """The exact bytes that each id stands for; empty for ids without a token. `rows` makes
        the list as long as the model's logits."""
        pieces = [b""] * max(self.size, rows or 0)
        vocab = self._tokenizer.get_vocab(with_added_tokens=False)
        for i, piece in zip(vocab.values(), piece_bytes(vocab, self._decoder), strict=True):
            pieces[i] = piece
        for i, content in self._added.items():
            pieces[i] = content.encode()
        return pieces

    def _find(
        self, role: str, configs: Iterable[Mapping[str, Any]], names: Mapping[str, Any]
    ) -> tuple[int, ...]:
        for config in configs:
            value = config.get(f"{role}_token_id")
            ids = value if isinstance(value, list) else [value]
            ids = [i for i in ids if isinstance(i, int)]
            if ids:
                return tuple(dict.fromkeys(ids))
        token = self.id_of(token_text(names.get(f"{role}_token")))
        return () if token is None else (token,)


def token_text(token: Any) -> str:
    """The text of a token as tokenizer_config.json writes it: a string, or an object."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _short(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
