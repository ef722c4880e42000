"""A model family that replays scripts: the deterministic test double of a language model.

`write_checkpoint` makes its checkpoint; README.md says how a request chooses what is said.
"""

from edgeserve_scripted.checkpoint import write_checkpoint
from edgeserve_scripted.script import Script
from edgeserve_scripted.vocabulary import EOS, SPECIAL, VOCAB, encode

__all__ = ["EOS", "SPECIAL", "VOCAB", "Script", "encode", "write_checkpoint"]
