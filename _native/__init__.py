"""The compiled core: KV pages, prefix tree, sampler, token stream, CPU kernels.

Each module here is a Cython door to C++ that stands in `src/` and `kernels/`. The doors check and
convert; what runs per token runs there, without the GIL.
"""
