"""One choice of one request: its tokens, pages, settings and the state of its text."""

from collections.abc import Iterable
from collections.abc import Sequence as Items

from edgeserve._native.pages import PagePool
from edgeserve._native.prefix import PrefixTree
from edgeserve._native.stream import Vocabulary
from edgeserve.generation import ReasoningRules
from edgeserve.sampling import SamplerSettings

class Sequence:
    """Owned by the engine thread. Its pages go back to the pool when it is released or collected.

    Life: made -> adopt a cached prefix -> run in chunks and tokens by `Core` -> finished; or
    released (preemption) and run again from its tokens, with the same result.
    """

    def __init__(
        self,
        id: int,
        prompt: Items[int],
        vocabulary: Vocabulary,
        pool: PagePool,
        page_tokens: int,
        *,
        sampler: SamplerSettings,
        max_tokens: int,
        max_length: int,
        choice: int = 0,
        stop: Items[bytes] = (),
        include_stop: bool = False,
        stop_token_ids: Iterable[int] = (),
        eos_ids: Iterable[int] = (),
        ignore_eos: bool = False,
        suppress_ids: Iterable[int] = (),
        skip_special_tokens: bool = True,
        logprobs: int = -1,
        prompt_logprobs: int = -1,
        hook: bool = False,
        reasoning: ReasoningRules | None = None,
        salt: bytes = b"",
    ) -> None:
        """`prompt`: int32 buffer or any sequence of ids. `max_length`: prompt and generated tokens
        together. `suppress_ids` are never chosen. `hook`: Python changes the logits of each token
        (`Reason.LOGITS`). `reasoning`: its phases (None: all is content), by the
        rules of generation.ReasoningRules. Raises ValueError for a setting out of range."""
    @property
    def id(self) -> int: ...
    @property
    def choice(self) -> int: ...
    @property
    def length(self) -> int:
        """Prompt and generated tokens."""
    @property
    def prompt_length(self) -> int: ...
    @property
    def generated(self) -> int: ...
    @property
    def computed(self) -> int:
        """Tokens whose keys and values are in its pages."""
    @property
    def pending(self) -> int:
        """Tokens still to compute before the next one is sampled: length - computed."""
    @property
    def finish(self) -> int:
        """0 while it goes on, else generation.Finish, or 3: no token could be chosen."""
    @property
    def pages(self) -> int:
        """Pages held."""
    @property
    def phase(self) -> int:
        """Of the next token: 0 content, 1 reasoning."""
    @property
    def phase_start(self) -> int:
        """Position in `tokens()` of the first token of this phase."""
    @property
    def reasoning_tokens(self) -> int:
        """Generated tokens that belong to reasoning, end markers and closing ids among them."""
    @property
    def forced(self) -> int:
        """Forced ids that are not appended yet."""
    @property
    def needs_mask(self) -> bool:
        """Whether the constraint holds for the next token: `constrained`, not in reasoning (unless
        its settings say so), and no forced id comes next."""
    @property
    def constraint_start(self) -> int:
        """Position in `tokens()` of the first token that a constraint speaks of; `length` while
        that is to come."""
    @property
    def constrained(self) -> bool:
        """Whether tokens need masks: while `needs_mask`, sampling without one is `Reason.LOGITS`.

        While True, no start marker begins reasoning again: the constraint says what follows. And
        no end of sequence or stop token is chosen in reasoning before the constraint began."""
    @constrained.setter
    def constrained(self, value: bool) -> None: ...
    def set_mask(self, bits: object) -> None:
        """Allow only the ids whose bit is set, for the next token alone.

        A buffer of 32-bit words, id i in word i // 32, bit i % 32; ids beyond it are refused. May
        be set before the step runs, and then costs no stop of the native loop."""
    def pages_for(self, tokens: int) -> int:
        """Free pages needed to compute `tokens` more tokens, copies on write included."""
    def adopt(self, tree: PrefixTree, limit: int | None = None) -> int:
        """Take the pages of the longest cached prefix of its tokens (at most `limit` tokens, never
        all); returns the tokens adopted, which are `computed` from now. Needs `computed` 0."""
    def fork(self, id: int, choice: int) -> Sequence:
        """Another choice on the same prompt, sharing all pages computed so far.

        The first of them to write into a shared page gets a copy of it. Only before the first
        token is generated: compute all of the prompt but its last token, fork, then run all. The
        fork reports no prompt logprobs. Raises ValueError later."""
    def release(self) -> None:
        """Give all pages back; computed is 0. Tokens, text and sampler state stay."""
    def page_ids(self) -> list[int]:
        """Its page table: page i holds positions from i * page_tokens."""
    def tokens(self) -> memoryview:
        """A copy of all its token ids, format "i"."""
