"""Joint pools: blocks, tilts, spread and smoothing."""

import numpy as np
import pytest

from quantext_graph.core import joint_pool, public_pool
from quantext_graph.core.arrays import combinations, event_mask, grid
from quantext_graph.core.chow_liu import Tree
from quantext_graph.core.distribution import total_variation_from
from quantext_graph.core.event_atoms import atoms
from quantext_graph.core.joint_pool import JointPool
from quantext_graph.core.public_pool import missing_categories, proper_events, public_joint, public_tree
from quantext_graph.core.rules import MechanismParameters, build_rule, joint_pool_size

SIZES = (3, 2, 4)
TREE = Tree(0, (-1, 0, 0))
AUXILIARY = np.random.default_rng(4).integers(SIZES, size=(200, 3))
EVENT = {0: (1,), 2: (0, 3)}
LABELS = np.random.default_rng(5).integers(SIZES, size=(60, 3))


def pool_of(size=300, **parameters) -> JointPool:
    return build_rule(
        MechanismParameters(pool_size=size, **parameters),
        tree=TREE,
        sizes=SIZES,
        n=60,
        auxiliary=AUXILIARY,
        secrets=[EVENT, {1: (0,)}],
        pool_seed=3,
    ).pool


KINDS = {
    "dirichlet": {"pool": "dirichlet"},
    "table": {},
    "table, spread": {"spread": 0.3},
    "tree": {},
    "tree, spread": {"spread": 0.3},
}


@pytest.fixture(params=KINDS)
def pool(request, monkeypatch) -> JointPool:
    if "tree" in request.param:
        monkeypatch.setattr(public_pool, "DENSE_CELLS", 1)
    return pool_of(**KINDS[request.param])


def test_candidates_are_distributions_and_the_same_again(pool):
    every = grid(SIZES)
    for index in (0, 1, 150, 299):
        table = pool.candidate(index).probability(every)
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(1)
        np.testing.assert_array_equal(table, pool.candidate(index).probability(every))
    assert pool.candidate(0).share(EVENT) != pool.candidate(1).share(EVENT)


def test_distances_and_shares_are_those_of_the_candidates(pool, monkeypatch):
    combos, counts, _ = combinations(LABELS)
    distances, shares = pool.distances(combos, counts / 60), pool.shares(EVENT)
    assert distances.shape == shares.shape == (300,)
    for index in (0, 37, 299):
        candidate = pool.candidate(index)
        assert distances[index] == pytest.approx(total_variation_from(combos, counts / 60, candidate))
        assert shares[index] == pytest.approx(candidate.share(EVENT))


def test_distances_do_not_depend_on_how_much_memory_there_is(monkeypatch):
    combos, counts, _ = combinations(LABELS)
    pool = pool_of(spread=0.3)
    whole = pool.distances(combos, counts / 60)
    blocks = JointPool(pool.source, 300, 3)
    monkeypatch.setattr(joint_pool, "BLOCK_FLOATS", 24 * 50)
    assert blocks.block_size == 50
    by_blocks = blocks.distances(combos, counts / 60)
    for index in (0, 49, 50, 299):
        candidate = blocks.candidate(index)
        assert by_blocks[index] == pytest.approx(total_variation_from(combos, counts / 60, candidate))
    assert whole.mean() == pytest.approx(by_blocks.mean(), rel=0.1)


@pytest.mark.parametrize("cells_as_table", [10**6, 1])
def test_spread_moves_the_share_around_the_public_one_and_leaves_the_rest(monkeypatch, cells_as_table):
    monkeypatch.setattr(public_pool, "DENSE_CELLS", cells_as_table)
    rule = build_rule(
        MechanismParameters(pool_size=4000, spread=0.15),
        tree=TREE,
        sizes=SIZES,
        n=60,
        auxiliary=AUXILIARY,
        secrets=[EVENT],
        pool_seed=3,
    )
    public = public_joint(AUXILIARY, TREE, SIZES).share(EVENT)
    shares = rule.pool.shares(EVENT)
    low, high = max(0, public - 0.15), public + 0.15
    assert low <= shares.min() < low + 0.01
    assert high - 0.01 < shares.max() <= high + 1e-12
    assert shares.mean() == pytest.approx((low + high) / 2, abs=0.01)
    plain = pool_of(4000).shares(EVENT)
    assert plain.std() < shares.std()


def test_several_secrets_are_each_moved_along():
    pool = pool_of(2000, spread=0.3)
    for event in (EVENT, {1: (0,)}):
        public = pool.source.joint.share(event)
        assert (np.abs(pool.shares(event) - public) > 0.15).mean() > 0.15


def test_smoothing_gives_every_combination_mass_and_keeps_the_table():
    lacking = AUXILIARY[(AUXILIARY[:, 0] != 2) & (AUXILIARY[:, 2] != 1)]
    assert missing_categories(lacking, SIZES) == ((0, 2), (2, 1))
    assert missing_categories(AUXILIARY, SIZES) == ()
    for distribution in (public_joint(lacking, TREE, SIZES), public_tree(lacking, TREE, SIZES)):
        table = distribution.probability(grid(SIZES))
        assert table.min() > 0
        assert table.sum() == pytest.approx(1)
    combos, counts, _ = combinations(AUXILIARY)
    assert total_variation_from(combos, counts / 200, public_joint(AUXILIARY, TREE, SIZES)) < 0.03


