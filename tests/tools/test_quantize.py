"""The quantize and leakage tools: the spec's words around the mechanism, and what of them is public."""

import json
import math

import numpy as np
import pytest
from quantext_graph.tools.leakage import leakage
from quantext_graph.tools.quantize import quantize_tool

from quantext_graph.core.distribution import distribution_from_json
from quantext_graph.mechanism.draw import quantize_records
from quantext_graph.mechanism.guarantees import ANY_SECRET, guarantees, release_rule
from quantext_graph.mechanism.public_draw import PublicDraw
from quantext_graph.spec.errors import QuantextError
from quantext_graph.spec.loading import parse_spec

AUXILIARY = np.random.default_rng(0).integers([3, 2], size=(80, 2))
LABELS = np.random.default_rng(1).integers([3, 2], size=(40, 2))


def spec_of(**changes):
    raw = {
        "data": {"path": "posts.csv"},
        "attributes": [
            {"name": "Topic", "categories": ["a", "b", "c"], "weight": 2},
            {"name": "Stance", "categories": ["for", "against"]},
        ],
        "secrets": [
            {"name": "b for", "where": {"Topic": "b", "Stance": "for"}},
            {"where": {"Stance": "for"}, "precision": 0.5},
        ],
    }
    return parse_spec({**raw, **changes})


def test_a_draw_in_the_words_of_the_spec():
    spec = spec_of()
    draw = quantize_records(spec, LABELS, AUXILIARY)
    public = json.loads(draw.public.model_dump_json())
    assert sorted(draw.quantization.rows) == list(range(40))
    assert draw.assigned.shape == (40, 2)
    assert draw.quantization.cost == pytest.approx(((draw.assigned != LABELS) @ [2, 1]).mean())
    assert [each["secret"] for each in public["leakage"]] == ["b for", "Stance = for"]
    assert [each["secret_levels"] for each in public["leakage"]] == [41, 3]
    assert draw.leakage.bound_nats == max(each["bound_nats"] for each in public["leakage"]) <= 1
    released = distribution_from_json(public["released"])
    assert public["shares"]["b for"] == pytest.approx(released.share({0: (1,), 1: (0,)}))
    assert public["mechanism"]["kept"] == math.ceil(public["mechanism"]["pool_size"] / math.e)
    assert public["seeded"] is False
    assert not {"assigned", "rows", "cost", "targets"} & set(public)


def test_the_pool_of_a_draw_can_be_made_again_from_its_public_part():
    spec = spec_of()
    draw = quantize_records(spec, LABELS, AUXILIARY)
    public = PublicDraw.model_validate_json(draw.public.model_dump_json())
    assert public == draw.public
    rule = release_rule(spec, 40, AUXILIARY, pool_seed=public.pool_seed)
    again = rule.release(public.choice)
    assert again.share({0: (1,), 1: (0,)}) == pytest.approx(public.shares["b for"], abs=1e-15)


def test_a_seed_repeats_the_draw_and_is_told():
    spec = spec_of(mechanism={"seed": 3})
    first, second = (quantize_records(spec, LABELS, AUXILIARY).public for _ in range(2))
    assert first == second
    assert first.seeded is True


def test_the_guarantee_is_that_of_the_draw_for_every_rule():
    for mechanism in (
        {},
        {"selection": "per_component", "k": 60},
        {"selection": "per_component", "budget_nats": 2.0},
        {"selection": "per_component", "pool": "public", "k": 100},
        {"pool": "dirichlet", "budget_nats": 0.5, "pool_size": 1000},
    ):
        spec = spec_of(mechanism=mechanism)
        before = guarantees(spec, 40, AUXILIARY)
        after = quantize_records(spec, LABELS, AUXILIARY).guarantees
        assert before.components == after.components == 1 + (3 if release_tree_root(spec) == 0 else 2)
        assert before.worst.mechanism_nats == pytest.approx(after.worst.mechanism_nats, abs=0.05)
        assert before.secrets.keys() == after.secrets.keys()
        json.dumps(before.mechanism)


def release_tree_root(spec):
    return quantize_records(spec, LABELS, AUXILIARY).quantization.tree.root


def test_the_papers_setting_is_called_vacuous():
    spec = spec_of(mechanism={"selection": "per_component", "gamma": 120, "k": 10})
    found = guarantees(spec, 3000, AUXILIARY)
    assert found.worst.vacuous
    assert found.mechanism["gamma"] == 120
    assert found.mechanism["k"] == 10


