"""What is left of each record: right answers for releases of which it is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from quantext_graph.audit.evidence import Points
from quantext_graph.audit.fidelity import RIVALS, fidelity
from quantext_graph.audit.inputs import AuditInputs, Pair
from quantext_graph.audit.word_runs import WordRuns

N = 240
EVENTS = [f"event{i}" for i in range(60)]
OTHER = {word: f"other{i}" for i, word in enumerate(EVENTS)}
"""Another word for each, as a paraphrase has it."""


class Meanings(Embeddings):
    """Counts of meanings: a word and its other word are one."""

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        same = {word: i for i, word in enumerate(EVENTS)} | {word: i for i, word in enumerate(OTHER.values())}
        rows = np.zeros((len(texts), len(EVENTS) + 1))
        for row, text in zip(rows, texts, strict=True):
            for word in text.replace(".", "").split():
                row[same.get(word, len(EVENTS))] += 1
        return rows.tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def records(rng):
    return [" ".join(rng.choice(EVENTS, 12, replace=False)) for _ in range(N)]


def found(before, after, *, targets=None, public=()):
    targets = [(i % 3,) for i in range(len(before))] if targets is None else targets
    codes = np.array(targets)
    pairs = [Pair(b, a, tuple(t), tuple(t)) for b, a, t in zip(before, after, targets, strict=True)]
    inputs = AuditInputs(before, codes, after, codes, pairs=pairs, auxiliary_texts=public)
    return fidelity(inputs, Points(Meanings()), np.random.default_rng(0))


@pytest.fixture
def before():
    return records(np.random.default_rng(3))


def test_a_raw_copy_keeps_everything(before):
    kept = found(before, before)
    for own in kept.own_record:
        assert (own.texts, own.first, own.first_interval, own.rank) == (N, 1, (1, 1), 1)
        assert own.first_by_chance == pytest.approx(1 / (RIVALS + 1))
        assert own.own == pytest.approx(1)
        assert own.others < 0.5
    assert kept.lengths.median == 1
    assert kept.of_private.texts == kept.of_private.words == 1
    assert [own.by for own in kept.own_record] == ["meaning", "words"]


def test_shuffled_texts_keep_nothing_beyond_chance(before):
    kept = found(before, before[1:] + before[:1], targets=[(0,)] * N)
    for own in kept.own_record:
        assert own.first_interval[0] <= own.first_by_chance <= own.first_interval[1]
        assert abs(own.rank - 0.5) < 0.06
        assert abs(own.own - own.others) < 0.02


def test_a_perfect_paraphrase_keeps_the_meaning_and_no_word(before):
    kept = found(before, [" ".join(OTHER[word] for word in text.split()) for text in before])
    meaning, by_words = kept.own_record
    assert (meaning.first, meaning.rank) == (1, 1)
    assert by_words.rank == 0.5, "all records are equally far: a draw is half a win"
    assert by_words.first == pytest.approx(by_words.first_by_chance)
    assert kept.of_private.texts == 0
    assert kept.lengths.median == 1


def test_texts_of_their_labels_alone_keep_nothing_and_repeat_themselves(before):
    after = [f"topic: {('tea', 'rain', 'bread')[i % 3]}." for i in range(N)]
    kept = found(before, after)
    for own in kept.own_record:
        assert own.rank == 0.5
        assert own.first == pytest.approx(own.first_by_chance)
    assert kept.repetition.another == 1
    assert kept.private_repetition.another == 0
    assert kept.lengths.median < 0.5


def test_rivals_have_the_same_target_and_a_record_without_any_is_not_counted():
    """Of two records a target each text is nearer to its own, but nearest to one of another target."""
    before = ["event1 event2", "event3 event4", "event5 event6", "event7 event8", "event9"]
    after = ["event1 event3", "event3", "event5", "event7", "event9"]
    kept = found(before, after, targets=[(0,), (1,), (0,), (1,), (2,)])
    assert [(own.texts, own.first, own.first_by_chance) for own in kept.own_record] == [(4, 1, 0.5)] * 2
    alone = found(before, after, targets=[(i,) for i in range(5)])
    assert alone.own_record == ()


def test_lines_and_turns_are_counted_where_a_record_has_several():
    before = [
        "Doctor: How are you?\nPatient: Well.\n\nDoctor: Good.",
        "One line.\nAnother: this one.",
        "No line",
    ]
    after = ["Doctor: Are you well?\nPatient: Yes.\nDoctor: Fine.", "One line.", "Two\nlines"]
    kept = found(before, after)
    assert (kept.lines.records, kept.lines.same, kept.lines.ratio) == (2, 0.5, 0.75)
    assert (kept.turns.records, kept.turns.same, kept.turns.ratio) == (1, 1, 1)
    one = found(["a b", "c d"], ["a\nb", "c"])
    assert one.lines is one.turns is None


def test_without_pairs_what_needs_none_is_measured(before):
    codes = np.zeros((N, 1), dtype=int)
    inputs = AuditInputs(before, codes, before[:17], auxiliary_texts=["Event1"])
    kept = fidelity(inputs, Points(Meanings()), np.random.default_rng(0))
    assert kept.own_record == ()
    assert kept.lengths is kept.lines is None
    assert kept.of_private.texts == 1
    assert kept.of_public.texts == 0


# -- runs of words ----------------------------------------------------------------------------------

SENTENCE = "one two three four five six seven eight nine ten"


def test_a_run_is_more_than_eight_words_whatever_stands_between_them():
    public = WordRuns([SENTENCE])
    eight, nine = (
        "x Two, three: four FIVE six seven eight nine y",
        "x Two, three: four FIVE six seven eight nine ten",
    )
    assert WordRuns([eight]).shared(public).texts == 0
    shared = WordRuns([eight, nine, "nothing", ""]).shared(public)
    assert shared.texts == 0.25
    assert shared.words == pytest.approx(9 / (10 + 10 + 1))


def test_no_run_goes_from_a_text_into_the_next():
    halves = ["one two three four five", "six seven eight nine ten"]
    assert WordRuns(halves).shared(WordRuns([SENTENCE])).texts == 0
    assert WordRuns([SENTENCE]).shared(WordRuns(halves)).texts == 0
    assert WordRuns([]).shared(WordRuns([SENTENCE])).words == 0
    assert WordRuns([SENTENCE]).shared(WordRuns([])).words == 0


def test_runs_are_those_that_a_search_finds():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["a", "b"], rng.integers(0, 40))) for _ in range(60)]
    others = [" ".join(rng.choice(["a", "b"], rng.integers(0, 20))) for _ in range(20)]
    runs = {tuple(o.split()[i : i + 9]) for o in others for i in range(len(o.split()) - 8)}
    inside = [np.zeros(len(text.split()), dtype=bool) for text in texts]
    for mask, text in zip(inside, texts, strict=True):
        for i in range(len(mask) - 8):
            if tuple(text.split()[i : i + 9]) in runs:
                mask[i : i + 9] = True
    shared = WordRuns(texts).shared(WordRuns(others))
    assert shared.texts == np.mean([mask.any() for mask in inside])
    assert shared.words == pytest.approx(np.concatenate(inside).mean())
    assert 0 < shared.texts < 1


def test_repetition():
    begun = "one two three four five six seven eight"
    found = WordRuns([f"{begun} nine", f"{begun}, ten.", "Short.", "short", "other"]).repetition()
    assert (found.another, found.begun_alike, found.most) == (0.4, 0.4, 2)
    assert WordRuns([]).repetition().another == 0
