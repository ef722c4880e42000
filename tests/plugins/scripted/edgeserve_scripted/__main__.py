"""`python -m edgeserve_scripted FOLDER` writes a checkpoint with the built-in scripts."""

import sys
from pathlib import Path

from edgeserve_scripted.checkpoint import write_checkpoint

if len(sys.argv) != 2:
    sys.exit("usage: python -m edgeserve_scripted FOLDER")
print(write_checkpoint(Path(sys.argv[1])))
