"""The spec in words: how an attribute, a category or a whole target is described to a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quantext_graph.prompts import load
from quantext_graph.spec.models import Attribute, Category, Spec


def category_words(attribute: Attribute) -> tuple[str, ...]:
    """What a model is asked to say for each category: its `word` where every category has its own,
    else the names."""
    words = tuple(category.word for category in attribute.categories)
    distinct = len({word.casefold() for word in words}) == len(words)
    return words if all(words) and distinct else attribute.category_names


def category_list(attribute: Attribute, words: Sequence[str], prompt: str, key: str) -> str:
    section = load(prompt)
    lines = (
        section.say("category", **{key: word, "description": category.description or category.name})
        for word, category in zip(words, attribute.categories, strict=True)
    )
    return "\n".join(lines)


def question(attribute: Attribute) -> str:
    description = attribute.description or attribute.name
    said: str = load("score").say("question", name=attribute.name, description=description)
    return said


def describe(spec: Spec, target: Sequence[int]) -> str:
    """One line for a combination of categories: `Stance: FAVOR (the writer supports the target); ...`."""
    return "; ".join(_clause(attribute, category) for attribute, category in chosen(spec, target)) + "."


def spec_words(spec: Spec, target: Sequence[int]) -> str:
    """A text for a target in the words of the spec alone, for when no model wrote one. It is no text on
    target, whoever reads it: it says so only as the spec does."""
    return " ".join(opinions(spec, target)) or describe(spec, target)


def opinions(spec: Spec, target: Sequence[int], limit: int = 6) -> tuple[str, ...]:
    """First-person sentences that fit the target: up to `limit`, shared fairly by the attributes."""
    pools = [category.opinions for _, category in chosen(spec, target) if category.opinions]
    share = max(1, limit // max(1, len(pools)))
    return tuple(line for pool in pools for line in pool[:share])


def opinion_lines(spec: Spec, target: Sequence[int], prompt: str = "rewrite") -> str:
    lines = opinions(spec, target)
    if not lines:
        return ""
    said: str = load(prompt).say("opinions", opinions="\n".join(f"- {line}" for line in lines))
    return said


def chosen(spec: Spec, target: Sequence[int]) -> Iterable[tuple[Attribute, Category]]:
    """The category of each attribute that `target` names."""
    for attribute, code in zip(spec.attributes, target, strict=True):
        yield attribute, attribute.categories[code]


def _clause(attribute: Attribute, category: Category) -> str:
    extra = f" ({category.description})" if category.description else ""
    return f"{attribute.name}: {category.name}{extra}"
