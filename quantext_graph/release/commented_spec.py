"""The first draft of a spec, from a look at the columns of a data set: what `quantext init` writes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from quantext_graph.data.inspection import ColumnSummary, DatasetSummary, inspect
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Recipe

MOST_COMBINATIONS = 500
"""Attributes are proposed while the product of their sizes stays below; more would make rare combinations."""

BUDGETS = {"notes": 1, "none": 0.5}
"""Proposed nats by recipe. Texts as they are may tell more than is steered, so less is spent on the draw."""

MECHANISM = """\
# How the released distribution is chosen: among candidates around the public joint, spread along the
# secrets, so that one release tells at most budget_nats about each of them. The paper's own setting is
#   mechanism: {{selection: per_component, pool: dirichlet, gamma: 120, k: 30, alpha: 1, targets: iid}}
# keep: six of ten records are released, so that nearly all of them have the target that they get already.
mechanism: {{selection: joint, pool: public, spread: 0.3, budget_nats: {budget}, keep: 0.6, targets: quota}}
"""

MODELS = """\
# The models. The embedded one needs no server and is good enough to try everything, not to publish;
# "ollama:llama3.1:8b" or an OpenAI-compatible server writes better. Texts leave this machine only
# with allow_remote: true.
models: {chat: "embedded:qwen2.5-coder-1.5b", allow_remote: false}
"""

REWRITING = """\
# How a text is made of a record and its target:
#   notes   a model writes every text anew, from notes that are neutral to the attributes
#   source  as in the paper: the model sees the record, what speaks for its labels, and the target
#   none    a record that has its target goes out in its own words: the proportion is hidden, persons are not.
#           Needs labels from columns, or a measured `label_error` below 0.02. The other targets are written
#           from notes, or with `shortage: public` filled by public texts, and then no model is opened.
rewriting: {{recipe: {recipe}{shortage}}}
"""

OUTPUT = """\
# The release folder; `attributes` adds the assigned categories as columns (they are public by then).
output: {path: release, format: csv, attributes: true}
"""

NO_AUXILIARY = """\
# TODO A public data set of the same kind, labelled, that does not hold these records. The attribute
# tree and the candidates are learned from it, never from the private data, so a release of more than
# one attribute needs it. `columns` maps an attribute to the column that labels it there.
# auxiliary: {path: public.csv, text: text, columns: {}}
"""

PLACEHOLDER = """\
  # TODO No column has 2 to 20 values that could be categories, so this attribute is an example: the
  # model labels every text. Write the attribute whose share is to be hidden, and describe each category.
  - name: sentiment
    description: the mood of the text
    categories:
      - {name: negative, description: the writer is unhappy}
      - {name: positive, description: the writer is happy}
