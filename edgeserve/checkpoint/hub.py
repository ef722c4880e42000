"""Models of a hub, through `huggingface_hub`: its own cache, tokens and settings apply."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeserve.checkpoint.arrival import watched
from edgeserve.checkpoint.staging import unwritable
from edgeserve.errors import CheckpointError

if TYPE_CHECKING:
    from edgeserve.checkpoint.resolve import Progress

_FILES = ["*.json", "*.safetensors", "*.jinja", "chat_templates/*.jinja", "*.model"]
_LOGIN = "log in with 'hf auth login' or set HF_TOKEN"


def fetch(source: str, *, cache_dir: Path, offline: bool, progress: Progress) -> Path:
    """The folder of a snapshot of `org/name[@revision]`; a repository of one GGUF gives that."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    repository, _, revision = source.partition("@")
    settings: dict[str, Any] = {
        "repo_id": repository,
        "revision": revision or None,
        "cache_dir": cache_dir / "checkpoints" / "hub",
        "local_files_only": offline,
    }
    stored = settings["cache_dir"] / f"models--{repository.replace('/', '--')}"
    disable_progress_bars()  # the caller shows its own
    try:
        with watched(stored, 0, progress):
            folder = Path(snapshot_download(allow_patterns=_FILES, **settings))
            if not any(folder.glob("*.safetensors")):
                folder = Path(snapshot_download(allow_patterns=["*.gguf"], **settings))
    except Exception as error:
        raise CheckpointError(explain(error, source, offline=offline)) from None
    return folder


def explain(error: Exception, source: str, *, offline: bool) -> str:
    """One sentence with the way out, for each way the hub can say no."""
    from huggingface_hub import errors

    name = source.partition("@")[0]
    reasons: Mapping[type[Exception], str] = {
        errors.GatedRepoError: f"'{name}' is gated; accept its terms on the model's page, then "
        f"{_LOGIN}",
        errors.RepositoryNotFoundError: f"the hub has no '{name}', or it is private; check its "
        f"spelling, or {_LOGIN}",
        errors.RevisionNotFoundError: f"'{source}' names a revision that does not exist; leave "
        "out '@...' for the newest",
        errors.HFValidationError: f"'{name}' is not a hub id; write ORG/NAME",
        errors.OfflineModeIsEnabled: f"'{name}' is not in the cache and HF_HUB_OFFLINE forbids "
        "fetching it; unset it, or give a folder",
    }
    for kind, sentence in reasons.items():
        if isinstance(error, kind):
            return sentence
    if isinstance(error, errors.LocalEntryNotFoundError):
        if offline:
            return (
                f"'{name}' is not in the cache and --offline forbids fetching it; run 'edgeserve "
                f"pull {source}' with a network first"
            )
        return f"the hub cannot be reached for '{name}'; check the network, or give a folder"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"the hub refuses '{name}' to this account; {_LOGIN}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full while fetching '{name}'; free some space and try again"
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return str(unwritable(error))
    return f"fetching '{name}' failed ({type(error).__name__}); check the network and try again"
