"""Fields that cannot change the result. They are accepted with any value and mean nothing here."""

from __future__ import annotations

from typing import Any

import msgspec


class Harmless(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The documented list; any field that is neither here nor in the request is a 400."""

    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    safety_identifier: Any = None
    client_metadata: Any = None
    disable_spec_decode: Any = None  # there is no speculative decoding
    extra_body: Any = None
    request_id: Any = None  # X-Request-ID names the request


HARMLESS = Harmless.__struct_fields__
