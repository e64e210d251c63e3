"""The page "Extending": its package is installed as it stands, and each of its doors opens."""

from __future__ import annotations

import configparser
import io
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import audit_corpus as corpus
import numpy as np
import pandas as pd
import pytest
from experiments_corpus import write_experiment
from langchain_core.messages import HumanMessage
from pydantic import create_model
from servers import Act, OpenAIServer

from quantext_graph.audit.assessment import audit
from quantext_graph.audit.attack_kinds import ATTACKS
from quantext_graph.audit.inputs import AuditInputs
from quantext_graph.audit.metrics import METRICS
from quantext_graph.audit.report import render
from quantext_graph.experiments.baselines import METHODS
from quantext_graph.experiments.plan import load_experiment
from quantext_graph.experiments.report import run_and_report
from quantext_graph.models.chat_model import Outcome, chat_model
from quantext_graph.models.privacy import RemoteModelRefused
from quantext_graph.models.providers import PROVIDERS
from quantext_graph.spec.errors import QuantextError, SpecError
from quantext_graph.spec.models import Models, ModelSpec

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
ANSWER = create_model("Answer", stance=(str, ...))

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package on the path: its modules, and entry points by group."""
    before = set(sys.modules)

    def put(name: str, modules: dict[str, str], points: dict[str, dict[str, str]]) -> None:
        place = tmp_path / f"site_{name}"
        for path, text in modules.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, encoding="utf-8")
        written = configparser.ConfigParser()
        written.read_dict(points)
        told = io.StringIO()
        written.write(told)
        info = place / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(told.getvalue())
        monkeypatch.syspath_prepend(place)

    yield put
    for module in set(sys.modules) - before:
        if module.startswith(("acme_quantext", "broken_")):
            del sys.modules[module]


@pytest.fixture
def acme(install: Install) -> None:
    """The package of the page."""
    (toml,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    project = tomllib.loads(toml)["project"]
    blocks = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == PAGE.count("```python") == 4
    install(project["name"].replace("-", "_"), dict(blocks), project["entry-points"])


def released(rng: np.random.Generator) -> AuditInputs:
    """A release of other texts with the private shares, and a public set."""
    private, public = corpus.codes(60, 0.8, rng), corpus.codes(80, 0.5, rng)
    return AuditInputs(
        private_texts=corpus.write(private, rng),
        private_codes=private,
        released_texts=corpus.write(private, rng),
        auxiliary_texts=corpus.write(public, rng),
        auxiliary_codes=public,
    )


@pytest.mark.usefixtures("acme")
def test_an_attack_is_made_in_every_audit_and_explained_on_its_page():
    report = audit(released(np.random.default_rng(0)), corpus.spec(), corpus.WordEmbeddings())
    found = {attack.attack: attack for attack in report.attacks}
    assert found["nearest-neighbour"].error < 0.1 < found["nearest-neighbour"].prior_error
    page = render(report)
    assert "Each released text is given the labels of the public text nearest to it" in page
    without = audit(
        AuditInputs(["tea like"], np.array([[0, 0]]), ["tea like"]), corpus.spec(), corpus.WordEmbeddings()
    )
    skipped = {skip.attack: skip.reason for skip in without.skipped}
    assert skipped["nearest-neighbour"] == "there is no labelled auxiliary set to learn from"


@pytest.mark.usefixtures("acme")
def test_a_metric_stands_beside_the_four_and_leaves_the_aggregate():
    inputs = released(np.random.default_rng(0))
    report = audit(inputs, corpus.spec(), corpus.WordEmbeddings())
    assert list(report.utility.values)[4:] == ["vocabulary"]
    assert report.to_json()["utility"]["vocabulary"] == 1
    assert "words of the private texts that the released ones use too" in render(report)
    assert report.utility.aggregate == pytest.approx(np.mean(list(report.utility.rescaled.values())[:4]))


@pytest.mark.usefixtures("acme")
def test_a_baseline_and_a_metric_take_part_in_an_experiment(tmp_path):
    path = write_experiment(tmp_path, methods=["raw", "uniform"], repeats=1)
    told = run_and_report(load_experiment(path), tmp_path / "out", simulate=True)
    assert not told.failed
    rows = pd.read_csv(tmp_path / "out" / "results.csv")
    uniform = rows[rows["method"] == "uniform labels"]
    assert set(uniform["guarantee"]) == {"nothing private is used"}
    assert set(uniform["mechanism_nats"]) == {0}
    assert (rows[rows["method"] == "raw release"]["vocabulary"] == 1).all()


@pytest.mark.usefixtures("acme")
def test_a_provider_connects_and_is_held_to_the_privacy_guard():
    with OpenAIServer(then=Act('{"stance": "FAVOR"}')) as server:
        model = chat_model(ModelSpec(model="acme:small", base_url=server.url), Models())
        reply = model.structured([HumanMessage("a text")], ANSWER)
        model.close()
        assert reply.outcome is Outcome.OK
        assert not model.remote
        assert server.asked[0]["model"] == "acme-small"
    away = ModelSpec(model="acme:small", base_url="http://192.0.2.1/v1")
    with pytest.raises(RemoteModelRefused, match=r"192\.0\.2\.1"):
        chat_model(away, Models())


LIAR = """
class Endpoint:
    address, prefills, likely, context, closed = "http://192.0.2.1/v1", False, 0, None, []

    def close(self):
        self.closed.append(1)