def test_the_spec_may_give_the_tree_and_name_no_secret():
    spec = spec_of(
        mechanism={"selection": "per_component", "tree": {"Topic": "Stance"}}, secrets=[], auxiliary=None
    )
    found = guarantees(spec, 10, AUXILIARY[:0])
    assert found.components == 3
    assert list(found.secrets) == [ANY_SECRET]
    draw = quantize_records(spec, LABELS, None)
    assert draw.public.model_dump(mode="json")["tree"] == {"root": 1, "parents": [1, -1]}
    assert draw.shares == {}


def test_what_the_auxiliary_set_lacks_is_told():
    notes = guarantees(spec_of(), 40, AUXILIARY[AUXILIARY[:, 0] != 2]).notes
    assert len(notes) == 1
    assert "Topic = c" in notes[0]
    assert guarantees(spec_of(), 40, AUXILIARY).notes == ()


@pytest.mark.parametrize(
    ("mechanism", "auxiliary", "message"),
    [
        ({}, None, "no public source for their tree"),
        ({"tree": {"Topic": "Stance"}}, None, "a public pool needs auxiliary labels"),
        ({"pool_size": 2, "budget_nats": 3}, AUXILIARY, "a pool of 2 candidates cannot spend"),
        ({"pool": "dirichlet", "spread": 0.1}, AUXILIARY, "spread moves"),
        ({"tree": {}}, AUXILIARY, "a tree of 2 attributes names 1 parents"),
    ],
)
def test_what_cannot_be_released_is_one_line(mechanism, auxiliary, message):
    spec = spec_of(mechanism=mechanism)
    for call in (
        lambda: guarantees(spec, 40, auxiliary),
        lambda: quantize_records(spec, LABELS, auxiliary),
    ):
        with pytest.raises(QuantextError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_an_agents_draw_parts_public_from_private():
    call = {
        "type": "tool_call",
        "id": "1",
        "name": "quantize",
        "args": {
            "labels": LABELS.tolist(),
            "category_counts": [3, 2],
            "auxiliary": AUXILIARY.tolist(),
            "secrets": [{"0": [1]}],
            "mechanism": {"spread": 0.3, "budget_nats": 0.5},
        },
    }
    message = quantize_tool.invoke(call)
    public = json.loads(message.content)
    assert set(public) == {"released", "leakage", "shares"}
    assert public["leakage"][0]["bound_nats"] <= 0.5
    assert np.shape(message.artifact["assigned"]) == (40, 2)
    assert set(message.artifact) == {"assigned", "cost"}


def test_an_agent_may_name_the_tree_in_place_of_an_auxiliary_set():
    def answer(**given):
        args = {"labels": LABELS.tolist(), "category_counts": [3, 2], "mechanism": {"pool": "dirichlet"}}
        call = {"type": "tool_call", "id": "1", "name": "quantize", "args": args | given}
        return json.loads(quantize_tool.invoke(call).content)

    assert "no public source for their tree" in answer()["error"]
    assert "released" in answer(parents=[1, -1])
    assert "mend the cycle" in answer(parents=[0, -1])["error"]
    assert "exactly the root" in answer(parents=[-1, -1])["error"]


@pytest.mark.parametrize("mechanism", [{"selekt": 1}, {"k": 500, "gamma": 100, "selection": "per_component"}])
def test_an_agents_mistake_is_answered_not_raised(mechanism):
    message = quantize_tool.invoke(
        {
            "type": "tool_call",
            "id": "1",
            "name": "quantize",
            "args": {
                "labels": LABELS.tolist(),
                "category_counts": [3, 2],
                "auxiliary": AUXILIARY.tolist(),
                "mechanism": mechanism,
            },
        }
    )
    assert "error" in json.loads(message.content)


def test_the_leakage_tool_states_the_papers_numbers():
    found = leakage.invoke(
        {"n": 3000, "selection": "per_component", "gamma": 120, "k": 60, "parent_sizes": [5, 5]}
    )
    assert found["mechanism_nats"] == pytest.approx(11 * math.log(2))
    assert found["cap_nats"] == pytest.approx(math.log(3001))
    assert not found["vacuous"]
    joint = leakage.invoke({"n": 3000, "budget_nats": 1.0, "category_counts": [6, 3, 3]})
    assert joint["bound_nats"] == pytest.approx(1, abs=1e-4)
    assert joint["success_factor"] == pytest.approx(math.e, abs=1e-3)
    assert "k = 9" in leakage.invoke({"n": 5, "selection": "per_component", "gamma": 3, "k": 9})["error"]
