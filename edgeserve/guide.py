"""What the text of one request must follow, as data that crosses from a front to an engine.

A front makes and checks it (`text/guide`); an engine enforces it (`engine/guides.py`). The grammar
is in the form that `llguidance` reads, so the engine never looks at a client's own text.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["json_object", "json_schema", "regex", "ebnf", "choice", "structural_tag", "calls"]

SOURCE_BYTES = 128 * 1024  # the longest guide a client may send

# Bounds of the work for one grammar, the same where it is checked and where it runs.
FUEL: dict[str, int] = {
    "max_items_in_row": 2_000,
    "initial_lexer_fuel": 500_000,
    "step_lexer_fuel": 200_000,
    "step_max_items": 50_000,
    "max_lexer_states": 100_000,
    "max_grammar_size": 200_000,
}


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """A grammar that the generated text must follow from its first token, or from a mark on."""

    kind: Kind
    grammar: str
    param: str | None = None  # where it stands in the body, for errors
    relaxed: str = ""  # what of the schemas is left to the model, in a sentence for the answer
    start_after: int | None = None  # token id: nothing is enforced until it was generated
    jump_forward: bool = False  # append forced tokens without a forward pass

    @property
    def has_free_text(self) -> bool:
        """Whether only parts of the text follow the grammar."""
        return self.kind == "structural_tag"

    @property
    def is_json(self) -> bool:
        """Whether the text is JSON, for the most part."""
        return self.kind in ("json_object", "json_schema", "calls")
