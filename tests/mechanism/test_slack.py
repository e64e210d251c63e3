"""How much slack is left for labels in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quantext_graph.mechanism.slack import MOST_CHANGES, share_for_doubt
from quantext_graph.mechanism.tradeoff import expected_changes
from quantext_graph.spec.loading import parse_spec
from quantext_graph.spec.models import Spec

PUBLIC = np.random.default_rng(0).choice(4, size=(1500, 1), p=[0.4, 0.3, 0.2, 0.1])


def spec_of(**mechanism: Any) -> Spec:
    return parse_spec(
        {
            "data": {"path": "/nowhere/private.csv"},
            "attributes": [{"name": "subject", "categories": ["a", "b", "c", "d"]}],
            "secrets": [{"name": "share of a", "where": {"subject": "a"}}],
            "mechanism": mechanism,
        }
    )


def test_where_every_record_is_released_none_stays_out() -> None:
    assert share_for_doubt(spec_of(keep=1.0), PUBLIC) == 0


def test_the_more_slack_the_more_stay_out() -> None:
    shares = [share_for_doubt(spec_of(keep=keep), PUBLIC) for keep in (0.95, 0.7, 0.5, 0.3)]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


@pytest.mark.parametrize("nats", [0.0, 0.5, 3.0])
def test_few_texts_change_when_those_stay_out(nats: float) -> None:
    spec = spec_of(keep=0.5, budget_nats=nats)
    share = share_for_doubt(spec, PUBLIC)
    at = 0.5 / (1 - share)
    changes = expected_changes(spec, PUBLIC, keeps=(at,))
    assert at <= 1
    assert share == 0 or changes[at] <= MOST_CHANGES


def test_changes_come_first_where_slack_is_short() -> None:
    assert share_for_doubt(spec_of(keep=0.9, budget_nats=0.0, spread=0.5), PUBLIC) == 0


def test_without_public_rows_to_estimate_by_none_stays_out() -> None:
    assert share_for_doubt(spec_of(keep=0.5, pool="dirichlet"), PUBLIC[:5]) == 0
