"""The methods that QuanText is compared with, simulated: what they release, promise and cost."""

import math
import sys
from typing import ClassVar

import numpy as np
import pytest
from audit_corpus import FILLER, WordEmbeddings, codes, spec, write

from quantext_graph.audit.utility import unit_norm
from quantext_graph.experiments.baselines import METHODS, Corpus, Method, Released, Task, Written, find_method
from quantext_graph.experiments.baselines.accounting import gaussian_epsilon, gaussian_sigma, usual_delta
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.experiments.baselines.method import unbounded
from quantext_graph.experiments.baselines.private_evolution import PrivateEvolution
from quantext_graph.experiments.baselines.public_labels import drawn_labels, label_counts
from quantext_graph.experiments.baselines.quantext import Joint, PerComponent
from quantext_graph.experiments.baselines.random_half import RandomHalf
from quantext_graph.experiments.baselines.raw import Raw
from quantext_graph.experiments.baselines.simulation import AuxiliaryWriter
from quantext_graph.spec.errors import QuantextError


def embed(texts):
    return unit_norm(WordEmbeddings().embed_documents(texts))


def corpus(n: int, likes: float, seed: int) -> Corpus:
    rng = np.random.default_rng(seed)
    labels = codes(n, likes, rng)
    return Corpus(write(labels, rng), labels)


@pytest.fixture
def task() -> Task:
    return made_task()


def made_task(n: int = 200, seed: int = 3) -> Task:
    private, public, rng = corpus(n, 0.8, 1), corpus(300, 0.5, 2), np.random.default_rng(seed)
    return Task(spec(), private, public, AuxiliaryWriter(public, embed, rng), embed, rng)


def likes(labels: np.ndarray) -> float:
    return float((labels[:, 1] == 0).mean())


class Echo(Method):
    """A method of a user's own, in one file."""

    name: ClassVar[str] = "echo"
    title: ClassVar[str] = "echo"

    def release(self, task: Task) -> Released:
        return Released(["echo"], unbounded(task.spec, 1, "none"), "nothing")


def test_the_accountant_has_the_published_value():
    n = 2814
    assert gaussian_epsilon(10.148, 9, usual_delta(n)) == pytest.approx(1.0, abs=5e-5)
    assert gaussian_sigma(1.0, 9, usual_delta(n)) == pytest.approx(10.148, abs=5e-4)


def test_raw_and_half_release_private_texts_and_promise_nothing(task):
    raw, half = Raw().release(task), RandomHalf().release(task)
    assert list(raw.texts) == list(task.private.texts)
    assert len(half.texts) == 100
    assert [task.private.texts[i] for i in half.sources] == list(half.texts)
    assert len(set(half.sources)) == 100
    for released in (raw, half):
        assert released.guarantee.bound_nats == {"likes": pytest.approx(math.log(201))}
        assert math.isinf(released.guarantee.mechanism_nats)


def test_quantext_by_both_rules_releases_what_it_drew(task):
    for method, nats in ((Joint(nats=1.0, pool_size=2000), 1.0), (PerComponent(ratio=4), None)):
        released = method.release(task)
        assert len(released.texts) == 200
        assert (released.realised == released.targets).all()  # every combination stands in the public set
        drawn = released.detail["shares"]["likes"]
        assert likes(released.targets) == pytest.approx(drawn, abs=0.12 if nats is None else 0.01)
        assert released.draw.seeded
        if nats is None:  # root topic or stance: C = 1 + 3 or 1 + 2
            assert released.guarantee.mechanism_nats / math.log(4) == pytest.approx(
                released.draw.leakage["likes"].components
            )
        else:
            assert released.guarantee.mechanism_nats == pytest.approx(1.0, abs=1e-3)
            assert not released.draw.leakage["likes"].vacuous


def test_a_ratio_of_the_paper_sets_k():
    assert PerComponent(gamma=120, ratio=12).release(made_task()).draw.parameters.k == 10
    with pytest.raises(ValueError, match="no multiple"):
        PerComponent(gamma=100, ratio=3)


@pytest.mark.parametrize("labels", ["public", "noised"])
def test_private_evolution_does_not_copy_private_proportions(labels):
    """The private share is 0.8, the public one 0.5; the published code releases 0.8."""
    share = [
        likes(PrivateEvolution(iterations=2, epsilon=0.05, labels=labels).release(made_task(seed=s)).targets)
        for s in range(8)
    ]
    if labels == "public":
        assert share == pytest.approx([0.5] * 8, abs=0.02)
    else:
        assert np.std(share) > 0.05
    released = PrivateEvolution(iterations=2, labels=labels).release(made_task())
    assert released.label_source.startswith(labels)


