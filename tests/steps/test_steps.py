"""The steps under a model that answers well, badly or not at all."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from steps_fakes import SPEC, Script, auxiliary, replies
from threads import at_once

from quantext_graph.models.chat_model import Outcome
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.steps.examples import Examples
from quantext_graph.steps.extract import Extraction
from quantext_graph.steps.label import in_doubt, label, learn, read_ahead
from quantext_graph.steps.rewrite import rewrite
from quantext_graph.steps.verify import evaluate, verify
from quantext_graph.workspace.records import StoredRecord

MakeKit = Callable[..., Kit]


# label


def test_labels_come_from_one_structured_call_where_there_are_no_log_probabilities(make_kit: MakeKit) -> None:
    script = Script(replies(labels='{"Mood": "None", "Topic": "rain"}'))
    found = label(make_kit(script), "some text")
    assert found.codes == (2, 1)
    assert found.outcome is Outcome.OK
    assert len(script.asked) == 1


def test_labels_of_a_column_are_kept_and_not_asked_for(make_kit: MakeKit) -> None:
    script = Script(replies(labels='{"Topic": "rain"}'))
    found = label(make_kit(script), "some text", {0: 0})
    assert found.codes == (0, 1)
    assert found.confidence[0] == 1.0


@pytest.mark.parametrize("reply", ["", "no json", '{"Mood": "angry", "Topic": "rain"}'])
def test_a_reply_that_cannot_be_used_leaves_chance_and_a_reason(make_kit: MakeKit, reply: str) -> None:
    found = label(make_kit(Script(replies(labels=reply))), "secret words")
    assert found.outcome is not Outcome.OK
    assert found.reason
    assert "secret" not in found.reason
    assert found.confidence == (pytest.approx(1 / 3), pytest.approx(1 / 2))


def test_a_classifier_labels_alone_where_it_is_sure(make_kit: MakeKit) -> None:
    script = Script(replies())
    found = label(make_kit(script, rows=60), "lovely wonderful kettle leaves in the pot of tea")
    assert found.codes == (0, 0)
    assert script.asked == []


def test_a_classifier_stands_in_where_the_model_fails(make_kit: MakeKit) -> None:
    found = label(make_kit(Script(replies(labels="nothing")), rows=60), "lovely umbrella")
    assert found.codes[0] == 0


def test_what_the_labellers_differ_on_is_in_doubt(make_kit: MakeKit) -> None:
    unsure = "a lovely awful kettle by the umbrella"
    agreed, opposed = (
        label(make_kit(Script(replies(labels=f'{{"Mood": "{mood}", "Topic": "tea"}}')), rows=60), unsure)
        for mood in ("glad", "None")
    )
    classifier = learn(make_kit(Script(replies()), rows=60), [unsure])[0][0]
    assert classifier.argmax() != 2
    assert opposed.confidence[0] <= min(0.5, float(np.exp(classifier.max())))
    assert opposed.confidence[0] < agreed.confidence[0]


def test_texts_read_ahead_get_the_labels_that_they_get_alone(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()), rows=60)
    records = [StoredRecord(i, i, f"{text} and so on {i}", {}) for i, (text, _) in enumerate(auxiliary(25))]
    ahead = list(read_ahead(kit, iter(records)))
    assert [record for record, _ in ahead] == records
    for record, learned in ahead:
        found, by_itself = label(kit, record.text, learned=learned), label(kit, record.text)
        assert found.codes == by_itself.codes
        assert found.confidence == pytest.approx(by_itself.confidence)
    assert [learned for _, learned in read_ahead(make_kit(Script(replies())), records)] == [{}] * len(records)


def test_nothing_is_read_before_it_is_wanted(make_kit: MakeKit) -> None:
    taken: list[int] = []

    def records() -> Iterator[StoredRecord]:
        for i in range(1000):
            taken.append(i)
            yield StoredRecord(i, i, "a lovely kettle", {})

    source = read_ahead(make_kit(Script(replies()), rows=60), records())
    next(source)
    assert len(taken) < 100


def test_doubt_is_measured_on_public_texts_and_by_what_the_secrets_name(make_kit: MakeKit) -> None:
    secret = [{"name": "sad", "where": {"Mood": "sad"}}]
    kit = make_kit(Script(replies()), rows=60, spec=Spec.model_validate({**SPEC, "secrets": secret}))
    assert kit.labeller is not None
    held_out = kit.labeller.confidence
    for share in (0.1, 0.3):
        found = in_doubt(kit, held_out, share)
        assert found.mean() == pytest.approx(share, abs=0.01)
        assert held_out[found, 0].max() < held_out[~found, 0].min()
    assert not in_doubt(kit, held_out, 0.0).any()
    certain = held_out.copy()
    certain[:, 0] = 1.0  # as a column's
    assert not in_doubt(kit, certain, 0.3).any()


def test_without_public_texts_or_with_columns_alone_nothing_is_in_doubt(make_kit: MakeKit) -> None:
    unsure = np.full((4, 2), 0.3)
    assert not in_doubt(make_kit(Script(replies())), unsure, 0.3).any()
    attributes = [{**raw, "column": raw["name"]} for raw in SPEC["attributes"]]
    columns = Spec.model_validate({**SPEC, "attributes": attributes})
    assert not in_doubt(make_kit(Script(replies()), rows=60, spec=columns), unsure, 0.3).any()


def test_a_question_names_another_attribute_only_where_that_tells_something(make_kit: MakeKit) -> None:
    independent = make_kit(Script(replies()), rows=8)
    assert independent.questions.parents == (-1, -1)
    alone = make_kit(Script(replies()))
    assert alone.questions.parents == (-1, 0)


def test_one_attribute_and_five(make_kit: MakeKit) -> None:
    for m in (1, 5):
        categories = ["None", "a b", "c"]
        attributes = [{"name": f"no. {i}!", "categories": categories} for i in range(m)]
        spec = Spec.model_validate({**SPEC, "attributes": attributes})
        reply = json.dumps({f"no._{i}": "None" for i in range(m)})
        kit = make_kit(Script(replies(labels=reply)), spec=spec)
        assert label(kit, "x").codes == (0,) * m
        assert rewrite(kit, "x", Extraction(), (1,) * m).text


# openings


def test_openings_come_from_public_beginnings_without_a_call(make_kit: MakeKit) -> None:
    script = Script(replies())
    kit = make_kit(script, rows=60)
    opening, _ = kit.openings.draw((1, 1))
    assert any(text.startswith(opening) for text, _ in auxiliary(60))


def test_openings_are_not_repeated_until_the_bank_is_used_up(make_kit: MakeKit) -> None:
    bank = [f"Beginning {word} of a grey day" for word in ("one", "two", "three", "four", "five")]
    kit = make_kit(Script(replies(openings=json.dumps({"openings": bank}))))
    for _ in range(3):
        assert sorted(kit.openings.draw((1, 1))[0] for _ in bank) == sorted(bank)


def test_a_bank_is_kept_on_disk_by_what_it_was_made_from(make_kit: MakeKit, tmp_path: Path) -> None:
    answer = replies(openings='{"openings": ["Grey again, and my socks"]}')
    first, second, third = Script(answer), Script(answer), Script(answer)
    make_kit(first, cache=tmp_path).openings.draw((1, 1))
    assert len(first.asked) == 1
    assert make_kit(second, cache=tmp_path).openings.draw((1, 1))[0] == "Grey again, and my socks"
    assert second.asked == []
    other = Spec.model_validate({**SPEC, "attributes": [{"name": "Mood", "categories": ["glad", "sorry"]}]})
    make_kit(third, spec=other, cache=tmp_path).openings.draw((1,))
    assert len(third.asked) == 1


def test_a_broken_cache_is_made_anew(make_kit: MakeKit, tmp_path: Path) -> None:
    answer = replies(openings='{"openings": ["Grey again, and my socks"]}')
    make_kit(Script(answer), cache=tmp_path).openings.draw((1, 1))
    for file in tmp_path.iterdir():
        file.write_text("{broken", encoding="utf-8")
    assert make_kit(Script(answer), cache=tmp_path).openings.draw((1, 1))[0]


def test_threads_make_one_bank_together(make_kit: MakeKit) -> None:
    script = Script(replies(openings='{"openings": ["Grey again, and my socks"]}'))
    kit = make_kit(script)
    at_once(8, lambda: kit.openings.draw((1, 1)))
    assert len(script.asked) == 1


# verify


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("...", "empty"),
        ("I'm sorry, but I can't assist with that.", "refusal"),
        ("This post expresses joy about rain", "essay"),
        ("so my two old dogs bark at the moon tonight again", "copy"),
    ],
)
def test_what_must_not_leave_is_not_publishable(make_kit: MakeKit, text: str, failure: str) -> None:
    script = Script(replies())
    verdict = verify(make_kit(script), text, (1, 1), source="My two old dogs bark at the moon tonight")
    assert failure in verdict.failures
    assert not verdict.on_target
    assert not verdict.publishable
    assert script.asked == []


def test_a_copy_of_a_demonstration_is_not_publishable(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()), rows=60)
    _, shown = kit.examples.gapped((1, 1), kit.telling.neutral, kit.passage_words)[0]
    assert "example" in verify(kit, shown, (1, 1), source="x y z").failures


def test_the_model_decides_where_no_classifier_was_trained(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies(labels='{"Mood": "sad", "Topic": "tea"}')))
    assert verify(kit, "a new text", (1, 0)).on_target
    verdict = verify(kit, "a new text", (1, 1))
    assert verdict.failures == ("Topic",)
    assert verdict.publishable


def test_a_verifier_that_fails_verifies_nothing(make_kit: MakeKit) -> None:
    verdict = verify(make_kit(Script(replies(labels="?"))), "a new text", (1, 1))
    assert not verdict.on_target
    assert verdict.failures == ("invalid",)


def test_the_classifier_rules_out_without_asking(make_kit: MakeKit) -> None:
    script = Script(replies())
    verdict = verify(make_kit(script, rows=60), "lovely wonderful kettle leaves, a pot of tea", (1, 1))
    assert set(verdict.failures) == {"Mood", "Topic"}
    assert script.asked == []


def test_the_evaluator_is_apart_from_the_picker_and_knows_its_accuracy(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()), rows=60)
    assert kit.picker is not None
    assert kit.evaluator is not None
    assert len(kit.picker.predicted) + len(kit.evaluator.predicted) == 360
    found = evaluate(kit, ["awful bitter gloomy umbrella drizzle of rain"])
    assert found.codes.tolist() == [[1, 1]]
    assert kit.held_out is not None
    assert kit.held_out.true.shape == (len(kit.picker.predicted), 2), "the rows that it did not learn from"
    assert (kit.held_out.read == kit.held_out.true).mean(axis=0).min() > 0.9


def test_without_an_auxiliary_set_the_evaluation_says_who_judged(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()))
    found = evaluate(kit, ["one", "two"])
    assert found.codes.tolist() == [[1, 1], [1, 1]]
    assert kit.held_out is None
    assert "took part" in found.evaluator


def test_demonstrations_are_rows_that_a_labeller_confirms() -> None:
    class Labeller:
        predicted = np.array([[0], [1]])

    examples = Examples.of(["a b c d clean", "a b c d wrong"], [(0,), (0,)], Labeller())  # type: ignore[arg-type]
    assert examples.demonstrations((0,)) == ["a b c d clean"]