def connect(reference, name, models):
    from quantext_graph.models.providers import Connection

    return Connection((Endpoint(),), remote=False)


def fails(reference, name, models):
    raise KeyError("sk-secret")
"""


def test_a_provider_is_believed_to_be_local_only_where_its_address_is(install):
    points = {"quantext_graph.providers": {"liar": "broken_liar:connect", "fails": "broken_liar:fails"}}
    install("broken_liar", {"broken_liar.py": LIAR}, points)
    with pytest.raises(RemoteModelRefused, match=r"liar:a: .*192\.0\.2\.1"):
        chat_model(ModelSpec(model="liar:a"), Models())
    assert sys.modules["broken_liar"].Endpoint.closed == [1]
    with pytest.raises(QuantextError, match=r"fails:a: its provider failed \(KeyError\)") as caught:
        chat_model(ModelSpec(model="fails:a"), Models())
    assert "sk-secret" not in str(caught.value)


GROUPS = [(ATTACKS, "attacks"), (METHODS, "baselines"), (METRICS, "metrics"), (PROVIDERS, "providers")]


@pytest.mark.parametrize(("registry", "door"), GROUPS)
def test_a_broken_package_is_named_in_one_line_and_stops_nobody(registry, door, install):
    ours = registry.names()
    places = {
        "absent": "broken_nowhere:Thing",
        "explodes": "broken_bomb:Thing",
        "wrong": "broken_wrong:THING",
        ours[0]: "broken_wrong:THING",
    }
    modules = {"broken_bomb.py": "raise RuntimeError('at\\nonce')", "broken_wrong.py": "THING = 7"}
    install("broken_pack", modules, {f"quantext_graph.{door}": places})
    known = registry.known()
    assert [*known.loaded] == ours
    assert len(known.broken) == 4
    for line in known.broken.values():
        assert "package broken_pack" in line
        assert "\n" not in line
    assert "the name is taken" in known.broken[f"{ours[0]} of package broken_pack"]
    assert registry.find(ours[0]) is known.loaded[ours[0]]
    with pytest.raises(SpecError, match=r"cannot be loaded \(ModuleNotFoundError"):
        registry.find("absent")
    with pytest.raises(SpecError, match=r"cannot be loaded \(RuntimeError: at\)"):
        registry.find("explodes")
    with pytest.raises(SpecError, match="broken_wrong:THING"):
        registry.find("wrong")


BROKEN_WORK = """
from quantext_graph.audit.attack_kinds import AttackKind
from quantext_graph.audit.metrics import Metric


class Attack(AttackKind):
    name = title = explanation = "fragile"

    def attack(self, evidence):
        raise ZeroDivisionError(evidence.released[0])


class Measure(Metric):
    name = title = phrase = meaning = "brittle"

    def measure(self, release):
        raise ZeroDivisionError(release.texts[0])
"""


def test_what_fails_at_work_is_left_out_and_tells_no_text(install):
    points = {
        "quantext_graph.attacks": {"fragile": "broken_work:Attack", "absent": "broken_nowhere:Thing"},
        "quantext_graph.metrics": {"brittle": "broken_work:Measure"},
    }
    install("broken_work", {"broken_work.py": BROKEN_WORK}, points)
    report = audit(released(np.random.default_rng(0)), corpus.spec(), corpus.WordEmbeddings())
    reasons = {skip.attack: skip.reason for skip in report.skipped}
    assert reasons["fragile"].startswith("failed (ZeroDivisionError)")
    assert "package broken_work" in reasons["absent"]
    assert len(report.utility.values) == 4
    assert any(note.startswith("brittle: failed") for note in report.notes)
    figures = json.dumps(report.to_json())
    assert not any(text in figures for text in report.inputs.released_texts)


def test_ours_say_all_of_themselves():
    for registry, fields in (
        (ATTACKS, ("name", "title", "explanation")),
        (METRICS, ("name", "title", "phrase", "meaning")),
    ):
        for name in registry.names():
            kind = registry.find(name)
            assert kind.name == name
            assert all(getattr(kind, field) for field in fields)
