"""The words of the LLM steps: one Markdown file a step, reviewable by someone who does not program.

A file has a header between `---` lines (what goes in, what comes out), then sections that begin with
`## name`. `$name` stands for words of the spec. Texts of records are never put into these words: they
travel as messages of their own, between the markers that `marked` sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template
from types import MappingProxyType

__all__ = ["Prompt", "load", "marked"]

_MARKER = re.compile(r"<(?=\s*/?\s*(?:text|notes)\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Prompt:
    """One step's words: its header (`in`, `out`) and its sections."""

    name: str
    header: Mapping[str, str]
    sections: Mapping[str, str]

    def say(self, section: str, /, **words: str) -> str:
        """A section with `words` of the spec put in. What is put in is not read again, so braces and
        dollar signs in it are harmless.

        Raises:
            KeyError: for a section or a word that is not there.
        """
        return Template(self.sections[section]).substitute(words).strip()


@cache
def load(name: str) -> Prompt:
    """The prompt in `NAME.md`.

    Raises:
        FileNotFoundError: where there is no such step.
    """
    text = resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    header = dict(line.split(": ", 1) for line in head.strip().splitlines())
    parts = re.split(r"^## (\w+)\n", body, flags=re.MULTILINE)[1:]
    sections = {title: words.strip() for title, words in zip(parts[::2], parts[1::2], strict=True)}
    return Prompt(name, MappingProxyType(header), MappingProxyType(sections))


def marked(text: str, marker: str = "text") -> str:
    """`text` between `<text>` and `</text>`, so that a model can tell it from instructions. Markers
    that the text brings along lose their bracket: they cannot end it."""
    return f"<{marker}>\n{_MARKER.sub('‹', text)}\n</{marker}>"
