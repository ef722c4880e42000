"""From token ids to text that is certain, and the way of pieces from the engine to its reader."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import TypeAlias

# (token, logprob, ((token, logprob), ...)): the fields of generation.TokenLogprob
LogprobTuple: TypeAlias = tuple[int, float, tuple[tuple[int, float], ...]]

# (sequence id, text, tokens, logprobs, marks, finish, stop, phase): a Piece after its first field.
# `finish` is 0 while the choice goes on, else a Finish, or 3 (FAILED): no token could be chosen
# because hook, mask or bias left none; the engine answers Failed. `logprobs` is () unless asked.
PieceTuple: TypeAlias = tuple[
    int,
    str,
    tuple[int, ...],
    tuple[LogprobTuple, ...],
    tuple[tuple[int, int], ...],
    int,
    str | int | None,
    int,
]

# (sequence id, logprobs of prompt tokens 1..n-1): once, before the sequence's first piece
PromptTuple: TypeAlias = tuple[int, tuple[LogprobTuple, ...]]

class Vocabulary:
    """The bytes of each token id, and which ids are special. Immutable; shared by all sequences."""

    def __init__(self, pieces: Items[bytes], special_ids: Iterable[int] = ()) -> None:
        """`pieces[id]`: the exact bytes of a token. Raises IndexError for a special id beyond."""
    @property
    def size(self) -> int:
        """Number of ids. An id beyond (padding of the logits) has no text."""
    def piece(self, id: int) -> bytes:
        """The bytes of one id."""
    def is_special(self, id: int) -> bool:
        """Whether the id is special."""

class TextStream:
    """The text of one choice, as it becomes certain. `Sequence` has its own; this door is for tests
    and for text that is cut again (echo).

    Bytes that are not UTF-8 become U+FFFD as `bytes.decode("utf-8", "replace")` does. Withheld is
    only an incomplete character or a live prefix of a stop string. The first stop string to end,
    of those the longest, ends the text. Special tokens are boundaries: no character and no stop
    string reaches across one, and their own text (when shown) feeds no stop string.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        stop: Items[bytes] = (),
        include_stop: bool = False,
        skip_special_tokens: bool = True,
    ) -> None: ...
    def feed(
        self, token: int, *, armed: bool = True
    ) -> tuple[str, tuple[tuple[int, int], ...], str | None]:
        """Text that became certain, marks in it, and the stop string when one ended the text.

        While not `armed`, stop strings do not end the text."""
    def finish(self) -> tuple[str, str | None]:
        """Everything withheld that is no stop string; and the stop string the end completed."""

class Ring:
    """Pieces on their way: the engine thread writes, one other thread drains. Unbounded, but a
    sequence writes at most one entry a token."""

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """An eventfd, readable while something waits."""
    def drain(self) -> list[PieceTuple | PromptTuple]:
        """Everything written since, in order; makes the eventfd unreadable again.

        A prompt's logprobs are the entries of two fields."""
    def close(self) -> None:
        """Close the eventfd. Later writes are kept but wake nobody."""
