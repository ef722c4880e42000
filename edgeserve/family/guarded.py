"""A family as its callers get it: whatever it raises, or returns of a wrong type, is one
`FamilyError` with the name of the package to blame. Refusals of its own pass as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.errors import EdgeserveError, FamilyError
from edgeserve.family.contract import Family, GraphOptions, ModelSpec, Sampler
from edgeserve.graph.values import Graph
from edgeserve.log import Log

if TYPE_CHECKING:
    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer

log = Log("family")

T = TypeVar("T")


class GuardedFamily:
    """A family, with `owner` as the words that name its package in errors."""

    def __init__(self, family: Family, owner: str) -> None:
        self._family = family
        self._owner = owner
        self.name = family.name
        self.contract = family.contract
        self.gguf = family.gguf
        self.version: str | None = getattr(family, "version", None)  # else its package's

    def spec(self, checkpoint: Checkpoint) -> ModelSpec:
        return self._checked("spec", ModelSpec, self._call("spec", checkpoint))

    def tokenizer(self, checkpoint: Checkpoint) -> Tokenizer:
        tokenizer: Tokenizer = self._call("tokenizer", checkpoint)
        return tokenizer

    def template(self, checkpoint: Checkpoint) -> ChatTemplate | None:
        template: ChatTemplate | None = self._call("template", checkpoint)
        return template

    def sampler(self, checkpoint: Checkpoint) -> Sampler:
        return self._checked("sampler", Sampler, self._call("sampler", checkpoint))

    def graph(self, checkpoint: Checkpoint, options: GraphOptions) -> Graph:
        return self._checked("graph", Graph, self._call("graph", checkpoint, options))

    def _call(self, part: str, *given: Any) -> Any:
        work: Callable[..., Any] = getattr(self._family, part)
        try:
            return work(*given)
        except EdgeserveError:
            raise
        except Exception as error:  # a plugin may fail in any way
            log.fault("plugin_failed", error, family=self.name, part=part)
            raise FamilyError(
                f"{self._owner}: '{part}' of family '{self.name}' failed on this checkpoint "
                f"({type(error).__name__}: {str(error)[:200]}); update or remove it"
            ) from error

    def _checked(self, part: str, kind: type[T], made: Any) -> T:
        if not isinstance(made, kind):
            raise FamilyError(
                f"{self._owner}: '{part}' of family '{self.name}' returns a "
                f"{type(made).__name__}, not a {kind.__name__}; update or remove it"
            )
        return made
