"""Notes that tell no attribute, and texts made of them; the paper's recipe beside it."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from steps_fakes import SPEC, Script, auxiliary, replies

from quantext_graph.models.chat_model import Outcome
from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit
from quantext_graph.steps.extract import Extraction, extract
from quantext_graph.steps.notes import Note, broken, take_notes
from quantext_graph.steps.passages import Passage, joined, passages
from quantext_graph.steps.rewrite import fallback, last_resort, rewrite
from quantext_graph.steps.snippets import pick_snippets, verbatim
from quantext_graph.steps.telling import GAP, TellingWords
from quantext_graph.steps.texts import shares_run

MakeKit = Callable[..., Kit]

# passages

LINES = st.lists(st.text(st.sampled_from("ab .,!?\u00e9"), max_size=80), max_size=6).map("\n".join)


@settings(deadline=None)
@given(LINES, st.integers(2, 30))
def test_passages_put_together_are_the_text(text: str, size: int) -> None:
    found = passages(text, size)
    assert joined(found, [p.text for p in found]).split() == text.split()
    assert all(len(p.text.split()) <= size + size // 2 for p in found)


def test_a_dialogue_is_cut_at_its_turns_and_keeps_its_speakers() -> None:
    text = "Doctor: How are you?\nPatient: Not well. It hurts.\nDoctor: Where?"
    found = passages(text, 50)
    assert [p.head.strip() for p in found] == ["Doctor:", "Patient:", "Doctor:"]
    assert joined(found, ["a", "", "c"]) == "Doctor: a\nDoctor: c"


def test_one_colon_makes_no_dialogue_and_a_line_break_stays() -> None:
    found = passages("Note: I was late.\n\nSorry for that.", 50)
    assert [p.head for p in found] == ["", ""]
    assert joined(found, ["One.", "Two."]) == "One.\n\nTwo."


# telling words


def telling(copies: int = 10) -> TellingWords:
    texts, codes = zip(*auxiliary(copies), strict=True)
    return TellingWords.of(Spec.model_validate(SPEC), texts, np.array(codes))


def test_words_of_any_category_become_gaps_and_others_stay() -> None:
    found = telling()
    assert (
        found.neutral("A lovely day in Leeds for an umbrella, he said")
        == f"A {GAP} day in Leeds for an {GAP}, he said"
    )
    assert found.neutral("an awful, bitter kettle") == f"an {GAP}"
    assert found.neutral("On Monday they sent 3 letters") == "On Monday they sent 3 letters"


def test_a_word_tells_only_where_the_categories_differ_in_it() -> None:
    found = telling()
    assert not found.words & {"on", "day", "i", "noted", "later", "number", "of", "my", "came"}
    assert found.words <= found.strict


def test_a_hashtag_that_nobody_knows_tells_and_the_specs_names_do() -> None:
    assert telling().neutral("so #FreeLeeds") == f"so {GAP}"
    bare = TellingWords.of(Spec.model_validate(SPEC), (), np.empty((0, 2), dtype=int))
    assert bare.neutral("I am glad that rain fell in None") == f"I am {GAP} that {GAP} fell in None"


def test_long_texts_of_one_category_make_no_common_word_tell() -> None:
    common = " ".join(f"word{i}" for i in range(60))
    texts = [common] * 40 + [" ".join((common.split() * 2)[i : i + 12]) for i in range(0, 60, 2)]
    codes = np.array([[0, 0]] * 40 + [[1, 0]] * 30)
    assert not TellingWords.of(Spec.model_validate(SPEC), texts, codes).words


# notes


def test_notes_are_the_whole_text_in_other_words_without_addresses(make_kit: MakeKit) -> None:
    script = Script(replies(notes="The dogs were barking late that evening."))
    taken = take_notes(
        make_kit(script), "My two old dogs bark at https://x.example or ask jo@mail.example now"
    )
    assert [note.text for note in taken.notes] == ["The dogs were barking late that evening."]
    assert "example" not in script.words()


def test_little_turns_are_not_asked_about_and_telling_speakers_are_left_out(make_kit: MakeKit) -> None:
    script = Script(replies())
    taken = take_notes(make_kit(script), "Doctor: Good day.\nGlad patient: Thank you.\nDoctor: Bye.")
    assert script.asked == []
    assert [note.text for note in taken.notes] == ["Good day.", "Thank you.", "Bye."]
    assert [note.passage.head.strip() for note in taken.notes] == ["Doctor:", "", "Doctor:"]


@pytest.mark.parametrize("reply", ["", "  ", "I'm sorry, but I can't assist with that."])
def test_nothing_of_a_passage_without_a_usable_reply_is_kept(make_kit: MakeKit, reply: str) -> None:
    taken = take_notes(make_kit(Script(replies(notes=reply))), "My two old dogs bark at the moon")
    assert [note.text for note in taken.notes] == [""]
    assert taken.outcome is not Outcome.OK
    assert taken.unread == 1


def test_a_reply_that_repeats_the_instructions_example_is_not_used(make_kit: MakeKit) -> None:
    reply = "Three weeks of waiting, and the sofa had a broken leg"
    taken = take_notes(make_kit(Script(replies(notes=reply))), "My two old dogs bark at the moon")
    assert taken.notes[0].text == ""


def test_a_model_that_copies_is_asked_again_and_then_gets_a_gap(make_kit: MakeKit) -> None:
    source = "My two old dogs bark at the moon night after night in the old yard"
    script = Script(replies(notes=source))
    taken = take_notes(make_kit(script), source)
    assert len(script.asked) == 2
    assert GAP in taken.notes[0].text
    assert not shares_run(taken.notes[0].text, source)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.lists(st.sampled_from("abcd"), max_size=8),
)
def test_no_note_holds_nine_words_of_its_source_in_a_row(
    said: list[str], source: list[str], before: list[str]
) -> None:
    before = [] if shares_run(" ".join(before), " ".join(source)) else before
    mended = broken(" ".join(said), " ".join(source), " ".join(before))
    assert not shares_run(f"{' '.join(before)} {mended}", " ".join(source))


def test_a_long_text_is_read_whole_in_short_calls(make_kit: MakeKit) -> None:
    script = Script(replies())
    script.chat.context = 2048
    text = "word after word, on and on. " * 900
    taken = take_notes(make_kit(script), text)
    read = " ".join(str(call[-1].content)[len("<text>\n") : -len("\n</text>")] for call in script.asked)
    assert set(read.split()) == set(text.split())
    assert sum(len(str(call[-1].content).split()) for call in script.asked) >= len(text.split())
    assert taken.unread == 0


# uniform treatment


def calls(kit: Kit, script: Script, text: str, labels: tuple[int, int], target: tuple[int, int]) -> list[str]:
    from quantext_graph.graph.record_graph import build_record_graph

    begun = len(script.asked)
    state: object = {"record": 1, "text": text, "labels": labels, "target": target}
    build_record_graph().invoke(state, context=kit)  # type: ignore[arg-type]
    return ["\n".join(str(message.content) for message in call) for call in script.asked[begun:]]


@pytest.mark.parametrize(
    "text", ["My two old dogs bark at the moon tonight", "lovely kettle leaves in a pot of tea"]
)
@pytest.mark.parametrize(
    "written", [" and it rained on the umbrella, bitter and awful.", " so be it then, friend."]
)
def test_nothing_in_a_records_treatment_says_whether_its_label_changed(
    make_kit: MakeKit, text: str, written: str
) -> None:
    """The same calls, word for word, whatever the record was labelled: notes, attempts, fallback and all."""
    seen = []
    for labels in ((1, 1), (0, 1), (0, 0), (2, 0)):
        script = Script(replies(text=written, labels='{"Mood": "sad", "Topic": "rain"}'))
        spec = Spec.model_validate({**SPEC, "rewriting": {"openings": "never"}, "limits": {"attempts": 2}})
        seen.append(calls(make_kit(script, rows=60, spec=spec), script, text, labels, (1, 1)))
    assert all(one == seen[0] for one in seen)
    assert len(seen[0]) >= 2


def test_notes_are_the_same_whatever_the_target_is(make_kit: MakeKit) -> None:
    text = "A lovely umbrella, and my two old dogs bark at the moon"
    kept = [
        extract(make_kit(Script(replies(notes="A lovely umbrella for dogs")), rows=60), text, t)
        for t in ((0, 0), (1, 1))
    ]
    assert kept[0].lines == kept[1].lines == (f"A {GAP} for dogs",)


# rewrite


def notes(*texts: str, form: Sequence[Passage] = ()) -> Extraction:
    form = form or [Passage("") for _ in texts]
    return Extraction(tuple(Note(text, text, place) for text, place in zip(texts, form, strict=True)))


def test_the_source_is_never_shown_and_the_text_begins_with_its_opening(make_kit: MakeKit) -> None:
    script = Script(replies(openings='{"openings": ["Grey again, and my socks"]}'))
    draft = rewrite(make_kit(script), "PLANTED", notes("old dogs"), (1, 1))
    assert draft.outcome is Outcome.OK
    assert draft.text.startswith("Grey again, and my socks")
    assert "<notes>\nold dogs\n</notes>" in script.words()
    assert "PLANTED" not in script.words()


def test_passages_without_a_gap_stay_and_those_with_one_are_written(make_kit: MakeKit) -> None:
    script = Script(replies(text=" a bitter umbrella."))
    given = notes("It began on Monday.", "They rang twice.", f"I want {GAP} back.")
    kit = make_kit(script, spec=Spec.model_validate({**SPEC, "rewriting": {"openings": "never"}}))
    draft = rewrite(kit, "", given, (1, 1))
    assert draft.text == "a bitter umbrella. They rang twice. a bitter umbrella."
    written = [call for call in script.asked if str(call[0].content).startswith("You write")]
    assert len(written) == 3  # two passages, the first with a second candidate


def test_the_form_of_the_record_is_kept(make_kit: MakeKit) -> None:
    form = [Passage("", "Doctor: "), Passage("", "Patient: ", 1), Passage("", "", 0)]
    kit = make_kit(
        Script(replies(text=" now then.")),
        spec=Spec.model_validate({**SPEC, "rewriting": {"openings": "never"}}),
    )
    draft = rewrite(kit, "", notes(f"well {GAP}", "it hurts", "a lot", form=form), (1, 1))
    assert draft.text == "Doctor: now then.\nPatient: it hurts a lot"


def test_no_gap_is_left_and_a_failed_passage_keeps_its_note(make_kit: MakeKit) -> None:
    def answer(messages: Sequence[BaseMessage]) -> str:
        if '"openings"' in str(messages[0].content):
            return '{"openings": []}'
        return "" if "second" in str(messages[-1].content) else f"First {GAP} done."

    draft = rewrite(make_kit(Script(answer)), "", notes("one", f"the second {GAP} note"), (1, 1))
    assert draft.text == "First done. the second note"


def test_several_candidates_come_from_one_attempt(make_kit: MakeKit) -> None:
    assert rewrite(make_kit(Script(replies())), "", notes("old dogs"), (1, 1)).candidates == 2


def test_feedback_names_attributes_and_nothing_else(make_kit: MakeKit) -> None:
    script = Script(replies())
    rewrite(make_kit(script), "", notes("old dogs"), (1, 1), 1, "Mood, copy, PLANTED")
    assert "went wrong on: Mood." in script.words()
    assert "PLANTED" not in script.words()


def test_an_empty_text_is_no_draft(make_kit: MakeKit) -> None:
    script = Script(lambda messages: '{"openings": []}' if '"openings"' in str(messages[0].content) else "  ")
    draft = rewrite(make_kit(script), "", notes("old dogs"), (1, 1))
    assert draft.text == ""
    assert draft.outcome is Outcome.INVALID


def test_public_passages_show_how_gaps_are_filled(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies()), rows=60)
    pairs = kit.examples.gapped((1, 1), kit.telling.neutral, kit.passage_words)
    assert pairs
    for note, text in pairs:
        assert GAP in note
        assert {"umbrella", "drizzle"} & set(text.split())
        assert not {"umbrella", "drizzle", "gloomy"} & set(note.split())


def test_the_fallback_has_more_gaps_and_the_last_resort_asks_nobody(make_kit: MakeKit) -> None:
    script = Script(replies())
    kit = make_kit(script)
    kept = Extraction((Note("old dogs bark", f"{GAP} dogs", Passage("")),))
    assert fallback(kit, kept, (1, 1)).text
    assert f"{GAP} dogs" in script.words()
    assert "bark" not in script.words()
    assert fallback(kit, Extraction(), (1, 1)).text
    assert "(none: write freely" in script.words()
    asked = len(script.asked)
    assert "sad" in last_resort(kit, (1, 1))
    assert len(script.asked) == asked


def test_drafts_and_notes_stay_out_of_reprs(make_kit: MakeKit) -> None:
    kit = make_kit(Script(replies(text=" PLANTED", notes="PLANTED words for all of you")))
    kept = extract(kit, "PLANTED words and some others", (0, 0))
    assert "PLANTED" in kept.lines[0]
    assert "PLANTED" not in repr(kept)
    assert "PLANTED" not in repr(rewrite(kit, "PLANTED", kept, (1, 1)))


# the paper's recipe


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
        ("guard the farm of the farm that I had bought", "guard the farm of the farm that I"),
    ],
)
def test_a_snippet_stands_in_the_text_word_for_word_or_is_dropped(snippet: str, found: str) -> None:
    text = "My two  old\ndogs, @jo_smith said, guard the farm of the farm that I had bought: 0161 496 0000"
    assert verbatim(snippet, text) == found


def source_kit(make_kit: MakeKit, script: Script) -> Kit:
    return make_kit(script, spec=Spec.model_validate({**SPEC, "rewriting": {"recipe": "source"}}))


def test_what_the_model_invents_never_becomes_a_snippet(make_kit: MakeKit) -> None:
    script = Script(replies(snippets='{"snippets": ["old dogs", "a purple dragon"]}'))
    found = extract(source_kit(make_kit, script), "My two old dogs bark", (0, 1))
    assert found.snippets == found.lines == ("old dogs",)


@pytest.mark.parametrize("reply", ["My two old dogs bark", '{"snippets": "old dogs"}', "{", ""])
def test_nothing_of_an_unreadable_reply_becomes_a_snippet(make_kit: MakeKit, reply: str) -> None:
    found = extract(source_kit(make_kit, Script(replies(snippets=reply))), "My two old dogs bark", (0, 1))
    assert found.snippets == ()
    assert found.outcome is not Outcome.OK
    assert found.unread == 1


def test_a_text_longer_than_the_window_is_read_in_parts(make_kit: MakeKit) -> None:
    script = Script(replies(snippets='{"snippets": ["the last word"]}'))
    script.chat.context = 2048
    text = "word after word. " * 1200 + "the last word"
    found = pick_snippets(source_kit(make_kit, script), text, (0, 1))
    assert found.snippets == ("the last word",)
    assert found.unread == 0
    read = "".join(str(call[-1].content).split("\n")[1] for call in script.asked)
    assert "".join(read.split()) == "".join(text.split())


def test_by_source_the_rewriter_sees_record_snippets_and_target(make_kit: MakeKit) -> None:
    script = Script(replies(text="Some other dogs were heard."))
    draft = rewrite(
        source_kit(make_kit, script), "My two old dogs bark", Extraction(snippets=("old dogs",)), (1, 1)
    )
    assert draft.text == "Some other dogs were heard."
    last = str(script.asked[0][-1].content)
    assert "<text>\nMy two old dogs bark\n</text>" in last
    assert "<notes>\nold dogs\n</notes>" in last
