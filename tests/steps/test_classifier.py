"""The classifier: learns, admits what it cannot learn, and says how sure it is."""

import numpy as np
import pytest
from steps_fakes import auxiliary

from quantext_graph.steps.classifier import TextClassifier
from quantext_graph.steps.public_rows import SMALLEST

ROWS = auxiliary(12)
TEXTS = [text for text, _ in ROWS]
CODES = np.array([codes for _, codes in ROWS])


@pytest.mark.parametrize("features", ["all", "words", "characters"])
def test_learns_words_that_tell(features: str) -> None:
    classifier = TextClassifier.fit(TEXTS, CODES, (3, 2), features=features)  # type: ignore[arg-type]
    assert min(classifier.accuracy) > 0.95
    mood, topic = classifier.log_probabilities(["what a lovely wonderful umbrella in this drizzle of rain"])
    assert mood[0].argmax() == 0
    assert topic[0].argmax() == 1
    np.testing.assert_allclose(np.exp(mood).sum(axis=1), 1.0)


def test_accuracy_is_held_out_so_that_chance_labels_are_not_learned() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, size=(200, 1))
    texts = [" ".join(rng.permutation(list("abcdefghij"))) + f" unique{i}" for i in range(200)]
    classifier = TextClassifier.fit(texts, codes, (2,))
    assert classifier.accuracy[0] < 0.7


def test_a_category_that_never_occurs_is_unlikely_but_possible() -> None:
    codes = CODES.copy()
    codes[:, 1] = 0
    classifier = TextClassifier.fit(TEXTS, codes, (3, 4))
    (_, topic) = classifier.log_probabilities(["kettle"])
    assert topic.shape == (1, 4)
    assert topic[0].argmax() == 0
    assert np.isfinite(topic).all()
    assert topic[0, 3] < np.log(0.01)


def test_even_odds_take_the_training_shares_out() -> None:
    rare = [i for i, row in enumerate(CODES) if row[0] != 1] + [
        int(np.flatnonzero(CODES[:, 0] == 1)[i]) for i in (0, 1, 2, 3)
    ]
    classifier = TextClassifier.fit([TEXTS[i] for i in rare], CODES[rare], (3, 2))
    (plain, _), (even, _) = (classifier.log_probabilities(["number"], even=e) for e in (False, True))
    assert even[0, 1] > plain[0, 1]
    np.testing.assert_allclose(np.exp(even).sum(axis=1), 1.0)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=str(SMALLEST)):
        TextClassifier.fit(TEXTS[:5], CODES[:5], (3, 2))


def test_probabilities_are_those_of_the_library() -> None:
    """They are computed without its checks, for two categories and for more."""
    rows = auxiliary(12)
    texts, codes = [text for text, _ in rows], np.array([c for _, c in rows], dtype=np.int64)
    found = TextClassifier.fit(texts, codes, (3, 2))
    X = found._features.transform(texts[:9])
    margins = np.hstack([_columns(model.decision_function(X)) for model in found._margins])
    for model, values in zip(found._calibrated, found.log_probabilities(texts[:9]), strict=True):
        assert np.exp(values) == pytest.approx(model.predict_proba(margins), abs=1e-6)


def _columns(values: np.ndarray) -> np.ndarray:
    return np.stack([-values, values], axis=1) if values.ndim == 1 else values
