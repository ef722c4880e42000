"""From a call to an answer, whatever the API: template, tokens, settings, engine, pieces.

HTTP and `LLM` share it, so both say yes and no to the same things. It runs on one asyncio loop and
reaches the engine only through `ticket.Generator`.
"""
