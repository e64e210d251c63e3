"""Which encoding a text file has: known, guessed with a warning, or refused.

UTF-8 proves itself over a whole file, and so does UTF-16 with its byte order mark. A file that is
neither is taken for Windows-1252 (of which Latin-1's printable part is a part) where that gives
plausible western words; whatever else it may be, a wrong guess would pass in silence, so the user
is asked.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from charset_normalizer import from_bytes

from quantext_graph.data.tables.table import RecordsError

BLOCK = 1 << 16
SAMPLE = 8 * BLOCK

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

NON_ASCII = re.compile(r"[^\x00-\x7f]")
IMPLAUSIBLE = re.compile(
    r"[^\W\d_\x00-\x7f][^\x00-\x7f]{2,}"  # three in a row: another alphabet
    r"|(?<=[a-z])[À-ÖØ-ÞŠŒŽŸ‚„ƒ†‡ˆ](?![A-ZÀ-Þ])"  # a capital that ends or breaks a word: an old Mac or DOS
    r"|(?<=[a-z]{2})[¡¢¥±³¶¹¼¾¿µ]|[¢¥±³¶¹¼¾](?=[a-z]{2})"  # a sign as a letter: Polish
    r"|ý"  # a third of the letters beyond ASCII: Turkish
    r"|[\x80-\x9f]"  # unassigned in Windows-1252
)
IMPLAUSIBLE_SHARE = 0.25
"""Of the characters beyond ASCII. Western prose has under 0.15, also where it was mangled before."""


def find_encoding(path: Path, declared: str | None) -> tuple[str, tuple[str, ...]]:
    """The encoding to open `path` with, and warnings for the user; the whole file decodes in it.

    Raises:
        RecordsError: where it does not decode as declared, or where no guess is safe.
    """
    if declared is not None:
        name = _text_codec(path, declared)
        _must_decode(path, name, f"say another `encoding:` than {declared}, or mend the file")
        return name, ()
    marked = _byte_order_mark(path)
    if marked is not None:
        _must_decode(path, marked, "the file is damaged or cut off; export it again")
        return marked, ()
    wide = _utf16_without_mark(path)
    if wide is not None:
        _must_decode(path, wide, "say its `encoding:` in the spec")
        return wide, (f"{path}: no byte order mark; read as {wide}, a guess: say `encoding:` to be sure",)
    broken = _first_undecodable_line(path, "utf-8")
    if broken is None:
        return "utf-8", ()
    return _western_or_refused(path, broken)


def _text_codec(path: Path, declared: str) -> str:
    try:
        name = codecs.lookup(declared).name
        "".encode(name)  # refuses codecs of bytes, such as base64
    except (LookupError, ValueError):
        raise RecordsError(
            f"{path}: no encoding is called {declared!r}; try utf-8, cp1252, utf-16 or big5"
        ) from None
    return "utf-8-sig" if name == "utf-8" else name


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _byte_order_mark(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(4)
    return next((name for mark, name in BYTE_ORDER_MARKS if head.startswith(mark)), None)


def _utf16_without_mark(path: Path) -> str | None:
    """UTF-16 text of mostly ASCII has a NUL in every other byte, always on the same side."""
    with path.open("rb") as file:
        head = file.read(BLOCK)
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) < len(head) / 5 or min(even, odd) > max(even, odd) / 20:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _first_undecodable_line(path: Path, encoding: str) -> int | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for block in _blocks(path):
            line += _line_ends(decoder.decode(block))
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return line + _line_ends(error.object[: error.start].decode(encoding, errors="replace"))
    except ValueError:  # UnicodeError without a place: UTF-16 or UTF-32 that lacks its mark
        return line
    return None


def _line_ends(text: str) -> int:
    return max(text.count("\n"), text.count("\r"))


def _must_decode(path: Path, encoding: str, mend: str) -> None:
    line = _first_undecodable_line(path, encoding)
    if line is not None:
        raise RecordsError(f"{path}, line {line}: not valid {encoding}; {mend}")


def _western_or_refused(path: Path, broken: int) -> tuple[str, tuple[str, ...]]:
    sample = _blocks_beyond_ascii(path)
    as_utf8 = sample.decode("utf-8", errors="replace")
    wrong = as_utf8.count("�")
    if len(NON_ASCII.findall(as_utf8)) >= 2 * wrong:  # as many right characters as wrong bytes
        raise RecordsError(
            f"{path}, line {broken}: not valid UTF-8, though other parts of the file are; "
            "mend that line, or say the `encoding:` of the whole file"
        )
    text = sample.decode("cp1252", errors="replace")
    doubtful = sum(len(NON_ASCII.findall(match.group())) for match in IMPLAUSIBLE.finditer(text))
    doubtful += text.count("�")
    high = len(NON_ASCII.findall(text))
    if doubtful > IMPLAUSIBLE_SHARE * high or _first_undecodable_line(path, "cp1252") is not None:
        raise RecordsError(f"{path}, line {broken}: not UTF-8{_likely(sample)}; say `encoding:` in the spec")
    warning = (
        f"{path}: not UTF-8; read as cp1252 (Windows, Latin-1), a guess: say `encoding:` if texts look wrong"
    )
    return "cp1252", (warning,)


def _blocks_beyond_ascii(path: Path) -> bytes:
    """Up to half a megabyte of those parts of the file that hold bytes beyond ASCII."""
    kept = bytearray()
    for block in _blocks(path):
        if not block.isascii():
            kept += block
        if len(kept) >= SAMPLE:
            break
    return bytes(kept)


def _likely(sample: bytes) -> str:
    whole_lines = sample[: sample.rfind(b"\n", 0, BLOCK) + 1] or sample[:BLOCK]
    best = from_bytes(whole_lines).best()
    return f" and perhaps {best.encoding}" if best is not None else ""
