"""What the answer of a call must follow, read and proved before anything is sent to an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeserve.errors import UnsupportedFeature
from edgeserve.guide import Guide
from edgeserve.pipeline.call import Call, Chat

if TYPE_CHECKING:
    from edgeserve.pipeline.reading import Readers
    from edgeserve.text.guide.maker import GuideMaker


class GuideDesk:
    """One per process and model. What makes guides is loaded, and its processes are started, when
    the first guide is asked for."""

    def __init__(self) -> None:
        self._maker: GuideMaker | None = None

    async def make(self, call: Call, readers: Readers) -> Guide | None:
        """The guide that a call asks for; None when it asks for none. Raises InvalidRequest."""
        if call.params.surfaces and (guide := await self._wished(call)) is not None:
            return guide
        return await self._calls(call, readers) if call.must_call else None

    async def _calls(self, call: Call, readers: Readers) -> Guide | None:
        """Of an answer that must be calls; None when the model writes them in a way that no guide
        knows."""
        tools = [p.tools for p in call.prompts if isinstance(p, Chat) and p.tools]
        wire = readers.call_grammar(call)
        if not tools or wire is None:
            return None
        special = readers.special_id
        several = call.parallel_tool_calls
        return await self._made().calls(wire, tools[0], special, several=several)

    async def _wished(self, call: Call) -> Guide | None:
        surfaces = call.params.surfaces
        from edgeserve.text.guide.wish import read_wish

        wish = read_wish(surfaces)
        if wish is None:
            return None
        if any(isinstance(prompt, Chat) and prompt.tools for prompt in call.prompts):
            name = wish.param.partition(".")[0]
            raise UnsupportedFeature(
                f"'{name}' leaves no room for the calls of 'tools'; send one of them", param=name
            )
        return await self._made().make(surfaces)

    def _made(self) -> GuideMaker:
        if self._maker is None:
            from edgeserve.text.guide.maker import GuideMaker

            self._maker = GuideMaker()
        return self._maker

    def close(self) -> None:
        if self._maker is not None:
            self._maker.close()
