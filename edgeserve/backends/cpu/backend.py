"""The CPU backend: packs weights, compiles a graph and loads it onto the native kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeserve._native import kernels
from edgeserve._native.cpu import CpuForward, CpuWeights, available_cpus
from edgeserve.backends.contract import Progress
from edgeserve.backends.cpu.compile import compile_graph
from edgeserve.backends.cpu.formats import LAYOUT
from edgeserve.backends.cpu.pack import WEIGHTS, pack_weights, read_layout
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.errors import BadConfig, BundleError
from edgeserve.graph.passes import fuse
from edgeserve.graph.values import Graph

HEAD_BLOCK = 16  # heads are filled up to a multiple of this in pages


class CpuBackend:
    """`Backend` on this machine's CPUs."""

    name = "cpu"

    def key(self, options: EngineOptions) -> dict[str, Any]:
        return {"dtype": options.dtype, "layout": LAYOUT}

    def pack(
        self,
        graph: Graph,
        checkpoint: Checkpoint,
        options: EngineOptions,
        folder: Path,
        progress: Progress,
    ) -> dict[str, Any]:
        threads = options.threads or len(physical_cpus())
        return pack_weights(
            graph, checkpoint, folder, progress, dtype=options.dtype, threads=threads
        )

    def load(
        self,
        graph: Graph,
        folder: Path,
        layout: dict[str, Any],
        options: EngineOptions,
        *,
        pages: int,
        page_tokens: int,
    ) -> CpuForward:
        isa = check_isa(options.isa)
        cpus = physical_cpus()
        threads = options.threads or len(cpus)
        tensors = read_layout(graph, layout)
        program = compile_graph(
            fuse(graph), tensors, activations=activations(options), kv_f32=kv_f32(options)
        )
        weights = _read_weights(folder / WEIGHTS, layout["bytes"], threads)
        return CpuForward(
            weights,
            program,
            pages=pages,
            page_tokens=page_tokens,
            step_tokens=options.step_tokens,
            threads=threads,
            cpus=cpus if options.pin and threads <= len(cpus) else (),
            isa=isa,
        )

    def page_bytes(self, graph: Graph, options: EngineOptions, page_tokens: int) -> int:
        element = 4 if kv_f32(options) else 2
        return sum(
            2 * kv.kv_heads * -(-kv.head_dim // HEAD_BLOCK) * HEAD_BLOCK * page_tokens * element
            for kv in graph.kv
        )


def activations(options: EngineOptions) -> str:
    """int8 | bf16 | f32: what linear layers on quantised weights read."""
    if options.activations != "auto":
        return options.activations
    return "f32" if options.dtype == "f32" else "int8"


def kv_f32(options: EngineOptions) -> bool:
    """Whether keys and values are kept in f32 rather than bf16."""
    if options.kv_dtype != "auto":
        return options.kv_dtype == "f32"
    return options.dtype == "f32"


def check_isa(isa: str | None) -> str | None:
    """The forced instruction set, when this machine can run it."""
    if isa is not None and isa not in kernels.isas():
        raise BadConfig(
            f"this machine cannot run the instruction set '{isa}'; "
            f"it can run: {', '.join(kernels.isas())}"
        )
    return isa


def physical_cpus() -> tuple[int, ...]:
    """One CPU of each core that this process may use."""
    seen: set[str] = set()
    cpus: list[int] = []
    for cpu in available_cpus():
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            core = siblings.read_text(encoding="ascii")
        except OSError:
            core = str(cpu)
        if core not in seen:
            seen.add(core)
            cpus.append(cpu)
    return tuple(cpus)


def _read_weights(path: Path, size: int, threads: int) -> CpuWeights:
    try:
        found = path.stat().st_size
    except OSError:
        found = -1
    if found != size:
        raise BundleError(
            f"the bundle's packed weights have {found} bytes, not {size}; build it again"
        )
    return CpuWeights(str(path), size, threads)
