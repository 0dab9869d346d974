"""Progress on stderr."""

from collections.abc import Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")


def bar(items: "range | list[T]", what: str) -> Iterator:
    """Iterate with a bar on stderr: done, elapsed, remaining. Silent when stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as shown:
        yield from shown.track(items, description=what)
