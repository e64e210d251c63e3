"""The bound: values computed apart from this project."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantext_graph.core.leakage import compose, joint_leakage, per_component_leakage, secret_levels

VECTORS = json.loads((Path(__file__).parent / "vectors/leakage.json").read_text())


@pytest.mark.parametrize("case", VECTORS["per_component"])
def test_per_component_values(case):
    leakage = per_component_leakage(
        case["gamma"],
        case["k"],
        parent_sizes=case["parent_sizes"],
        secret_levels=case["secret_levels"],
        log_l=case["log_l"],
    )
    assert leakage.components == case["components"]
    assert leakage.mechanism_nats == pytest.approx(case["mechanism_nats"], rel=1e-12)
    assert leakage.cap_nats == pytest.approx(case["cap_nats"], rel=1e-12)
    assert leakage.bound_nats == pytest.approx(case["bound_nats"], rel=1e-12)
    assert leakage.vacuous is case["vacuous"]


@pytest.mark.parametrize("case", VECTORS["joint"])
def test_joint_values(case):
    leakage = joint_leakage(case["pool"], case["kept"], secret_levels=secret_levels(case["n"]))
    assert leakage.mechanism_nats == pytest.approx(case["mechanism_nats"], abs=1e-12)
    assert leakage.cap_nats == pytest.approx(case["cap_nats"], rel=1e-12)
    assert leakage.components == 1


def test_releases_compose_by_addition():
    case = VECTORS["composition"]
    assert compose(case["single_nats"]) == pytest.approx(case["total_nats"], rel=1e-12)
    assert compose([]) == 0


def test_levels_of_a_secret():
    assert secret_levels(3000) == 3001
    assert secret_levels(3000, 0.0001) == 10001
    assert secret_levels(3000, 0.3) == 5
    assert secret_levels(1, 1.0) == 2


@given(
    st.integers(1, 200).flatmap(lambda g: st.tuples(st.just(g), st.integers(1, g))),
    st.lists(st.integers(1, 6), max_size=4),
    st.integers(1, 10**6),
    st.floats(0, 5),
)
def test_the_bound_is_capped_and_vacuous_only_at_the_cap(gamma_k, parent_sizes, levels, log_l):
    gamma, k = gamma_k
    leakage = per_component_leakage(gamma, k, parent_sizes=parent_sizes, secret_levels=levels, log_l=log_l)
    assert leakage.bound_nats <= leakage.cap_nats
    assert leakage.vacuous == (leakage.bound_nats == leakage.cap_nats)
    assert leakage.success_factor <= levels * (1 + 1e-9)
    each = per_component_leakage(
        gamma, [k] * leakage.components, parent_sizes=parent_sizes, secret_levels=levels, log_l=log_l
    )
    assert each.mechanism_nats == pytest.approx(leakage.mechanism_nats, abs=1e-9)


def test_unequal_selection_sizes_add_up():
    leakage = per_component_leakage(120, [60, 120, 30], parent_sizes=[2], secret_levels=10**9)
    assert leakage.mechanism_nats == pytest.approx(math.log(2) + math.log(4), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: per_component_leakage(10, 11, secret_levels=5), "k = 11 candidates cannot be kept of 10"),
        (lambda: per_component_leakage(10, 0, secret_levels=5), "k = 0"),
        (lambda: per_component_leakage(10, [1], parent_sizes=[2], secret_levels=5), "3 components"),
        (lambda: joint_leakage(10, 11, secret_levels=5), "k = 11"),
        (lambda: joint_leakage(10, 5, secret_levels=0), "0 values"),
        (lambda: joint_leakage(10, 5, secret_levels=5, log_l=-1.0), "log l"),
    ],
)
def test_what_has_no_bound_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
