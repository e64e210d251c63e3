"""What a run says of its texts: a text made of the spec's words alone is off target for whoever judges."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from releases import obedient, write_data, write_spec
from servers import Act

from quantext_graph.audit.auditing import audit_workspace, verdict
from quantext_graph.audit.report import render
from quantext_graph.release.figures import gate_lines, public_figures
from quantext_graph.release.run import Run
from quantext_graph.release.standing import status
from quantext_graph.spec.loading import load_spec
from quantext_graph.workspace.folder import Workspace


def finished(folder: Path, *, auxiliary: int = 120, mute: bool = False, blind: bool = False) -> Run:
    """A published run of 40 records whose evaluator learned from the auxiliary set; `mute`: for targets of
    asthma the model writes nothing; `blind`: the public texts do not tell gender."""

    def faulty(_: int, body: dict[str, Any], act: Act) -> Act:
        refused = Act("", message={"refusal": "I cannot help with that"})
        return refused if mute and "asthma, written anew" in str(act.text) else act

    write_data(folder, 40, auxiliary=auxiliary)
    if blind:
        chance = random.Random(1)
        rows = [
            f"Public letter from a reader about {diagnosis},{chance.choice(['female', 'male'])},{diagnosis}"
            for diagnosis in ["diabetes", "asthma", "migraine"] * (auxiliary // 3)
        ]
        (folder / "public.csv").write_text("\n".join(["message,gender,diagnosis", *rows]), encoding="utf-8")
    with obedient(faulty=faulty) as server:
        spec = load_spec(write_spec(folder, server.url, limits={"min_verified": 0.0}))
        with Run.start(spec) as run:
            run.go()
            run.answer(True)
    return run


def test_a_text_of_the_specs_words_is_on_target_for_nobody(tmp_path: Path) -> None:
    run = finished(tmp_path, mute=True)
    with Workspace.open(run.workspace) as opened:
        pairs, private = list(opened.store.pairs()), opened.store.private_report()
        realised, public = opened.store.meta("realised"), opened.store.report()
    mute = [pair for pair in pairs if pair.target[1] == 1]
    assert {pair.released.split(": ")[-1] for pair in mute} == {"asthma."}
    assert not any(pair.verified for pair in mute)
    assert status(run.workspace).verified == 40 - len(mute)
    assert (private.spec_words, private.fallbacks) == (len(mute), 0)
    assert public is not None
    read = [tuple(said) == pair.target for said, pair in zip(realised, pairs, strict=True)]
    assert sum(read) > 40 - len(mute), "who takes the words for a text reads them as on target"
    assert public.evaluation.corrected is not None
    assert public.evaluation.corrected.high <= 1 - len(mute) / 40
    assert public.evaluation.read_on_target <= 1 - len(mute) / 40
    assert f"{len(mute)} made of the spec's words alone" in gate_lines(run.workspace)[0]
    card = (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
    assert "where it failed at that too, the text is made of the spec's words" in card
    assert "every one rewritten by a language model" not in card
    page = render(audit_workspace(run.workspace, [], lambda _: None))
    assert f"{len(mute)} made of the spec's words alone" in page


def test_gate_card_figures_and_verdict_say_one_share(tmp_path: Path) -> None:
    run = finished(tmp_path)
    said = public_figures(run.workspace)["on_target"]
    assert said.startswith("On target in all attributes at once: ")
    assert said in gate_lines(run.workspace)
    card = (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
    assert said in card
    known = json.loads((tmp_path / "release" / "release.json").read_text())
    share = known["evaluation"]["corrected"]["share"]
    assert f"and {share:.0%} (90 % interval" in verdict(audit_workspace(run.workspace, [], lambda _: None))[2]


@pytest.mark.parametrize(
    ("public", "words"),
    [({"auxiliary": 23}, "is not known"), ({"auxiliary": 120, "blind": True}, "reads gender right")],
)
def test_where_the_judge_is_not_better_than_chance_no_share_is_told(
    tmp_path: Path, public: dict[str, Any], words: str
) -> None:
    run = finished(tmp_path, **public)
    said = public_figures(run.workspace)["on_target"]
    assert words in said
    assert said.endswith("no share on target can be told.")
    card = (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
    assert said in card
    assert said in verdict(audit_workspace(run.workspace, [], lambda _: None))[2]
    assert "On target in all" not in card + " ".join(gate_lines(run.workspace))
