"""Backends run an engine graph. The core owns pages, sampling and the token stream."""
