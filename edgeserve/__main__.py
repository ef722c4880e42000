"""`python -m edgeserve`: the same as the command `edgeserve`."""

from __future__ import annotations

import sys

from edgeserve.cli import main

sys.exit(main())
