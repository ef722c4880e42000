"""The base class of all doors to a backend's network."""

class Forward:
    """A network that can run steps. Made by a backend; held by the core."""

    @property
    def vocab(self) -> int:
        """Width of a row of logits."""
    @property
    def page_tokens(self) -> int:
        """Positions in a page."""
    @property
    def pages(self) -> int:
        """Pages in its storage; ids are 0 to pages - 1."""
    @property
    def step_tokens(self) -> int:
        """Most tokens in one step."""
