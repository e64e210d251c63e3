from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quantext_graph.spec.errors import SpecError
from quantext_graph.spec.loading import load_spec, parse_spec
from quantext_graph.spec.models import Mechanism, ModelSpec


def minimal(**changes: Any) -> dict[str, Any]:
    return {
        "data": {"path": "posts.csv"},
        "attributes": [{"name": "Stance", "categories": ["FAVOR", "AGAINST"]}],
    } | changes


def test_categories_may_be_names_or_mappings() -> None:
    spec = parse_spec(minimal(attributes=[{"name": "a", "categories": ["x", {"name": "y", "word": "why"}]}]))
    assert spec.attributes[0].category_names == ("x", "y")
    assert spec.attributes[0].categories[1].word == "why"


def test_defaults_follow_the_selection_rule() -> None:
    recommended = Mechanism.model_validate({})
    assert (recommended.selection, recommended.pool, recommended.spread) == ("joint", "public", 0.3)
    assert (recommended.budget_nats, recommended.targets) == (1.0, "quota")
    paper = Mechanism.model_validate({"selection": "per_component"})
    assert (paper.pool, paper.spread, paper.budget_nats, paper.targets) == ("dirichlet", None, None, "iid")


def test_secret_codes_take_one_or_several_categories() -> None:
    spec = parse_spec(minimal(secrets=[{"where": {"Stance": ["AGAINST", "FAVOR"]}}]))
    assert spec.secret_codes(spec.secrets[0]) == {0: (1, 0)}
    assert spec.secrets[0].title == "Stance = AGAINST or FAVOR"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": {"gama": 3}}, "spec: mechanism.gama: unknown key; did you mean 'gamma'?"),
        ({"limit": {}}, "spec: limit: unknown key; did you mean 'limits'?"),
        (
            {"attributes": [{"name": "a", "categoris": []}]},
            "attributes[0].categoris: unknown key; did you mean",
        ),
        (
            {"mechanism": {"budget_nats": -1}},
            "mechanism.budget_nats: Input should be greater than or equal to 0",
        ),
        ({"mechanism": {"selection": "per_component", "gamma": 10, "k": 11}}, "lower k or raise gamma"),
        (
            {"secrets": [{"where": {"Stanc": "FAVOR"}}]},
            "no attribute is called 'Stanc'; did you mean 'Stance'?",
        ),
        (
            {"secrets": [{"where": {"Stance": "FAVR"}}]},
            "no category of Stance is called 'FAVR'; did you mean 'FAVOR'?",
        ),
        ({"attributes": [{"name": "a", "categories": ["x", "x"]}]}, "category 'x' stands twice"),
        ({"attributes": []}, "attributes: Tuple should have at least 1 item"),
        ({"mechanism": {"tree": {"Stance": "Topic"}}}, "mechanism.tree: no attribute is called 'Topic'"),
    ],
)
def test_a_mistake_is_one_line_that_says_where_and_how(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(minimal(**changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_sections_are_named() -> None:
    with pytest.raises(SpecError, match="data: missing; add it"):
        parse_spec({"attributes": [{"name": "a", "categories": ["x"]}]})


def test_relative_paths_start_at_the_spec(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "data: {path: posts.csv}\nattributes: [{name: a, categories: [NO, null, 'yes']}]\n", encoding="utf-8"
    )
    with pytest.raises(SpecError, match="categories"):
        load_spec(tmp_path / "spec.yaml")  # YAML reads NO and null as values: refused, not guessed
    (tmp_path / "spec.yaml").write_text(
        "data: {path: posts.csv}\nattributes: [{name: a, categories: ['NO']}]\n"
    )
    assert load_spec(tmp_path / "spec.yaml").data.path == tmp_path / "posts.csv"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"data: [", "line 1: not valid YAML"),
        (b"just text", "a spec is a mapping"),
        (b"\xff\xfe\x00", "write it as UTF-8 YAML"),
    ],
)
def test_a_file_that_is_no_spec(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=message):
        load_spec(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file; `quantext init DATA` writes a spec"):
        load_spec(tmp_path / "spec.yaml")


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("ollama:llama3.1:8b", "ollama", "llama3.1:8b"),
        ("embedded:/models/own:1.gguf", "embedded", "/models/own:1.gguf"),
        ("wordllama", "wordllama", ""),
    ],
)
def test_a_model_is_its_provider_and_a_name_that_may_hold_colons(
    model: str, provider: str, name: str
) -> None:
    spec = ModelSpec(model=model)
    assert (spec.provider, spec.name) == (provider, name)
    assert spec.embedded is (provider == "embedded")
