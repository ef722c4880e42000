"""Print the requirements of one extra of pyproject.toml, one a line, for `pip install`."""

import sys
from pathlib import Path

import tomllib

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
print("\n".join(project["optional-dependencies"][sys.argv[1]]))
