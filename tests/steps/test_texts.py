"""Copies, refusals, windows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantext_graph.steps.texts import is_copy, is_essay, is_refusal, shares_run, uncopied, windows


def count(text: str) -> int:
    return len(text.encode())


@settings(deadline=None)
@given(st.text(min_size=1, max_size=600), st.integers(24, 200))
def test_windows_are_the_whole_text_in_parts_that_fit(text: str, limit: int) -> None:
    parts = list(windows(text, limit, count))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(count(part) <= limit for part in parts)


def test_windows_end_between_sentences_where_they_can() -> None:
    parts = list(windows("One two three. Four five six. Seven eight.", 32, count))
    assert parts[0].rstrip().endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "My cat has had a cough for three weeks now",
        "he says my cat has had a cough for three weeks now, and so on and so forth, without end in sight",
        "COUGH three weeks for my cat has had a now",
    ],
)
def test_a_run_of_nine_words_or_most_of_the_words_is_a_copy(text: str) -> None:
    assert is_copy(text, "My cat has had a cough for three weeks now.")


def test_eight_shared_words_in_a_row_are_no_copy() -> None:
    source = "Since the flood my cat has had fever, and the vet in Leeds charges far too much for it"
    assert not is_copy("Hello, since the flood my cat has had fever; which powder would you take?", source)
    assert is_copy("Hello, since the flood my cat has had fever and which powder would you take?", source)


WORDS = st.lists(st.sampled_from("abcd"), max_size=40).map(" ".join)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=3).map("\n".join), WORDS)
def test_no_run_of_nine_words_is_left_and_nothing_else_is_touched(text: str, other: str) -> None:
    left = uncopied(text, other)
    assert all(not shares_run(line, other) for line in left.split("\n"))
    assert len(left.split("\n")) == len(text.split("\n"))
    if not any(shares_run(line, other) for line in text.split("\n")):
        assert left == text


def test_a_run_over_two_lines_is_no_copy() -> None:
    source = "Doctor: Good afternoon. Patient: Good afternoon, doctor. Doctor: Have you had surgery?"
    assert not is_copy("Doctor: Good afternoon.\nPatient: Good afternoon, doctor.\nNurse: Come in!", source)


@pytest.mark.parametrize(
    "text",
    ["I'm sorry, but I can't assist with that.", "As an AI, I have no view", "I cannot write such a post."],
)
def test_refusals_are_seen(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ["I can't wait to vote!", "Sorry for the late reply, my ears still ring"])
def test_ordinary_words_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)


def test_talk_about_a_text_is_seen_and_an_ordinary_author_is_not() -> None:
    assert is_essay("This tweet expresses support for the author")
    assert is_essay("The writer's stance against the target includes opposing equal pay.")
    assert is_essay("The sentiment of the text is NEITHER, as it is about a neutral goal.")
    assert is_essay("There are many mistakes in the original text. Here is the corrected version:")
    assert not is_essay("The author signed my copy of the book, what a day")
