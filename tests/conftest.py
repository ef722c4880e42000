"""What all tests share. Fixtures of one part of the product stand in that part's folder."""

from __future__ import annotations

from tests.real_model import default_model, model_cache
from tests.scripted import scripted_checkpoint, scripted_plugin
from tests.works import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = [
    "default_model",
    "model_cache",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "scripted_checkpoint",
    "scripted_plugin",
]
