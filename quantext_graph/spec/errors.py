"""Errors that a user can mend: one line that says where, what and how."""

from __future__ import annotations

import difflib


class QuantextError(Exception):
    """Something a user can mend: one line that says where, what and how. The command line exits with 2.

    `public` says whether the line may be shown to anybody, a remote chat model too: it depends on no
    record. Where nothing is said, it may not, and `withheld` stands for it.
    """

    exit_code = 2
    public = False
    withheld = "a private file or record does not fit; the line that says where is for the person alone"

    @property
    def public_line(self) -> str:
        """What anybody may read of this error."""
        return str(self) if self.public else self.withheld


class SpecError(QuantextError):
    """A spec that cannot be followed."""

    public = True


def unknown_name(kind: str, name: str, known: list[str] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return f"no {kind} is called {name!r}; {hint}"
