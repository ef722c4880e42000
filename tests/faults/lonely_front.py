"""A front that starts a worker, prints its pid and waits to be killed."""

from __future__ import annotations

import asyncio

from edgeserve.config import EngineOptions
from edgeserve.front.status import State
from tests.faults.watched import CARE, Watched


async def main() -> None:
    watched = Watched(EngineOptions(checkpoint="hash"), CARE)
    await watched.until(State.READY)
    print(watched.replica.pid, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