"""


def propose_spec(
    data: Path,
    auxiliary: Path | None = None,
    text: str | None = None,
    attributes: Sequence[str] | None = None,
    secret: Mapping[str, str | Sequence[str]] | None = None,
    *,
    recipe: Recipe = "notes",
) -> str:
    """A commented YAML spec for `data`, to be edited; with `auxiliary` it loads as it stands.

    The whole file is read, so that no category is missed. Categories stand in alphabetical order and
    no number of the private data is written down.

    Args:
        data: the private data set. A relative path is meant from the folder the spec is written to.
        auxiliary: a public data set with the same kind of columns.
        text: the column of the texts; the one with the longest cells if left out.
        attributes: columns that become attributes; without them the categorical ones that at least
            half of the records fill, in their order.
        secret: {attribute: category or categories}; a first guess if left out.
        recipe: how texts are made. `none` is proposed with public texts for the shortage, so without a model.

    Raises:
        RecordsError: where a file cannot be read or lacks a named column.
        SpecError: where nothing could be the text, or a named column could not be an attribute.
    """
    look = inspect(data, None)
    text = _text(look, text)
    chosen, left_out = _attributes(look, text, attributes)
    public = None if auxiliary is None else inspect(auxiliary, None)
    parts = [
        "# What is released, what is hidden in it, and how. `quantext check` says what this spec promises.\n",
        f"# The private records{_reading(look)}.\n"
        f"data: {{path: {_scalar(str(data))}, text: {_scalar(text)}}}\n",
        NO_AUXILIARY if public is None else _auxiliary(public, text, chosen),
        _attribute_section(chosen, left_out, public),
        _secret_section(chosen, secret),
        MECHANISM.format(budget=BUDGETS.get(recipe, BUDGETS["notes"])),
        _rewriting(recipe),
        _limits(look, text, chosen),
        OUTPUT,
    ]
    return "\n".join(parts)


def _rewriting(recipe: Recipe) -> str:
    if recipe == "none":
        return REWRITING.format(recipe=recipe, shortage=", shortage: public")
    return REWRITING.format(recipe=recipe, shortage="") + "\n" + MODELS


def _text(look: DatasetSummary, text: str | None) -> str:
    if text is not None:
        return _column(look, text).name
    if look.text is None:
        raise SpecError(f"{look.path}: no column looks like texts; name it with --text")
    return look.text


def _column(look: DatasetSummary, name: str) -> ColumnSummary:
    for column in look.columns:
        if column.name == name:
            return column
    known = [column.name for column in look.columns if column.name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
    raise SpecError(f"{look.path}: no column is called {name!r}; {hint}")


def _attributes(
    look: DatasetSummary, text: str, names: Sequence[str] | None
) -> tuple[list[ColumnSummary], list[str]]:
    """The columns that become attributes, and the names of those that could but would be too many."""
    if names is not None:
        for name in names:
            if _column(look, name).kind != "categorical" or name == text:
                raise SpecError(
                    f"{look.path}, column {name!r}: not 2 to 20 short values shared by several rows, so no "
                    "attribute; name another"
                )
        return [_column(look, name) for name in names], []
    chosen: list[ColumnSummary] = []
    left_out: list[str] = []
    combinations = 1
    for column in look.categorical:
        if column.name == text or column.empty > look.rows / 2:
            continue
        if combinations * len(column.counts) <= MOST_COMBINATIONS:
            combinations *= len(column.counts)
            chosen.append(column)
        else:
            left_out.append(column.name)
    return chosen, left_out


def _reading(look: DatasetSummary) -> str:
    return "" if not look.warnings else " (see the warnings: add `encoding:` if its texts look wrong)"


def _auxiliary(public: DatasetSummary, text: str, chosen: Sequence[ColumnSummary]) -> str:
    names = [column.name for column in public.columns]
    public_text = text if text in names else public.text
    if public_text is None:
        raise SpecError(f"{public.path}: no column looks like texts; call it {text!r} as in the data")
    lacking = [column.name for column in chosen if column.name not in names]
    todo = ""
    if lacking:
        todo = f"# TODO Say in `columns` which of its columns label {_flow(lacking)}.\n"
    source = f"path: {_scalar(str(public.path))}, text: {_scalar(public_text)}, columns: {{}}"
    return (
        "# Public, labelled and apart from the private records: the attribute tree and the candidates are\n"
        "# learned from it.\n"
        f"{todo}auxiliary: {{{source}}}\n"
    )


def _attribute_section(
    chosen: Sequence[ColumnSummary], left_out: Sequence[str], public: DatasetSummary | None
) -> str:
    head = (
        "# What a text can say about its writer or subject. `column` holds the private labels; without it\n"
        "# the model labels the texts. Descriptions help models to read and write a category.\n"
    )
    if left_out:
        head += f"# Left out, since combinations would be rare: {_flow(left_out)}.\n"
    if not chosen:
        return f"{head}attributes:\n{PLACEHOLDER}"
    return f"{head}attributes:\n" + "".join(_attribute(column, public) for column in chosen)


def _attribute(column: ColumnSummary, public: DatasetSummary | None) -> str:
    known = set(column.categories)
    for other in public.columns if public else ():
        if other.name == column.name:
            known.update(other.categories)
    name = _scalar(column.name)
    lines = [f"  - name: {name}", f"    column: {name}", '    description: ""', "    categories:"]
    lines += [f"      - {_scalar(category)}" for category in sorted(known)]
    return "\n".join(lines) + "\n"


def _secret_section(chosen: Sequence[ColumnSummary], secret: Mapping[str, str | Sequence[str]] | None) -> str:
    head = "# The proportions to hide: each is the share of records in the named categories.\n"
    if secret is None:
        head += "# TODO A first guess; write the one that must not be learned from the release.\n"
        secret = {chosen[0].name: chosen[0].categories[0]} if chosen else {"sentiment": "negative"}
    clauses = ", ".join(
        f"{_scalar(name)}: {_scalar(value) if isinstance(value, str) else _flow(value)}"
        for name, value in secret.items()
    )
    return f"{head}secrets:\n  - {{where: {{{clauses}}}}}\n"


def _limits(look: DatasetSummary, text: str, chosen: Sequence[ColumnSummary]) -> str:
    gaps = any(_column(look, name).empty for name in (text, *(column.name for column in chosen)))
    note = (
        "# Some records lack a text or a label: `drop` leaves them out, `error` refuses the data set.\n"
        if gaps
        else "# A record that lacks a text or a label: `error` refuses the data set, `drop` leaves it out.\n"
    )
    return (
        "# Tries to write each text on its target, and the share that must succeed before anything is\n"
        "# published.\n"
        f"{note}limits: {{attempts: 3, min_verified: 0.8, on_missing: {'drop' if gaps else 'error'}}}\n"
    )


def _scalar(value: str) -> str:
    """`value` as a YAML string on one line that also stands inside [...] and {...}."""
    return _flow([value])[1:-1]


def _flow(values: Sequence[str]) -> str:
    plain = all(value.isprintable() for value in values)
    style = None if plain else '"'
    dumped = yaml.safe_dump(
        list(values), default_flow_style=True, default_style=style, allow_unicode=plain, width=1 << 30
    )
    return dumped.strip()
