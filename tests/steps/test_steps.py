"""The steps under a model that answers well, badly or not at all."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import BaseMessage
from steps_fakes import SPEC, Script, auxiliary
from threads import at_once

from quantext_graph.models.chat_model import Outcome
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.steps.examples import Examples
from quantext_graph.steps.extract import extract, verbatim
from quantext_graph.steps.label import label
from quantext_graph.steps.rewrite import fallback, last_resort, rewrite
from quantext_graph.steps.verify import evaluate, verify

MakeKit = Callable[..., Kit]


def replies(**answers: str) -> Callable[[Sequence[BaseMessage]], str]:
    """One reply for each kind of call; texts begin with the opening that is asked for."""

    def answer(messages: Sequence[BaseMessage]) -> str:
        system, last = str(messages[0].content), str(messages[-1].content)
        if '"snippets"' in system:
            return answers.get("snippets", '{"snippets": []}')
        if '"openings"' in system:
            return answers.get("openings", '{"openings": []}')
        if "say which category" in system:
            return answers.get("labels", '{"Mood": "sad", "Topic": "rain"}')
        _, _, opening = last.rpartition("go on from there: ")
        begun = opening if "go on from there" in last else ""
        return begun + answers.get("text", " and nobody in the valley had seen it coming.")

    return answer


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
        assert rewrite(kit, (), (1,) * m).text


# extract


@pytest.mark.parametrize(
    ("snippet", "found"),
    [
        ("two old DOGS", "two old dogs"),
        ('"two old\tdogs."', "two old dogs"),
        ("two young dogs", ""),
        ("", ""),
        ("jo_smith", ""),
        ("@jo_smith said", ""),
        ("0161 496 0000", ""),
        ("of the farm that I had bought", "of the farm that I"),
    ],
)
def test_a_snippet_stands_in_the_text_word_for_word_or_is_dropped(snippet: str, found: str) -> None:
    text = "My two  old\ndogs, @jo_smith said, guard the farm of the farm that I had bought: 0161 496 0000"
    assert verbatim(snippet, text) == found


def test_what_the_model_invents_never_becomes_a_snippet(make_kit: MakeKit) -> None:
    script = Script(replies(snippets='{"snippets": ["old dogs", "a purple dragon"]}'))
    found = extract(make_kit(script), "My two old dogs bark", (0, 0), (0, 1))
    assert found.snippets == ("old dogs",)


@pytest.mark.parametrize("reply", ["My two old dogs bark", '{"snippets": "old dogs"}', "{", ""])
def test_nothing_of_an_unreadable_reply_becomes_a_snippet(make_kit: MakeKit, reply: str) -> None:
    found = extract(make_kit(Script(replies(snippets=reply))), "My two old dogs bark", (0, 0), (0, 1))
    assert found.snippets == ()
    assert found.outcome is not Outcome.OK
    assert found.unread == len("My two old dogs bark")


def test_a_snippet_for_the_category_left_behind_is_dropped(make_kit: MakeKit) -> None:
    script = Script(replies(snippets='{"snippets": ["gloomy bitter awful day", "umbrella in the drizzle"]}'))
    text = "What a gloomy bitter awful day with my umbrella in the drizzle"
    found = extract(make_kit(script, rows=60), text, (1, 1), (0, 1))
    assert found.snippets == ("umbrella in the drizzle",)


def test_a_text_longer_than_the_window_is_read_in_parts(make_kit: MakeKit) -> None:
    script = Script(replies(snippets='{"snippets": ["the last word"]}'))
    script.chat.context = 2048
    text = "word after word. " * 1200 + "the last word"
    found = extract(make_kit(script), text, (0, 0), (0, 1))
    assert found.snippets == ("the last word",)
    assert found.unread == 0
    read = "".join(str(call[-1].content).split("\n")[1] for call in script.asked)
    assert "".join(read.split()) == "".join(text.split())


# rewrite


def test_the_source_is_never_shown_and_the_text_begins_with_its_opening(make_kit: MakeKit) -> None:
    script = Script(replies(openings='{"openings": ["Grey again, and my socks"]}'))
    kit = make_kit(script)
    draft = rewrite(kit, ("old dogs",), (1, 1))
    assert draft.outcome is Outcome.OK
    assert draft.text.startswith("Grey again, and my socks")
    assert "<notes>\nold dogs\n</notes>" in script.words()


def test_several_candidates_come_from_one_attempt(make_kit: MakeKit) -> None:
    draft = rewrite(make_kit(Script(replies())), (), (1, 1))
    assert draft.candidates == 2


def test_feedback_names_attributes_and_nothing_else(make_kit: MakeKit) -> None:
    script = Script(replies())
    rewrite(make_kit(script), (), (1, 1), 1, "Mood, copy, PLANTED")
    assert "went wrong on: Mood." in script.words()
    assert "PLANTED" not in script.words()


def test_an_empty_text_is_no_draft(make_kit: MakeKit) -> None:
    script = Script(lambda messages: '{"openings": []}' if '"openings"' in str(messages[0].content) else "  ")
    draft = rewrite(make_kit(script), (), (1, 1))
    assert draft.text == ""
    assert draft.outcome is Outcome.INVALID


def test_the_fallback_carries_no_snippets_and_the_last_resort_asks_nobody(make_kit: MakeKit) -> None:
    script = Script(replies())
    kit = make_kit(script)
    assert fallback(kit, (1, 1)).text
    assert "(none: write freely)" in script.words()
    asked = len(script.asked)
    assert "sad" in last_resort(kit, (1, 1))
    assert len(script.asked) == asked


def test_drafts_and_snippets_stay_out_of_reprs(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies(text=" PLANTED", snippets='{"snippets": ["PLANTED"]}')))
    assert "PLANTED" not in repr(rewrite(kit, (), (1, 1)))
    assert "PLANTED" not in repr(extract(kit, "PLANTED", (0, 0), (0, 0)))


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
        ("so my two old dogs bark at the moon again tonight", "copy"),
    ],
)
def test_what_must_not_leave_is_not_publishable(make_kit: MakeKit, text: str, failure: str) -> None:
    script = Script(replies())
    verdict = verify(make_kit(script), text, (1, 1), source="My two old dogs bark at the moon")
    assert failure in verdict.failures
    assert not verdict.on_target
    assert not verdict.publishable
    assert script.asked == []


def test_a_copy_of_a_demonstration_is_not_publishable(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()), rows=60)
    shown = kit.examples.demonstrations((1, 1))[0]
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
    assert min(found.accuracy) > 0.9


def test_without_an_auxiliary_set_the_evaluation_says_who_judged(make_kit: MakeKit) -> None:
    found = evaluate(make_kit(Script(replies())), ["one", "two"])
    assert found.codes.tolist() == [[1, 1], [1, 1]]
    assert np.isnan(found.accuracy).all()
    assert "took part" in found.evaluator


def test_demonstrations_are_rows_that_a_labeller_confirms() -> None:
    class Labeller:
        predicted = np.array([[0], [1]])

    examples = Examples.of(["a b c d clean", "a b c d wrong"], [(0,), (0,)], Labeller())  # type: ignore[arg-type]
    assert examples.demonstrations((0,)) == ["a b c d clean"]
