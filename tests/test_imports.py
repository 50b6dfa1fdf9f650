"""Rooms import only rooms to their left in the flow, and the light ones stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headstart

SOURCE = Path(headstart.__file__).parent
# From the ground up: a room imports rooms of lower layers, and rooms before it in its own.
LAYERS = {
    "foundation": ["errors", "atomic", "checksums", "config", "progress", "metrics", "cores"],
    "text": ["text"],
    "rows": ["batches"],
    "encoders": ["encoders"],
    "model": ["mix", "heads", "model"],
    "tasks": ["tasks"],
    "training": ["report", "training", "pretrained"],
    "verbs": ["weights", "pretraining", "transfer", "exporting", "estimator", "comparison", "inspection", "claims"],
    "command line": ["serving", "cli"],
}
FLOW = [room for rooms in LAYERS.values() for room in rooms]
WITHOUT_TORCH = ["errors", "atomic", "checksums", "config", "progress", "metrics", "text", "report"]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


FILES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py", SOURCE / "__main__.py"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    rooms = {name.split(".")[1] for name in imports_of(path) if name.startswith("headstart.")}
    allowed = FLOW[: FLOW.index(room) + 1]
    assert rooms <= set(allowed) | {room}, f"{path} imports {sorted(rooms - set(allowed))}"


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in WITHOUT_TORCH], ids=lambda p: p.stem)
def test_light_rooms_do_not_name_torch(path: Path) -> None:
    assert not any(name.split(".")[0] == "torch" for name in imports_of(path))


@pytest.mark.parametrize("module", ["headstart", "headstart.cli.main", "headstart.text.tokenise"])
def test_light_modules_do_not_load_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
