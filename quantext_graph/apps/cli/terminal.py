"""What a person at a terminal sees: progress, questions, tables. No logic of a release is here."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

TITLES = {
    "pull": "fetch model",
    "prepare": "prepare",
    "openings": "write openings",
    "label": "label",
    "match": "draw and match",
    "rewrite": "rewrite",
    "report": "judge the release",
}
FIGURE = 8  # letters of a cell that is not broken
WIDEST = 200  # columns of a table where the output is no terminal
LINE_EVERY = 10.0  # seconds between lines where the output is no terminal


class _Rate(ProgressColumn):
    """Records a minute."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed * 60:.0f}/min" if speed else "")


class ProgressBars:
    """Draws the events of a run: bars on a terminal, a line now and then elsewhere."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}
        self._said: set[str] = set()
        self._last = 0.0

    def __call__(self, event: Mapping[str, Any]) -> None:
        stage, done, total = event["stage"], event["done"], event["total"]
        title = TITLES.get(stage, stage)
        note = f"{event['verified']} accepted" if "verified" in event else event.get("note", "")
        if self._progress is None:
            self._line(title, done, total, note)
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(title, total=total, note=note, completed=done)
        self._progress.update(self._tasks[stage], completed=done, total=total, note=note)

    def _line(self, title: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if done >= total or title not in self._said or now - self._last > LINE_EVERY:
            self._last = now
            self._said.add(title)
            err.print(f"{title}: {done} of {total}" + (f", {note}" if note else ""))


@contextmanager
def progress_bars() -> Iterator[ProgressBars]:
    """Progress on standard error, so that standard output stays clean for `--json` and pipes."""
    if not err.is_terminal:
        yield ProgressBars(None)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=err) as progress:
        yield ProgressBars(progress)


def agreed(question: str) -> bool | None:
    """A yes or no from the person, or None where nobody can answer."""
    if not sys.stdin.isatty():
        return None
    while True:
        err.print(f"{question} [y/n] ", end="")
        answer = sys.stdin.readline().strip().lower()
        if answer in {"y", "yes"}:
            return True
        if answer in {"n", "no", ""}:
            return False


def lines(said: Iterable[str]) -> None:
    """Lines as they stand: what is in brackets is no markup."""
    for line in said:
        out.print(line, markup=False)


def warn(message: str) -> None:
    err.print(f"[yellow]warning:[/] {escape(message)}")


def fail(message: str) -> None:
    err.print(f"[red]quantext:[/] {escape(message)}")


def table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table; in a narrow terminal words give way to figures, in a file nothing does."""
    drawn = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        short = all(len(row[number]) <= FIGURE for row in rows)
        drawn.add_column(column, overflow="fold", no_wrap=short)
    for row in rows:
        drawn.add_row(*(escape(cell) for cell in row))
    (out if out.is_terminal else Console(highlight=False, width=WIDEST)).print(drawn)


class TerminalPerson:
    """The person at this terminal, or a file of their answers on standard input."""

    def __init__(self) -> None:
        self._bars = ProgressBars(None)

    def say(self, text: str) -> None:
        out.print(f"\n{escape(text)}")

    def show(self, lines: Sequence[str]) -> None:
        """What is for the person alone, set apart from what the model said."""
        for line in lines:
            out.print(f"[dim]│[/] {escape(line)}")

    def ask(self, question: str) -> str | None:
        out.print(f"\n{escape(question)}" if question else "")
        try:
            said = input("> ")
        except (EOFError, KeyboardInterrupt):
            out.print()
            return None
        if not sys.stdin.isatty():
            out.print(said, markup=False)
        return said

    def progress(self, event: Mapping[str, Any]) -> None:
        self._bars(event)
