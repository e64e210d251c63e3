"""Train on the release, test on real records: right answers for releases of which it is known."""

from __future__ import annotations

from dataclasses import replace

import audit_corpus as corpus
import numpy as np
import pytest

from quantext_graph.audit.downstream import downstream_use
from quantext_graph.audit.inputs import AuditInputs, Pair

SPEC = corpus.spec()
N = 200


def made(change=lambda text, i, rng: text, *, n=N, seed=0, write=corpus.write):
    """Records whose labels can be read off, and a release of them with these texts."""
    rng = np.random.default_rng(seed)
    codes, public = corpus.codes(n, 0.6, rng), corpus.codes(150, 0.5, rng)
    before = write(codes, rng)
    after = [change(text, i, rng) for i, text in enumerate(before)]
    pairs = [Pair(b, a, tuple(c), tuple(c)) for b, a, c in zip(before, after, codes.tolist(), strict=True)]
    return AuditInputs(
        before, codes, after, codes, pairs=pairs, auxiliary_texts=write(public, rng), auxiliary_codes=public
    )


def uses(inputs, spec=SPEC):
    found, skipped = downstream_use(inputs, spec, np.random.default_rng(0))
    return {use.attribute: use for use in found}, [f"{skip.attack}: {skip.reason}" for skip in skipped]


def test_a_raw_copy_teaches_what_the_records_do():
    found, skipped = uses(made())
    assert skipped == []
    for use in found.values():
        assert use.ratio == pytest.approx(1, abs=0.03)
        assert {origin: score.accuracy > 0.95 for origin, score in use.scores.items()} == {
            "release": True,
            "private": True,
            "public": True,
        }
        assert use.tried == N
        assert use.own_left_out
    assert found["Stance"].chance == 0.6


def test_texts_without_their_category_teach_nothing():
    told = {*corpus.TOPICS, *corpus.STANCES}
    mute = made(lambda text, i, rng: " ".join(word for word in text.split() if word not in told))
    found, _ = uses(mute)
    for use in found.values():
        assert use.ratio < 0.75
        assert use.scores["private"].accuracy > 0.95
        assert use.ratio_interval[0] <= use.ratio <= use.ratio_interval[1]
    assert found["Stance"].scores["release"].macro_f1 < found["Stance"].scores["release"].accuracy + 0.05


def test_a_text_does_not_help_to_read_the_record_that_it_was_made_of():
    """Each record has a word of its own and nothing else: who saw a copy of it knows its label."""

    def own_words(codes, rng):
        return [f"word{seed}" for seed in rng.integers(10**9, size=len(codes))]

    found, _ = uses(made(write=own_words))
    assert found["Topic"].scores["release"].accuracy < 0.45
    blind = replace(made(write=own_words), pairs=())
    flattered, _ = uses(blind)
    assert flattered["Topic"].scores["release"].accuracy > 0.8
    assert not flattered["Topic"].own_left_out


def test_release_and_private_set_give_as_many_texts():
    given = made(n=400)
    part = replace(
        given,
        released_texts=given.released_texts[:100],
        targets=given.targets[:100],
        pairs=given.pairs[:100],
    )
    found, _ = uses(part)
    sizes = {origin: score.texts for origin, score in found["Topic"].scores.items()}
    assert sizes["release"] == sizes["private"] == sizes["public"] < 100


def test_what_cannot_be_learned_says_so():
    given = made()
    few = replace(
        given, released_texts=given.released_texts[:12], targets=given.targets[:12], pairs=given.pairs[:12]
    )
    found, skipped = uses(few)
    assert found == {}
    assert (
        skipped[0] == "downstream use: Topic, release: 12 labelled texts, and a model learns from at least 20"
    )
    one = replace(given, targets=given.targets * [0, 1])
    found, skipped = uses(one)
    assert list(found) == ["Stance"]
    assert skipped == ["downstream use: Topic, release: all texts of one category"]
    unlabelled = replace(given, private_codes=given.private_codes * [1, 0] - [0, 1])
    found, skipped = uses(unlabelled)
    assert list(found) == ["Topic"]
    assert "Stance, private: 0 labelled texts" in skipped[0]
    _, skipped = uses(replace(given, targets=None))
    assert skipped == ["downstream use: it is not known what the released texts were written for"]


def test_a_category_that_is_missing_is_named():
    given = made()
    targets = given.targets.copy()
    targets[targets[:, 0] == 2, 0] = 1
    found, _ = uses(replace(given, targets=targets))
    assert found["Topic"].scores["release"].lacking == ("bread",)
    assert found["Topic"].scores["private"].lacking == ()


def test_without_public_texts_the_others_are_compared():
    found, skipped = uses(replace(made(), auxiliary_texts=(), auxiliary_codes=None))
    assert set(found["Topic"].scores) == {"release", "private"}
    assert skipped == []
    few = made()
    few = replace(few, auxiliary_texts=few.auxiliary_texts[:5], auxiliary_codes=few.auxiliary_codes[:5])
    found, skipped = uses(few)
    assert set(found["Topic"].scores) == {"release", "private"}
    assert "Topic, public: 5 labelled texts" in skipped[0]