def test_without_auxiliary_labels_the_public_tree_is_uniform():
    np.testing.assert_allclose(public_tree(None, TREE, SIZES).probability(grid(SIZES)), 1 / 24)


def test_secrets_that_everybody_or_nobody_counts_for_are_left_alone():
    assert proper_events([{0: (0, 1, 2)}, {1: ()}, {}, EVENT], SIZES) == [EVENT]
    assert np.isfinite(
        build_rule(
            MechanismParameters(pool_size=10, spread=0.3),
            tree=TREE,
            sizes=SIZES,
            n=9,
            auxiliary=AUXILIARY,
            secrets=[{0: (0, 1, 2)}],
            pool_seed=1,
        ).pool.shares(EVENT)
    ).all()


def test_the_pool_shrinks_with_the_work_but_keeps_thirty():
    assert joint_pool_size(1.0, width=54, n=10**6, sizes=(6, 3, 3)) == 200_000
    small = joint_pool_size(1.0, width=10**5, n=10**6, sizes=(60,) * 12)
    assert 82 <= small < 1000
    assert joint_pool_size(9.0, width=54, n=10**6, sizes=(6, 3, 3)) >= 30 * np.exp(9.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pool_size": 10, "budget_nats": 3.0}, "a pool of 10 candidates cannot spend 3.0 nats"),
        ({"budget_nats": -1.0}, "budget_nats = -1.0"),
        ({"pool": "dirichlet", "spread": 0.3}, "spread moves the candidates of a public pool"),
        ({"spread": 1.5}, "between 0 and 1"),
        ({"selection": "per_component", "blind": True}, "blind is for the joint rule"),
        ({"selection": "per_component", "pool": "dirichlet", "gamma": 5, "k": 6}, None),
        ({"selection": "per_component", "pool": "dirichlet", "gamma": 5, "pool_size": 4}, "gamma = 5"),
        ({"selection": "per_component", "budget_nats": -0.5}, "budget_nats = -0.5"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        build_rule(
            MechanismParameters(**parameters), tree=TREE, sizes=SIZES, n=9, auxiliary=AUXILIARY, pool_seed=1
        ).kept(LABELS)


def test_a_public_pool_without_auxiliary_labels_is_refused():
    for nothing in (None, AUXILIARY[:0]):
        with pytest.raises(ValueError, match="a public pool needs auxiliary labels"):
            build_rule(MechanismParameters(), tree=TREE, sizes=SIZES, n=9, auxiliary=nothing, pool_seed=1)


def test_atoms_part_the_combinations_and_their_masses_add_up(pool):
    events = [EVENT, {1: (0,)}, {0: (1, 2)}]
    every = grid(SIZES)
    masses = np.full(len(every), 1 / len(every))
    parts = atoms(every, masses, events)
    assert sorted(np.concatenate([part.members for part in parts])) == list(range(len(every)))
    tables = np.stack([pool.candidate(index).probability(every) for index in range(5)])
    for part in parts:
        shares = part.share(pool.shares)
        np.testing.assert_allclose(shares[:5], tables[:, part.members].sum(axis=1), atol=1e-12)


def test_blind_distances_see_the_rest_and_not_the_shares(pool):
    events = [EVENT, {1: (0,)}]
    combos, counts, _ = combinations(LABELS)
    distances = pool.distances(combos, counts / 60, blind_to=events)
    every = grid(SIZES)
    private = np.zeros(len(every))
    np.add.at(private, np.ravel_multi_index(tuple(LABELS.T), SIZES), 1 / 60)
    signature = event_mask(every, EVENT) * 2 + event_mask(every, {1: (0,)})
    for index in (0, 37, 299):
        table = pool.candidate(index).probability(every)
        for cell in range(4):
            mask = signature == cell
            table[mask] *= private[mask].sum() / table[mask].sum()
        assert distances[index] == pytest.approx(0.5 * np.abs(table - private).sum())


def test_a_blind_selection_leaves_the_share_where_the_pool_puts_it():
    skewed = LABELS[(LABELS[:, 1] == 0) | (np.arange(60) % 7 == 0)]
    events, errors = [{1: (0,)}], {}
    for blind in (False, True):
        rule = build_rule(
            MechanismParameters(pool_size=4000, spread=0.3, budget_nats=3.0, blind=blind),
            tree=TREE,
            sizes=SIZES,
            n=60,
            auxiliary=AUXILIARY,
            secrets=events,
            pool_seed=3,
        )
        shares = rule.pool.shares(events[0])
        kept = rule.kept(skewed)[0]
        errors[blind] = abs(shares[kept].mean() - shares.mean())
    assert errors[False] > 0.1
    assert errors[True] < 0.05
