"""The utility and attack tools: thin, and what is private of their answers apart from what is public."""

import json

import audit_corpus as corpus
import numpy as np
import pytest
from quantext_graph.tools.attack import attack
from quantext_graph.tools.utility import utility

from quantext_graph.core.quantize import quantize

SECRET = {1: [0]}


def call(tool, **arguments):
    """Content and artifact of a tool, as an agent's framework gets them."""
    message = tool.invoke({"type": "tool_call", "name": tool.name, "id": "1", "args": arguments})
    return json.loads(message.content), message.artifact


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def test_the_utility_of_the_same_corpus_is_perfect_and_private(rng):
    labels = corpus.codes(40, 0.5, rng)
    texts = corpus.write(labels, rng)
    names = {"Stance": [corpus.STANCES[code] for code in labels[:, 1]]}
    arguments = {"private_labels": names, "released_labels": names}
    content, artifact = call(utility, private_texts=texts, released_texts=texts, **arguments)
    assert content == {"n_private": 40, "n_released": 40}
    assert (artifact["knn_precision"], artifact["knn_recall"], artifact["attribute_match"]) == (1, 1, 1)
    assert artifact["fid"] == pytest.approx(0, abs=1e-6)


def test_the_attacks_estimate_in_public_and_err_in_private(rng):
    private, public = corpus.codes(200, 0.8, rng), corpus.codes(200, 0.5, rng)
    mechanism = {"pool_size": 400, "spread": 0.3, "budget_nats": 1.0}
    drawn = quantize(private, (3, 2), auxiliary=public, secrets=[SECRET], rng=rng, **mechanism)
    content, artifact = call(
        attack,
        released_labels=drawn.targets.tolist(),
        private_labels=private.tolist(),
        category_counts=[3, 2],
        secrets=[SECRET],
        auxiliary=public.tolist(),
        draw={"mechanism": mechanism, "pool_seed": drawn.pool_seed, "choice": list(drawn.choice)},
    )
    assert [each["attack"] for each in content["attacks"]] == ["labelling", "mechanism-aware"]
    assert not any({"error", "prior_error"} & each.keys() for each in content["attacks"])
    counted = artifact["attacks"][0]
    assert counted["estimate"] == pytest.approx((drawn.targets[:, 1] == 0).mean())
    assert counted["error"] == pytest.approx(abs(counted["estimate"] - 0.8))
    assert counted["prior_error"] == pytest.approx(0.3)


def test_a_code_out_of_range_is_one_line(rng):
    labels = corpus.codes(5, 0.5, rng).tolist()
    content, artifact = call(
        attack, released_labels=[[9, 9]], private_labels=labels, category_counts=[3, 2], secrets=[SECRET]
    )
    assert "row 0" in content["error"]
    assert artifact == {}
