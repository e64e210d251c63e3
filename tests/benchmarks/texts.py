"""What a model makes of real texts: `python tests/benchmarks/texts.py KIND --data DIR --out FOLDER`.

KIND is complaints (60 to 400 words; product, and whether a law is cited), dialogues (the patient's gender) or
tweets (subject, stance, sentiment). DIR is the folder of the data sets. Writes the two files and a spec to
FOLDER, makes a release of COUNT texts at `keep: 0.6` with the embedded model, and prints every pair with what
it cost; what was kept and what is on target is for a reader to say.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Row = dict[str, str]

PRODUCTS = {
    "Credit reporting, repair, or other": "credit reporting",
    "Debt collection": "debt collection",
    "Mortgage": "mortgage",
}
LAW = re.compile(r"\b(?:FCRA|FDCPA|U\.?\s?S\.?\s?C|Act|section \d|1681|1692)\b", re.IGNORECASE)


def _attribute(name: str, description: str, **categories: str) -> dict[str, Any]:
    named = [{"name": key.replace("_", " "), "description": said} for key, said in categories.items()]
    return {"name": name, "description": description, "categories": named}


KINDS: dict[str, list[dict[str, Any]]] = {
    "complaints": [
        _attribute(
            "product",
            "what the complaint is about",
            credit_reporting="what credit bureaus (Equifax, Experian, TransUnion) show in a report",
            debt_collection="a debt collector who calls, writes or sues to have a debt paid",
            mortgage="a home loan, its bank or servicer, payments, escrow or foreclosure",
        ),
        _attribute(
            "law",
            "whether the writer cites a law",
            cites_a_law="names an act or a section of a code",
            cites_none="no law is named",
        ),
    ],
    "dialogues": [
        _attribute(
            "gender",
            "the patient's gender",
            female="the patient is a woman or a girl: she, her, ma'am, my wife, my daughter",
            male="the patient is a man or a boy: he, him, sir, my husband, my son",
        )
    ],
    "tweets": [
        _attribute(
            "target",
            "what the post is about",
            Atheism="god, religion and the lack of it",
            Climate_Change_is_a_Real_Concern="climate change, global warming",
            Donald_Trump="Donald Trump and his campaign",
            Feminist_Movement="feminism, feminists, women's rights",
            Hillary_Clinton="Hillary Clinton and her campaign",
            Legalization_of_Abortion="abortion, pro-life and pro-choice",
        ),
        _attribute(
            "stance",
            "the writer's stance on the subject",
            AGAINST="the writer is against it",
            FAVOR="the writer is for it",
            NONE="neither for nor against it",
        ),
        _attribute(
            "sentiment",
            "the tone of the words",
            NEGATIVE="angry, mocking or sad words",
            NEITHER="plain words",
            POSITIVE="warm, glad or hopeful words",
        ),
    ],
}
SECRETS = {
    "complaints": {"product": "mortgage"},
    "dialogues": {"gender": "female"},
    "tweets": {"target": "Legalization of Abortion"},
}


def read(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def rows(kind: str, data: Path) -> Iterator[Row]:
    if kind == "complaints":
        for row in read(data / "complaints/cfpb_2085_product_narrative.csv"):
            text = row["Consumer complaint narrative"].strip()
            if row["Product"] in PRODUCTS:
                law = "cites a law" if LAW.search(text) else "cites none"
                yield {"text": text, "product": PRODUCTS[row["Product"]], "law": law}
    elif kind == "dialogues":
        for row in read(data / "dialogues/gender_pool.csv"):
            yield {"text": row["text"].strip(), "gender": row["gender"]}
    else:
        for row in read(data / "stance/tweet_stance_full.csv"):
            text = row["Tweet"].replace("#SemST", "").strip()
            yield {
                "text": text,
                "target": row["Target"],
                "stance": row["Stance"],
                "sentiment": row["Sentiment"],
            }


def fit(kind: str, text: str) -> bool:
    """Whether a text is of the kind that is to be released; the public set takes all."""
    length = len(text.split())
    return {"complaints": 60 <= length <= 400, "dialogues": text.count("\n") >= 3 and length <= 300}.get(
        kind, True
    )


def prepare(kind: str, data: Path, out: Path, count: int, seed: int, **more: Any) -> Path:
    """The two files and the spec; its path."""
    found = [row for row in rows(kind, data) if row["text"]]
    random.Random(seed).shuffle(found)
    n = -(-count * 10 // 6)
    private = [row for row in found if fit(kind, row["text"])][:n]
    taken = {row["text"] for row in private}
    public = [row for row in found if row["text"] not in taken][:2500]
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("private.csv", private), ("public.csv", public)):
        with (out / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(part[0]))
            writer.writeheader()
            writer.writerows(part)
    attributes = [{**attribute, "column": attribute["name"]} for attribute in KINDS[kind]]
    spec = {
        "data": {"path": "private.csv"},
        "auxiliary": {"path": "public.csv"},
        "attributes": attributes,
        "secrets": [{"where": SECRETS[kind]}],
        "mechanism": {"budget_nats": 0.5, "keep": 0.6},
        "limits": {"min_verified": 0.0, **more.pop("limits", {})},
        "output": {"path": "release"},
        **more,
    }
    (out / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return out / "spec.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--recipe", default="notes")
    parser.add_argument("--candidates", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    spec = prepare(
        asked.kind,
        asked.data,
        asked.out,
        asked.count,
        asked.seed,
        rewriting={"recipe": asked.recipe},
        limits={"candidates": asked.candidates},
    )
    workspace = asked.out / "workspace"
    command = [
        sys.executable,
        "-m",
        "quantext_graph",
        "release",
        str(spec),
        "--workspace",
        str(workspace),
        "--yes",
    ]
    subprocess.run(command, check=True)
    shown = Path(__file__).with_name("real_release.py")
    subprocess.run([sys.executable, str(shown), str(workspace)], check=True)


if __name__ == "__main__":
    main()
