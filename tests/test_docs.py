"""The page that says how Headstart is built agrees with the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import headstart

SOURCE = Path(headstart.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs" / "flow.svg").read_text(encoding="utf-8")
LONGEST_WALK = 30


def section(title: str) -> str:
    """The part of the page under one heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/README.md has no section '{title}'"
    return found[1]


def table_of(title: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def layers() -> dict[str, list[str]]:
    """LAYERS as tests/test_imports.py has it."""
    tree = ast.parse((ROOT / "tests" / "test_imports.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "LAYERS" for t in node.targets):
            found: dict[str, list[str]] = ast.literal_eval(node.value)
            return found
    raise AssertionError("tests/test_imports.py has no LAYERS")


def rooms_imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.split(".")[1] for name in names if name.startswith("headstart.")}


def import_graph() -> dict[str, set[str]]:
    """room -> the other rooms that its files import."""
    graph: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        if path not in (SOURCE / "__init__.py", SOURCE / "__main__.py"):
            room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
            graph.setdefault(room, set()).update(rooms_imported(path) - {room})
    return graph


def test_the_page_draws_the_import_graph_of_the_source() -> None:
    drawn = {names_in(room)[0]: set(names_in(imports)) for room, imports in table_of("Which rooms import which")}
    assert drawn == import_graph()


def test_page_and_picture_have_the_layers_that_the_imports_keep() -> None:
    drawn: dict[str, list[str]] = {}
    for layer, room, *_ in table_of("The rooms"):
        drawn.setdefault(layer, []).extend(names_in(room))
    assert drawn == layers()
    assert list(drawn) == list(layers())
    named = re.findall(r'class="layer"[^>]*>([^<]+)<', PICTURE)
    assert named == list(reversed(layers()))
    assert set(re.findall(r'class="pill"[^>]*>([^<]+)<', PICTURE)) == {r for rooms in layers().values() for r in rooms}


def test_the_walk_of_one_example_passes_files_that_exist() -> None:
    text = section("The walk of one example")
    walk = re.findall(r"^(\d+)\. `([^`]+)`", text, re.MULTILINE)
    files = [file for _, file in walk]
    assert [int(number) for number, _ in walk] == list(range(1, len(walk) + 1))
    assert len(set(files)) == len(files) <= LONGEST_WALK
    others = [name for _, cell in table_of("The walk of one example") for name in names_in(cell)]
    assert not set(files) & set(others)
    missing = [file for file in (*files, *others) if not (SOURCE / file).is_file()]
    assert not missing
    in_all = re.search(r"functions of (\d+) files in all.*The other (\d+)", text, re.DOTALL)
    assert in_all is not None
    assert (int(in_all[1]), int(in_all[2])) == (len(files) + len(others), len(others))


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*(ROOT / "docs").glob("*.md"), ROOT / "README.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_named_on_the_pages_exist() -> None:
    places = (ROOT, SOURCE, SOURCE / "encoders", SOURCE / "heads", ROOT / "tests" / "encoders")
    for page in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
            assert any((place / name).is_file() for place in places), f"{page.name} names {name}"
