"""Threads whose exceptions are not lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def at_once(count: int, work: Callable[[], Result]) -> list[Result]:
    """What `work` gives in so many threads at once; raises what any of them raised."""
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work) for _ in range(count)]]
