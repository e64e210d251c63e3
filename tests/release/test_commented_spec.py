"""The spec that `quantext init` writes."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantext_graph.data.records import read_source, write_table
from quantext_graph.release.commented_spec import propose_spec
from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.loading import load_spec

SPECIALS = [
    "NO",
    "null",
    "1.0",
    "yes",
    "~",
    "- a",
    "a: b",
    "a, b",
    "[x]",
    "{y}",
    "#c",
    "'q'",
    '"d"',
    "é",
    "12:30",
]


def data_set(path: Path, labels: list[str], copies: int = 3) -> Path:
    rows = [
        (f"a text of some length, number {number} of many", label)
        for number, label in enumerate(labels * copies)
    ]
    write_table(path, ["Text", "Topic"], rows, format=path.suffix[1:])
    return path


def saved(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_with_an_auxiliary_it_loads_as_it_stands(tmp_path: Path) -> None:
    data = data_set(tmp_path / "data.csv", ["a", "b", "c"])
    public = data_set(tmp_path / "public.csv", ["a", "d"])
    spec = load_spec(saved(tmp_path, propose_spec(data, public)))
    assert spec.data.path == data
    assert spec.data.text == "Text"
    assert spec.auxiliary is not None
    assert spec.auxiliary.path == public
    assert [(a.name, a.column, a.category_names) for a in spec.attributes] == [
        ("Topic", "Topic", ("a", "b", "c", "d"))
    ]
    assert spec.secrets[0].where == {"Topic": ("a",)}
    mechanism = spec.mechanism
    assert (mechanism.selection, mechanism.pool, mechanism.spread) == ("joint", "public", 0.3)
    assert (mechanism.budget_nats, mechanism.targets) == (1, "quota")
    assert spec.limits.on_missing == "error"


def test_the_papers_setting_stands_in_a_comment(tmp_path: Path) -> None:
    text = propose_spec(data_set(tmp_path / "data.csv", ["a", "b"]))
    line = next(line for line in text.splitlines() if "per_component" in line)
    assert yaml.safe_load(line.removeprefix("#"))["mechanism"]["gamma"] == 120
    assert "# TODO" in text
    assert "# auxiliary:" in text
    load_spec(saved(tmp_path, text))


def test_yaml_specials_stay_category_names(tmp_path: Path) -> None:
    data = data_set(tmp_path / "data.csv", SPECIALS)
    spec = load_spec(saved(tmp_path, propose_spec(data, secret={"Topic": ["NO", "a, b"]})))
    assert set(spec.attributes[0].category_names) == set(SPECIALS)
    assert spec.secrets[0].where == {"Topic": ("NO", "a, b")}
    records = read_source(spec.data, spec.attributes, columns={"Topic": "Topic"})
    assert {spec.attributes[0].category_names[r.labels[0]] for r in records} == set(SPECIALS)


@given(labels=st.lists(st.text(max_size=20).filter(str.strip), min_size=2, max_size=6, unique_by=str.strip))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_any_category_name_comes_through(tmp_path: Path, labels: list[str]) -> None:
    data = data_set(tmp_path / "data.jsonl", labels)
    spec = load_spec(saved(tmp_path, propose_spec(data)))
    assert spec.attributes[0].category_names == tuple(sorted(label.strip() for label in labels))


def test_nothing_is_counted_or_ordered_by_the_private_rows(tmp_path: Path) -> None:
    few = data_set(tmp_path / "data.csv", ["b", "a", "a", "a"], copies=2)
    first = propose_spec(few)
    assert propose_spec(data_set(few, ["a", "b"], copies=50)) == first


def test_gaps_are_dropped_and_said(tmp_path: Path) -> None:
    text = propose_spec(data_set(tmp_path / "data.csv", ["a", "b", "b", ""]))
    assert load_spec(saved(tmp_path, text)).limits.on_missing == "drop"
    assert "Some records lack a text or a label" in text


def test_without_categories_an_example_is_written(tmp_path: Path) -> None:
    data = data_set(tmp_path / "data.csv", [str(n) for n in range(50)], copies=1)
    spec = load_spec(saved(tmp_path, propose_spec(data)))
    assert [attribute.name for attribute in spec.attributes] == ["sentiment"]
    assert spec.secrets[0].where == {"sentiment": ("negative",)}


def test_combinations_stay_few(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = [[f"a text of some length, number {n}", *(str((n + k) % 12) for k in range(4))] for n in range(60)]
    write_table(path, ["text", "p", "q", "r", "s"], rows, format="csv")
    text = propose_spec(path)
    assert [a.name for a in load_spec(saved(tmp_path, text)).attributes] == ["p", "q"]
    assert "# Left out, since combinations would be rare: [r, s]." in text
    named = load_spec(saved(tmp_path, propose_spec(path, attributes=["s"])))
    assert [a.name for a in named.attributes] == ["s"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"text": "text"}, "no column is called 'text'; did you mean 'Text'"),
        ({"attributes": ["Text"]}, "no attribute"),
        ({"attributes": ["topic"]}, "did you mean 'Topic'"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path: Path, how: dict[str, object], message: str) -> None:
    data = data_set(tmp_path / "data.csv", ["a", "b"])
    with pytest.raises(SpecError, match=message):
        propose_spec(data, **how)  # type: ignore[arg-type]


def test_no_text_column(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    write_table(path, ["a"], [["1"], ["2"]], format="csv")
    with pytest.raises(SpecError, match="--text"):
        propose_spec(path)


def test_real_data_sets_give_specs_that_load_and_fit(shared_data: Path, tmp_path: Path) -> None:
    expected = {
        "stance/tweet.csv": ("Tweet", ["Target", "Stance", "Sentiment"]),
        "dialogues/gender_0.3.csv": ("text", ["gender"]),
        "dialogues/diagnosis_600.csv": ("text", ["diagnosis"]),
        "complaints/cfpb_2085_product_narrative.csv": ("Consumer complaint narrative", ["Product"]),
        "reviews/yelp_nyc_cuisine_reviews.csv": ("Review", ["Category"]),
    }
    for name, (text, attributes) in expected.items():
        spec = load_spec(saved(tmp_path, propose_spec(shared_data / name)))
        assert spec.data.text == text
        assert [attribute.name for attribute in spec.attributes] == attributes
        columns = {attribute.name: attribute.name for attribute in spec.attributes}
        read_source(spec.data, spec.attributes, columns=columns, on_missing=spec.limits.on_missing)
