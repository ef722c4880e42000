"""Bundles: everything that is needed to serve a model on one kind of machine, in one folder.

`ensure` finds or builds one, `open_bundle` opens one, `cache` lists and prunes them.
"""

from __future__ import annotations

from edgeserve.bundle.build import build, ensure
from edgeserve.bundle.bundle import Bundle, open_bundle

__all__ = ["Bundle", "build", "ensure", "open_bundle"]
