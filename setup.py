"""Builds the native core and reads the families' tomls. Everything else stands in pyproject.toml.

The C++ core becomes one shared library, `libedgeserve.so`, beside the Cython doors that link
to it. A kernel source is compiled once per instruction set; `ES_ISA` names its namespace.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.resolve()
NATIVE = Path("_native")
LIBRARY = "libedgeserve.so"
DEBUG = os.environ.get("EDGESERVE_DEBUG") == "1"
# e.g. "address,undefined"; needs EDGESERVE_DEBUG=1 and the sanitizer's library in LD_PRELOAD
SANITIZE = os.environ.get("EDGESERVE_SANITIZE") if DEBUG else None
SANITIZE_FLAGS = [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer"] if SANITIZE else []

# -ffp-contract=off: a compiler that fuses a*b+c in one build and not in another changes results.
COMMON_FLAGS = [
    "-std=c++17",
    "-fPIC",
    "-fvisibility-inlines-hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",  # 32-byte vectors never cross a call
    *(["-O1", "-g", "-D_GLIBCXX_ASSERTIONS"] if DEBUG else ["-O2", "-DNDEBUG"]),
    *SANITIZE_FLAGS,
]

# uninitialized: gcc warns of its own AVX-512 headers.
KERNEL_FLAGS = ["-O1" if SANITIZE else "-O3", "-Wno-uninitialized", "-Wno-maybe-uninitialized"]

# Flags per instruction set, by machine. The names are those that EDGESERVE_ISA accepts.
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"]
ISAS = {
    "x86_64": {
        "scalar": [],
        "avx2": AVX2,
        "avx512": AVX512,
        "avx512_vnni": [*AVX512, "-mavx512vnni"],
        "avx512_bf16": [*AVX512, "-mavx512vnni", "-mavx512bf16"],
        "amx": [*AVX512, "-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16"],
    },
    "aarch64": {
        "scalar": [],
        "neon": ["-march=armv8.2-a+dotprod+fp16"],
    },
}.get(platform.machine(), {"scalar": []})
if SANITIZE:  # minutes of compiling less; these differ from their neighbours by single instructions
    ISAS = {isa: flags for isa, flags in ISAS.items() if isa not in ("avx512", "avx512_bf16")}


def families() -> dict[str, dict]:
    """Each families/<name>/family.toml, by folder name."""
    return {
        toml.parent.name: tomllib.loads(toml.read_text(encoding="utf-8"))
        for toml in sorted((ROOT / "families").glob("*/family.toml"))
    }


def entry_points(tomls: dict[str, dict]) -> dict[str, list[str]]:
    """The index of all families: one entry point per model type, one per GGUF architecture."""
    groups: dict[str, list[str]] = {"edgeserve.families": [], "edgeserve.gguf": []}
    for name, toml in tomls.items():
        target = f"edgeserve_families.{name}:{toml.get('object', 'FAMILY')}"
        groups["edgeserve.families"] += [f"{key} = {target}" for key in toml["model_types"]]
        groups["edgeserve.gguf"] += [f"{key} = {target}" for key in toml.get("gguf", [])]
    groups["console_scripts"] = ["edgeserve = edgeserve.cli:main"]
    return groups


def doors() -> list[Extension]:
    """One extension per .pyx; each links to the shared core next to it."""
    headers = [str(path) for path in NATIVE.glob("**/*.h")]
    extensions = [
        Extension(
            f"edgeserve._native.{pyx.stem}",
            [f"edgeserve/_native/{pyx.name}"],
            language="c++",
            include_dirs=["_native/include"],
            depends=[*headers, *map(str, NATIVE.glob("*.pxd"))],
            extra_compile_args=COMMON_FLAGS + ["-Wno-unused-function", "-Wno-deprecated"],
            extra_link_args=["-Wl,-rpath,$ORIGIN", *SANITIZE_FLAGS],
        )
        for pyx in sorted(NATIVE.glob("*.pyx"))
    ]
    return cythonize(
        extensions,
        build_dir="build/cython",
        include_path=["."],
        compiler_directives={"language_level": 3, "boundscheck": DEBUG, "wraparound": False},
        quiet=True,
    )


class BuildNative(build_ext):
    """Compiles the core into LIBRARY, then the doors against it; both in parallel."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def build_extensions(self) -> None:
        started = time.monotonic()
        library = self.build_library()
        for extension in self.extensions:
            extension.extra_objects = [str(library)]
        super().build_extensions()
        print(f"native core: compiled in {time.monotonic() - started:.0f} s", file=sys.stderr)

    def copy_extensions_to_source(self) -> None:
        super().copy_extensions_to_source()
        self.copy_file(str(Path(self.build_temp) / LIBRARY), str(NATIVE / LIBRARY))

    def run(self) -> None:
        super().run()
        if not self.inplace:
            target = Path(self.build_lib) / "edgeserve" / "_native"
            target.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(Path(self.build_temp) / LIBRARY), str(target / LIBRARY))

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), str(Path(self.build_lib) / "edgeserve/_native" / LIBRARY)]

    def build_library(self) -> Path:
        temp = Path(self.build_temp)
        jobs = [(source, []) for source in sorted(NATIVE.glob("src/*.cpp"))]
        units = [(source, temp / f"{source.stem}.o", flags) for source, flags in jobs]
        for isa, flags in ISAS.items():
            for source in sorted(NATIVE.glob("kernels/*.cpp")):
                object_ = temp / f"{source.stem}.{isa}.o"
                units.append((source, object_, [*KERNEL_FLAGS, f"-DES_ISA={isa}", *flags]))
        defines = [f"-DES_HAS_{isa.upper()}" for isa in ISAS]
        temp.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(self.parallel) as pool:
            fresh = list(pool.map(lambda unit: self.compile_unit(*unit, defines), units))
        library = temp / LIBRARY
        if any(fresh) or not library.exists():
            compiler = os.environ.get("CXX", "g++")
            objects = [str(object_) for _, object_, _ in units]
            link = [compiler, "-shared", "-pthread", *SANITIZE_FLAGS, f"-Wl,-soname,{LIBRARY}"]
            self.call([*link, "-o", str(library), *objects])
        return library

    def compile_unit(
        self, source: Path, object_: Path, flags: list[str], defines: list[str]
    ) -> bool:
        """Compile one source unless its object is newer than all it was made from."""
        depfile = object_.with_suffix(".d")
        if object_.exists() and depfile.exists() and not self.stale(object_, depfile):
            return False
        compiler = os.environ.get("CXX", "g++")
        self.call(
            [compiler, *COMMON_FLAGS, *flags, *defines, "-I_native/include", "-MMD", "-MF"]
            + [str(depfile), "-c", str(source), "-o", str(object_)]
        )
        return True

    @staticmethod
    def stale(object_: Path, depfile: Path) -> bool:
        built = object_.stat().st_mtime
        sources = depfile.read_text().replace("\\\n", " ").split(":", 1)[1].split()
        sources.append("setup.py")
        return any(not os.path.exists(path) or os.path.getmtime(path) > built for path in sources)

    @staticmethod
    def call(command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        sys.stderr.write(done.stderr)
        if done.returncode:
            raise SystemExit(f"compiling failed: {' '.join(command)}")


TOMLS = families()
setup(
    packages=[
        *find_packages(include=["edgeserve", "edgeserve.*"]),
        "edgeserve_families",
        *(f"edgeserve_families.{name}" for name in TOMLS),
    ],
    package_dir={
        "edgeserve_families": "families",
        **{f"edgeserve_families.{name}": f"families/{name}" for name in TOMLS},
    },
    package_data={"edgeserve": ["py.typed", "http/ui/*"], "edgeserve._native": ["*.pyi", "*.pxd"]},
    include_package_data=False,
    ext_modules=doors(),
    entry_points=entry_points(TOMLS),
    cmdclass={"build_ext": BuildNative},
)
