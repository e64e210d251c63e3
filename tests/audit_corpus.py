"""An invented corpus whose labels can be read off its words, and embeddings that see words alone."""

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

TOPICS = ("tea", "rain", "bread")
STANCES = ("like", "dislike")
FILLER = (
    "the",
    "a",
    "some",
    "today",
    "again",
    "with",
    "my",
    "old",
    "new",
    "small",
    "they",
    "were",
    "often",
    "near",
)

FAVOR = {1: (0,)}
"""The event of liking."""


def spec(**mechanism) -> Spec:
    return parse_spec(
        {
            "data": {"path": "none.csv"},
            "attributes": [
                {"name": "Topic", "categories": list(TOPICS)},
                {"name": "Stance", "categories": list(STANCES)},
            ],
            "secrets": [{"name": "likes", "where": {"Stance": "like"}}],
            "mechanism": mechanism,
        }
    )


def codes(n: int, likes: float, rng: np.random.Generator) -> np.ndarray:
    """(n, 2) labels, of which exactly the share `likes` likes."""
    stance = np.arange(n) >= round(likes * n)
    return np.column_stack([rng.integers(3, size=n), rng.permutation(stance)]).astype(np.int64)


def write(labels: np.ndarray, rng: np.random.Generator) -> list[str]:
    """One text for each row of labels: filler, and a word of each category."""
    return [
        " ".join(
            rng.permutation(
                [*rng.choice(FILLER, 8), TOPICS[topic], STANCES[stance], STANCES[stance]]
            ).tolist()
        )
        for topic, stance in labels
    ]


class WordEmbeddings(Embeddings):
    """Counts of the corpus's own words."""

    words = (*TOPICS, *STANCES, *FILLER)

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.split().count(word)) for word in self.words] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]