def test_noised_proportions_are_one_more_answer_to_pay_for():
    sigma = {
        labels: PrivateEvolution(iterations=3, epsilon=2.0, labels=labels)
        .release(made_task())
        .detail["sigma"]
        for labels in ("public", "noised")
    }
    assert sigma["noised"] / sigma["public"] == pytest.approx(math.sqrt(4 / 3))


def test_a_record_has_one_vote_a_round(task):
    """The histograms of neighbouring data sets differ by one in one place: sensitivity 1."""
    method = PrivateEvolution()
    labels = drawn_labels(label_counts(task.auxiliary.codes, (3, 2)), 200, (3, 2), task.rng)
    population = task.writer.compose(labels, step="compose")
    voters = embed(task.private.texts)
    votes = method._votes(task, population, labels, voters, 0)
    assert votes.sum() == 200
    for gone in (0, 57, 199):
        rest = [i for i in range(200) if i != gone]
        fewer = Corpus([task.private.texts[i] for i in rest], task.private.codes[rest])
        neighbour = Task(task.spec, fewer, task.auxiliary, task.writer, embed, task.rng)
        change = votes - method._votes(neighbour, population, labels, voters[rest], 0)
        assert sorted(change)[-1] == 1
        assert np.abs(change).sum() == 1


@pytest.mark.parametrize("select", ["rank", "sample"])
def test_votes_pull_the_population_to_the_private_texts_unless_noise_drowns_them(select):
    """Private texts say "bread"; of the texts that are written at first, one in three does."""
    chance = np.random.default_rng(0)

    def fillers() -> str:
        return " ".join(chance.choice(FILLER, 4))

    class Words:
        def compose(self, targets, *, step):
            return Written([f"{'rain' if i % 3 else 'bread'} {fillers()}" for i in range(len(targets))])

        def vary(self, texts, targets, *, step):
            return Written([f"{text.split()[0]} {fillers()}" for text in texts])

    private = Corpus([f"bread {fillers()}" for _ in range(400)], corpus(400, 0.5, 1).codes)

    def share(sigma: float) -> float:
        rng = np.random.default_rng(5)
        task = Task(spec(), private, corpus(60, 0.5, 2), Words(), embed, rng)
        released = PrivateEvolution(sigma=sigma, iterations=4, select=select, size=100).release(task)
        return float(np.mean([text.startswith("bread") for text in released.texts]))

    assert share(0.01) > 0.8
    assert share(1000.0) < 0.55


def test_lookahead_asks_for_variations_and_costs_no_more(task):
    near = PrivateEvolution(iterations=1, lookahead=2).release(task)
    assert near.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)
    assert len(near.texts) == 200


def test_a_simulated_writer_uses_every_fitting_text_as_often_as_the_others():
    public = corpus(60, 0.5, 2)
    writer = AuxiliaryWriter(public, embed, np.random.default_rng(0))
    target = public.codes[0]
    fitting = int((public.codes == target).all(axis=1).sum())
    written = writer.compose(np.repeat(target[None], 3 * fitting, axis=0), step="x")
    assert set(map(written.texts.count, written.texts)) == {3}
    assert (written.realised == target).all()


def test_where_no_public_text_carries_the_target_one_that_misses_least_does():
    public = corpus(60, 0.5, 2)
    kept = public.codes[:, 0] != 2
    lacking = Corpus([t for t, k in zip(public.texts, kept, strict=True) if k], public.codes[kept])
    written = AuxiliaryWriter(lacking, embed, np.random.default_rng(0)).compose(np.array([[2, 1]]), step="x")
    assert written.realised[0, 0] != 2
    assert written.realised[0, 1] == 1


def test_a_method_of_ones_own_is_found_by_its_place(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_methods", sys.modules[__name__])
    assert find_method("my_methods:Echo") is Echo
    assert all(issubclass(find_method(name), Method) for name in METHODS.names())


@pytest.mark.parametrize(
    ("name", "said"),
    [("joynt", "did you mean 'joint'"), ("no.such:Thing", "no such class"), ("math:pi", "not a method")],
)
def test_a_method_that_is_none_is_one_line(name, said):
    with pytest.raises(QuantextError, match=said):
        find_method(name)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr("quantext_graph.experiments.baselines.method.find_spec", lambda _: None)
    assert PrivateEvolution().missing().endswith("pip install 'quantext-graph[pe]'")
    assert "'quantext-graph[dpft]'" in find_method("dp_finetuning")().missing()
    assert Raw().missing() == ""


def test_what_is_kept_is_there_again_and_a_line_cut_short_is_not(tmp_path):
    path = tmp_path / "a" / "kept.jsonl"
    first = Kept(path)
    first.put("one", ["tea"])
    first.put("two", ["räin"])
    assert path.stat().st_mode & 0o077 == 0
    with path.open("a") as file:
        file.write('["three", ["bre')
    again = Kept(path)
    assert again.get("two") == ["räin"]
    assert "three" not in again
    again.put("four", [])
    assert "four" in Kept(path)
