"""The dataset card of a release, with YAML front matter as the Hugging Face hub reads it.

`facts` is all that may be said in public; `card` says it in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import yaml
from pydantic import JsonValue

from quantext_graph.mechanism.plain_words import assumptions, guarantee
from quantext_graph.mechanism.public_draw import Parameter, PublicDraw, SecretLeakage
from quantext_graph.spec.models import Recipe, Rewriting, Spec
from quantext_graph.workspace.records import Kept
from quantext_graph.workspace.reports import Judgement, ModelNames, Report


class Facts(Kept):
    """All that a release says of itself, as `release.json`. By `recipe: none`, `own_at_most` is the largest
    share of the texts that may be records in their own words, by public counts alone."""

    format: int = 1
    quantext_graph: str
    n: int
    columns: tuple[str, ...]
    attributes: dict[str, tuple[str, ...]]
    mechanism: dict[str, Parameter]
    private: bool
    leakage: tuple[SecretLeakage, ...]
    released_distribution: dict[str, JsonValue]
    released_shares: dict[str, float]
    notes: tuple[str, ...]
    label_errors: str = ""
    rewriting: Rewriting = Rewriting()
    own_at_most: float | None = None
    evaluation: Judgement
    models: ModelNames | None


def facts(spec: Spec, draw: PublicDraw, report: Report, columns: Sequence[str]) -> Facts:
    """What a release may say of itself: a function of the spec, the draw, n and the texts alone."""
    chat, verify, rewriting = spec.models.chat, spec.models.verify, spec.rewriting
    named = report.models or ModelNames(rewriter=chat.model, verifier=(verify or chat).model)
    return Facts(
        quantext_graph=version("quantext-graph"),
        n=report.n,
        columns=tuple(columns),
        attributes={a.name: a.category_names for a in spec.attributes},
        mechanism=draw.mechanism,
        private=not draw.seeded,
        leakage=draw.leakage,
        released_distribution=draw.released,
        released_shares=draw.shares,
        notes=draw.notes,
        label_errors=draw.label_errors,
        rewriting=rewriting,
        own_at_most=draw.own_at_most,
        evaluation=report.evaluation,
        models=named if rewriting.needs_model else None,
    )


def card(known: Facts, data_file: str) -> str:
    """The README.md of a release folder."""
    front = {
        "pretty_name": "QuanText release",
        "tags": ["quantext", "privacy", "synthetic"],
        "size_categories": [_size_category(known.n)],
        "configs": [{"config_name": "default", "data_files": data_file}],
    }
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    sections = [
        f"---\n{head}---\n\n# A release with a hidden proportion",
        _intro(known),
        _guarantee_section(known),
        _mechanism_section(known),
        _evaluation_section(known),
        _columns_section(known, data_file),
    ]
    return "\n\n".join(sections) + "\n"


def _intro(known: Facts) -> str:
    made = _as_they_are(known) if known.rewriting.own_words else _rewritten(known)
    return (
        f"{made} The attribute distribution of this release is one of many publicly known candidates, drawn "
        "among those near the private one (QuanText, Alg. 1). "
        f"Made with quantext-graph {known.quantext_graph}."
    )


_MADE_BY: dict[Recipe, str] = {
    "notes": "{model} wrote each text from notes of a private text and its drawn combination.",
    "source": "{model} rewrote each private text towards its drawn combination.",
}


def _rewritten(known: Facts) -> str:
    """By which ways a text may have come about, without how many did: that tells of the private texts."""
    model = known.models.rewriter if known.models else "a language model"
    return (
        f"{known.n} texts, each for a combination of attributes that was drawn at random. "
        f"{_MADE_BY[known.rewriting.recipe].format(model=model)} {_where_it_failed(known)}"
    )


def _where_it_failed(known: Facts) -> str:
    attribute, categories = next(iter(known.attributes.items()))
    return (
        "Where the model wrote nothing that could be published, it wrote the text from less of the private "
        "text; where it failed at that too, the text is made of the spec's words, such as "
        f"“{attribute}: {categories[0]}”, and counts as off target."
    )


def _as_they_are(known: Facts) -> str:
    """The words for texts that go out as they are; their numbers depend on nothing private."""
    made = known.rewriting
    own = known.own_at_most or 0.0
    others = (
        "are public texts, as they were written too: they fill the drawn number of each combination, chosen "
        "at random and none twice unless a combination has too few"
        if made.shortage == "public"
        else "were written by a language model from notes of a private text, towards a combination of "
        "attributes that was drawn at random"
    )
    labels = (
        "Labels come from columns of the data"
        if made.label_error is None
        else f"Labels were measured to be wrong for {made.label_error:.1%} of the texts"
    )
    return (
        f"{known.n} texts. **Private texts stand here as they were written: this release hides a proportion, "
        "not persons.** Names, places and stories in them are not changed. At most "
        f"{own:.0%} of the texts are private ones in their own words; the other {1 - own:.0%} or more "
        f"{others}. How many of a combination may be private is made of public shares, so that it does not "
        f"tell the private ones. {labels}.{' ' + _where_it_failed(known) if made.needs_model else ''}"
    )


def _guarantee_section(known: Facts) -> str:
    lines = ["## What it hides"]
    for leakage in known.leakage:
        said = " ".join(guarantee(leakage, known.private))
        lines.append(f"**{leakage.secret}.** {said}")
    log_l = known.leakage[0].log_l
    lines.append("This rests on:")
    rests = [
        *assumptions(known.mechanism, log_l, own_words=known.rewriting.own_words),
        *filter(None, [known.label_errors]),
    ]
    lines.append("\n".join(f"- {line}" for line in rests))
    lines.append(
        "The bound is Statistic Maximal Leakage: success of any attacker ≤ (their success without the "
        "release) · e^nats."
    )
    return "\n\n".join(lines)


def _mechanism_section(known: Facts) -> str:
    rows = "\n".join(f"| {key} | {value} |" for key, value in known.mechanism.items() if value is not None)
    notes = "".join(f"\n- {note}" for note in known.notes)
    return f"## Mechanism\n\n| parameter | value |\n|---|---|\n{rows}" + (f"\n{notes}" if notes else "")


def _evaluation_section(known: Facts) -> str:
    judged = known.evaluation
    rows = "\n".join(
        f"| {name} | {judged.corrected_by_attribute.get(name) or 'cannot be told'} | {_percent(right)} | "
        f"{_percent(judged.chance.get(name))} |"
        for name, right in judged.accuracy.items()
    )
    models = known.models
    if models is None:
        return (
            "## How well the texts say what they should\n\nNo model wrote, labelled or judged a text: each "
            "is a row of the private or the public set, and its attributes are what that file says of it."
        )
    taken = " This takes the judge to err on these texts as on public ones." if judged.corrected else ""
    return (
        "## How well the texts say what they should\n\n"
        f"{judged.headline}{taken}\n\n"
        "| attribute | texts on target, corrected for the judge's mistakes | judge right on texts held out | "
        f"by chance |\n|---|---|---|---|\n{rows}\n\n"
        f"Written by {models.rewriter}, checked on the way by {models.verifier}."
    )


def _columns_section(known: Facts, data_file: str) -> str:
    lines = ["- `id`: new, in a random order", f"- `text`: {_what_text(known)}"]
    for name, categories in known.attributes.items():
        if name in known.columns:
            lines.append(f"- `{name}`: the drawn target, one of {', '.join(categories)}")
    return f"## Columns of `{data_file}`\n\n" + "\n".join(lines)


def _what_text(known: Facts) -> str:
    if not known.rewriting.needs_model:
        return "a private or a public text, as it was written"
    return (
        "a private text as it was written, or a new one"
        if known.rewriting.own_words
        else "the rewritten text"
    )


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{share:.0%}"


def _size_category(n: int) -> str:
    bounds = (("n<1K", 1e3), ("1K<n<10K", 1e4), ("10K<n<100K", 1e5), ("100K<n<1M", 1e6), ("1M<n<10M", 1e7))
    return next((name for name, bound in bounds if n < bound), "n>10M")
