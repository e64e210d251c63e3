"""What a tool tells whom: a public part for any model, a private part for the person alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quantext_graph.spec.errors import QuantextError

Fields = dict[str, Any]


@dataclass(frozen=True)
class Reader:
    """The chat model that reads the public part: its name, and whether it is off this machine."""

    name: str = "the chat model"
    remote: bool = True


@dataclass(frozen=True)
class Answer:
    """What a tool says: `public` to the model, `shown` line by line to the person, `private` as data."""

    public: Fields
    shown: Sequence[str] = ()
    private: Fields = field(default_factory=dict)

    def parts(self) -> tuple[Fields, Fields]:
        return self.public, {"shown": list(self.shown), **self.private}


def never_raising(method: Callable[..., Answer]) -> Callable[..., tuple[Fields, Fields]]:
    """A tool's function: an error is an answer, in public by its public line and in private whole."""

    @functools.wraps(method)
    def answer(**arguments: Any) -> tuple[Fields, Fields]:
        try:
            return method(**arguments).parts()
        except QuantextError as error:
            return Answer({"error": error.public_line}, [str(error)]).parts()
        except Exception as error:
            # The message of an unknown exception may hold a record's text: it is shown to nobody.
            fault = f"a fault of the program ({type(error).__name__})"
            return Answer({"error": fault}, [fault]).parts()

    return answer
