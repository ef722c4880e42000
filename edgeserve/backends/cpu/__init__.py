"""The CPU backend: number formats, packing, the compiler from engine graph to flat program, and the
`Backend` that the worker loads. What runs per token stands in `_native/kernels` and `_native/src`.
"""

from edgeserve.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
