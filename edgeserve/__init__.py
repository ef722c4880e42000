"""Serve language, vision and speech models from one machine."""

__version__ = "0.1.0"
