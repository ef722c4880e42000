"""Structured output in the front: from a request's body to a checked `Guide`."""
