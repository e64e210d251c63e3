"""Methods that write by a model: every text is asked for once, also after a stop."""

import numpy as np
import pytest
from releases import ATTRIBUTES, obedient

from quantext_graph.experiments.baselines import Corpus
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.experiments.baselines.model_writer import ModelWriter
from quantext_graph.models.chat_model import chat_model
from quantext_graph.spec.loading import parse_spec
from quantext_graph.steps.context import prepare


@pytest.fixture
def server():
    with obedient() as running:
        yield running


@pytest.fixture
def make(server, tmp_path):
    spec = parse_spec(
        {
            "data": {"path": "none.csv"},
            "attributes": ATTRIBUTES,
            "models": {"chat": {"model": "openai:tiny", "base_url": server.url}},
            "limits": {"attempts": 1, "concurrency": 3},
        }
    )
    model = chat_model(spec.models.chat, spec.models, spec.limits)

    def writer() -> ModelWriter:
        kit = lambda: prepare(spec, [], model, model, cache=tmp_path / "openings")  # noqa: E731
        return ModelWriter(kit, Kept(tmp_path / "written.jsonl"), spec.limits, lambda *_: None)

    yield writer
    model.close()


TARGETS = np.array([[0, 0], [1, 1], [0, 2], [1, 0]])


def test_texts_are_composed_to_their_targets(make):
    written = make().compose(TARGETS, step="compose")
    assert len(written.texts) == 4
    assert all("diabetes" in written.texts[i] for i in (0, 3))
    assert written.realised is None


def test_records_are_rewritten_and_none_is_asked_for_twice(make, server):
    private = Corpus([f"Case {i} is a female patient who lives with asthma" for i in range(4)], TARGETS)
    first = make().rewrite(private.texts, private.codes, TARGETS[::-1], step="rewrite")
    asked = len(server.asked)
    again = make().rewrite(private.texts, private.codes, TARGETS[::-1], step="rewrite")
    assert again.texts == first.texts
    assert len(server.asked) == asked
    assert not set(first.texts) & set(private.texts)


def test_a_variation_goes_on_from_the_beginning_of_its_text(make, server):
    written = make().vary(["One two three four five six"] * 2, TARGETS[:2], step="vary 0")
    assert all(text.startswith("One two") for text in written.texts)
    assert all("One two three four five six" not in text for text in written.texts)


def test_a_writing_that_stops_goes_on_where_it_stopped(make, server, monkeypatch):
    written = []
    original = Kept.put

    def put(self, key, value):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(key)
        original(self, key, value)

    monkeypatch.setattr(Kept, "put", put)
    with pytest.raises(KeyboardInterrupt):
        make().compose(TARGETS, step="compose")
    monkeypatch.setattr(Kept, "put", original)
    before = server.asked_for("texts")
    assert len(make().compose(TARGETS, step="compose").texts) == 4
    assert server.asked_for("texts") - before <= 2
