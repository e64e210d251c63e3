"""What a user writes in YAML, read into models: a mistake is one line that says where it stands, what is
wrong and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Spec

Model = TypeVar("Model", bound=BaseModel)


def load_spec(path: str | Path) -> Spec:
    """Read and validate a YAML spec; relative paths in it are taken from its own folder.

    Raises:
        SpecError: with one line for the first mistake: file, place in the spec, what, and how to mend it.
    """
    path = Path(path)
    text = read_text(path, "`quantext init DATA` writes a spec")
    raw = mapping(
        text, str(path), "a spec is a mapping with data, attributes, secrets ...; see `quantext init`"
    )
    return parse_spec(raw, origin=str(path), folder=path.parent)


def parse_spec(raw: dict[str, Any], *, origin: str = "spec", folder: Path | None = None) -> Spec:
    """Validate a spec that is already a mapping; `folder` is where its relative paths start.

    Raises:
        SpecError: as `load_spec`.
    """
    spec = validated(Spec, raw, origin)
    if folder is None:
        return spec
    output = spec.output.model_copy(update={"path": folder.absolute() / spec.output.path})
    return anchored(spec.model_copy(update={"output": output}), folder)


def read_text(path: Path, missing: str) -> str:
    """The text of a file; `missing` says what to do where there is none.

    Raises:
        SpecError: with one line where it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file; {missing}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SpecError(f"{path}: cannot be read ({reason}); write it as UTF-8 YAML") from None


def mapping(text: str, origin: str, expected: str) -> dict[str, Any]:
    """YAML as a mapping; `expected` says what it holds.

    Raises:
        SpecError: with one line, and the number of the line at fault.
    """
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or "syntax"
        raise SpecError(f"{origin}{line}: not valid YAML ({reason})") from None
    if not isinstance(raw, dict):
        raise SpecError(f"{origin}: {expected}")
    return raw


def validated(model: type[Model], raw: dict[str, Any], origin: str) -> Model:
    """The model of a mapping.

    Raises:
        SpecError: with one line for the first mistake.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise SpecError(f"{origin}: {_first_line(model, error)}") from None


def anchored(model: Model, folder: Path) -> Model:
    """A model with `data` and `auxiliary`, their relative paths taken from `folder`."""
    changed = {
        name: source.model_copy(update={"path": folder.absolute() / source.path})
        for name in ("data", "auxiliary")
        if (source := getattr(model, name)) is not None
    }
    return model.model_copy(update=changed)


def _first_line(model: type[BaseModel], error: ValidationError) -> str:
    """The first mistake in words: where it stands in the spec, what is wrong, how to mend it."""
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    where = _place(first["loc"])
    if first["type"] == "extra_forbidden":
        known = sorted(_fields_at(model, first["loc"][:-1]))
        near = difflib.get_close_matches(str(first["loc"][-1]), known, n=1, cutoff=0.5)
        return f"{where}: unknown key; " + (
            f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        )
    if first["type"] == "missing":
        return f"{where}: missing; add it"
    message = first["msg"].removeprefix("Value error, ")
    value = first.get("input")
    shown = f" (got {value!r})" if isinstance(value, str | int | float | bool | None) and where else ""
    return f"{where}: {message}{shown}" if where else message


def _place(loc: tuple[int | str, ...]) -> str:
    named = (part for part in loc if not str(part).startswith("function-"))  # Pydantic's own
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in named)
    return "".join(parts).removeprefix(".")


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> Iterator[str]:
    """Field names of the model that stands at `loc` below `model`."""
    for part in loc:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        if field is None:
            return
        model = _inner_model(field.annotation) or model
    yield from model.model_fields


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _inner_model(inner)
        if found is not None:
            return found
    return None
