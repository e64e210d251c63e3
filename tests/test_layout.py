"""The house: twelve rooms at most, and each says what it is for."""

import ast
from pathlib import Path

TOP = Path(__file__).parents[1] / "quantext_graph"


def test_there_are_at_most_twelve_rooms_and_no_heap() -> None:
    rooms = {path.name for path in TOP.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert len(rooms) <= 12
    assert {path.stem for path in TOP.glob("*.py")} == {"__init__", "__main__"}


def test_every_room_says_what_it_is_for() -> None:
    for path in TOP.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.relative_to(TOP)
