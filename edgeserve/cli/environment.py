"""The environment variables of the command line. Flags win over them; nothing else reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLES: dict[str, str] = {
    "EDGESERVE_API_KEY": "API key of `serve`; several are separated by commas",
    "EDGESERVE_CACHE": "folder of downloads and bundles (--cache-dir)",
    "EDGESERVE_ISA": "instruction set to use instead of the best one (--isa)",
    "EDGESERVE_LOG_LEVEL": "debug, info, warning or error (--log-level)",
    "EDGESERVE_OFFLINE": "1 forbids downloads (--offline)",
    "EDGESERVE_THREADS": "CPU threads (--threads)",
    "EDGESERVE_TRACEBACK": "1 shows Python's traceback when a command fails",
}


class Environment:
    """A view of the variables above; an empty value counts as unset."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = os.environ if values is None else values

    def text(self, name: str) -> str | None:
        return self._values.get(f"EDGESERVE_{name}") or None

    def flag(self, name: str) -> bool:
        return self._values.get(f"EDGESERVE_{name}", "") not in ("", "0", "false", "no")

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in (self.text(name) or "").split(",") if word.strip())
