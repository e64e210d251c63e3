"""What the steps work with, made once a run from the spec and public data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic_core import CoreSchema, core_schema

from quantext_graph.core.chow_liu import Tree, mutual_information
from quantext_graph.mechanism.guarantees import release_tree
from quantext_graph.models.chat_model import ChatModel, text_embedding
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.models import Attribute, Spec
from quantext_graph.steps.classifier import Features, HeldOut, TextClassifier
from quantext_graph.steps.examples import Combination, Examples
from quantext_graph.steps.openings import Openings
from quantext_graph.steps.passages import is_small, passage_words
from quantext_graph.steps.public_rows import ENOUGH, SMALLEST
from quantext_graph.steps.questions import Questions
from quantext_graph.steps.telling import TellingWords

_TELLING = 0.03
"""Mutual information (nats) from which on an attribute is worth naming in a question about another;
on real posts 0.05 (topic and tone) and 0.08 (topic and stance)."""

Mode = Literal["column", "llm", "classifier", "both"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Kit:
    """Models, classifiers, examples and openings of one run.

    `labeller` labels records (all auxiliary rows); `picker` judges drafts (part of the rows, words);
    `evaluator` judges the release and takes no part in picking (the other rows, characters). Without
    `ENOUGH` rows the LLM labels and picks alone, and all rows train the evaluator. `held_out` is what the
    evaluator read off public rows that it had not seen. `telling` are the words that notes must not hold;
    `small` says that the writer is a small model, which needs short passages and openings.
    """

    spec: Spec
    chat: ChatModel
    verify: ChatModel
    modes: tuple[Mode, ...]
    order: tuple[int, ...]
    examples: Examples
    openings: Openings
    questions: Questions
    labeller: TextClassifier | None
    picker: TextClassifier | None
    evaluator: TextClassifier | None
    held_out: HeldOut | None
    telling: TellingWords
    small: bool

    @property
    def passage_words(self) -> int:
        return passage_words(self.small)

    def room(self, instruction: str, output: int) -> int | None:
        """Tokens of a text that fit beside an instruction and a reply; None where the window is unknown."""
        if self.chat.context is None:
            return None
        return max(64, int(0.85 * self.chat.context) - self.chat.count_tokens(instruction) - output)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> CoreSchema:
        """For LangGraph, which asks a graph for the JSON schema of its context: a kit is one that
        `prepare` made, and no JSON describes it."""
        made = core_schema.is_instance_schema(cls)
        return core_schema.json_or_python_schema(core_schema.typed_dict_schema({}), made)


def prepare(
    spec: Spec,
    auxiliary: Sequence[tuple[str, tuple[int | None, ...]]],
    chat: ChatModel,
    verify: ChatModel,
    *,
    embedding: Embeddings | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Kit:
    """The kit of a run. `auxiliary` holds public texts with their category codes (None: no label);
    `embedding` replaces the spec's; `cache` is the folder of openings made before, of public data only;
    `progress` is called with (step, done, total)."""
    say = progress or (lambda _step, _done, _total: None)
    rows = [(text, codes) for text, codes in auxiliary if all(code is not None for code in codes)]
    texts = [text for text, _ in rows]
    codes = np.array([codes for _, codes in rows], dtype=np.int64).reshape(len(rows), len(spec.attributes))
    say("learn", 0, 3)
    labeller = _learn(spec, texts, codes, "all", embedding) if len(rows) >= ENOUGH else None
    say("learn", 1, 3)
    picker, evaluator, held_out = _judges(spec, texts, codes, embedding, say)
    say("learn", 3, 3)
    combinations: list[Combination] = [tuple(row) for row in codes.tolist()]
    examples = Examples.of(texts, combinations, labeller)
    tree = _tree(spec, codes)
    questions = Questions(spec, verify, examples, _contexts(spec, codes, tree))
    opener = picker or (_learn(spec, texts, codes, "words", embedding) if len(rows) >= SMALLEST else None)
    small = is_small(chat.name)
    opened = spec.rewriting.openings == "always" or (spec.rewriting.openings == "auto" and small)
    telling = TellingWords.of(spec, texts, codes)

    def shown(target: Combination) -> list[tuple[str, str]]:
        return examples.gapped(target, telling.neutral, passage_words(small))

    return Kit(
        spec,
        chat,
        verify,
        tuple(_mode(attribute, labeller is not None) for attribute in spec.attributes),
        tree.order,
        examples,
        Openings(spec, chat, examples, opener, cache, opened, shown),
        questions,
        labeller,
        picker,
        evaluator,
        held_out,
        telling,
        small,
    )


def _learn(
    spec: Spec, texts: Sequence[str], codes: np.ndarray, features: Features, given: Embeddings | None = None
) -> TextClassifier:
    """The evaluator does without the embedding, so that it sees with other eyes. Static vectors
    (wordllama) add nothing to the words."""
    models, embedding = spec.models, None
    if features != "characters" and (given is not None or models.embedding != "wordllama"):
        embedding = given or text_embedding(models.embedding, models)
    return TextClassifier.fit(texts, codes, spec.sizes, features=features, embedding=embedding)


def _judges(
    spec: Spec, texts: Sequence[str], codes: np.ndarray, embedding: Embeddings | None, say: Progress
) -> tuple[TextClassifier | None, TextClassifier | None, HeldOut | None]:
    """Picker and evaluator, on rows apart where there are enough, and how the evaluator reads others."""
    if len(texts) < SMALLEST:
        return None, None, None
    if len(texts) < ENOUGH:
        alone = _learn(spec, texts, codes, "characters")
        return None, alone, HeldOut(alone.predicted, codes)
    order = np.random.default_rng(1).permutation(len(texts))
    first, second = np.split(order, [int(0.6 * len(order))])
    picker = _learn(spec, [texts[i] for i in first], codes[first], "words", embedding)
    say("learn", 2, 3)
    evaluator = _learn(spec, [texts[i] for i in second], codes[second], "characters")
    return picker, evaluator, evaluator.held_out([texts[i] for i in first], codes[first])


def _tree(spec: Spec, codes: np.ndarray) -> Tree:
    """Which attribute helps to tell which: the spec's tree, else the one of the auxiliary set; with
    neither, every attribute hangs on the first."""
    if spec.mechanism.tree is None and not len(codes):
        return Tree(0, (-1, *([0] * (len(spec.attributes) - 1))))
    try:
        return release_tree(spec, codes)
    except ValueError as error:
        raise SpecError(f"mechanism: {error}") from None


def _contexts(spec: Spec, codes: np.ndarray, tree: Tree) -> tuple[int, ...]:
    """The attribute that a question about another names first, -1 for none. One that tells next to
    nothing is left out: every category of it would make a prefix of its own for the server to read."""
    if not len(codes):
        return tree.parents
    told = mutual_information(codes, spec.sizes)
    return tuple(p if p >= 0 and told[i, p] >= _TELLING else -1 for i, p in enumerate(tree.parents))


def _mode(attribute: Attribute, learned: bool) -> Mode:
    if attribute.by_column:
        return "column"
    if attribute.labels in ("llm", "both", "classifier") and (learned or attribute.labels == "llm"):
        return attribute.labels
    return "both" if learned else "llm"
