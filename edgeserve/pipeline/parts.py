"""Tokenizer and chat template of a served model, read from its bundle by its family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeserve.bundle.manifest import Manifest
from edgeserve.bundle.view import BundleCheckpoint
from edgeserve.family import discover
from edgeserve.family.contract import Family
from edgeserve.model_info import ModelInfo
from edgeserve.text.template import ChatTemplate

if TYPE_CHECKING:
    from edgeserve.text.tokenizer import Tokenizer


def read_text_parts(
    info: ModelInfo, chat_template: str | None = None
) -> tuple[Tokenizer, ChatTemplate | None]:
    """What the family makes of the bundle; `chat_template` replaces the model's own."""
    family = _family(info)
    view = BundleCheckpoint(Path(info.bundle))
    if chat_template is None:
        return family.tokenizer(view), family.template(view)
    other = _OtherTemplate(Path(info.bundle), view.manifest, chat_template)
    return family.tokenizer(view), ChatTemplate.from_checkpoint(other)


def _family(info: ModelInfo) -> Family:
    """The one that the worker uses: by model type, unless its operator forced another."""
    if info.model_type in discover.installed():
        family = discover.load(info.model_type)
        if family.name == info.family:
            return family
    return discover.load(info.family)


class _OtherTemplate(BundleCheckpoint):
    """A bundle with the operator's chat template in place of all of its own."""

    def __init__(self, path: Path, manifest: Manifest, template: str) -> None:
        super().__init__(path, manifest)
        self._template = template

    @property
    def tokenizer_config(self) -> Mapping[str, Any]:
        own = super().tokenizer_config
        return {key: value for key, value in own.items() if key != "chat_template"}

    def chat_template(self) -> str:
        return self._template
