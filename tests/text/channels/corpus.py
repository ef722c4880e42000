"""All samples."""

from __future__ import annotations

from tests.text.channels import (
    generic_samples,
    harmony_samples,
    hermes_samples,
    others_samples,
    thinking_samples,
    xml_samples,
)

SAMPLES = [
    *hermes_samples.samples(),
    *thinking_samples.samples(),
    *xml_samples.samples(),
    *others_samples.samples(),
    *generic_samples.samples(),
    *harmony_samples.samples(),
]
