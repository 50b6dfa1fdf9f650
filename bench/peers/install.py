"""Install AllenNLP 2.10's ELMo into the environment that runs this; all other peers come from requirements.txt.

AllenNLP pins packages that do not exist for this Python, so it goes in without its dependencies. It also imports
torchvision, which ELMo never calls and which would bring another torch: an empty package of that name stands in.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

ALLENNLP = "allennlp==2.10.1"
EMPTY_MODULE = '''"""Stands in for a package that is imported and never used."""


class Empty: ...


def __getattr__(name: str) -> type[Empty]:
    return Empty
'''
ROOMS = ("transforms", "models", "io")


def main() -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", ALLENNLP], check=True)
    package = Path(sysconfig.get_path("purelib")) / "torchvision"
    for room in ROOMS:
        (package / room).mkdir(parents=True, exist_ok=True)
        (package / room / "__init__.py").write_text(EMPTY_MODULE)
    (package / "__init__.py").write_text(f"from . import {', '.join(ROOMS)}\n\n__version__ = '0'\n")


if __name__ == "__main__":
    main()
