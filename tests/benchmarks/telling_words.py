"""What the gaps in notes leave to be read: `python tests/benchmarks/telling_words.py --data DIR`.

Half of each public set teaches which words tell an attribute; these become gaps in the other half, which a
fresh classifier then learns and reads (4-fold), beside what it reads without gaps and the commonest category.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from texts import KINDS, rows

from quantext_graph.spec.loading import parse_spec
from quantext_graph.steps.telling import GAP, TellingWords
from quantext_graph.steps.texts import words

MOST = 2_000


def read(texts: list[str], codes: np.ndarray) -> str:
    model = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"\b\w+\b"),
        LogisticRegression(C=5, max_iter=300),
    )
    return " / ".join(f"{cross_val_score(model, texts, column, cv=4).mean():.2f}" for column in codes.T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    print("texts | attributes | words left | read before | read after | commonest")
    for kind, attributes in KINDS.items():
        spec = parse_spec({"data": {"path": "none.csv"}, "attributes": attributes})
        found = list(rows(kind, data))
        random.Random(1).shuffle(found)
        found = found[:MOST]
        codes = np.array([[a.code(row[a.name]) for a in spec.attributes] for row in found])
        half = len(found) // 2
        learned, tried = ([row["text"] for row in part] for part in (found[:half], found[half:]))
        telling = TellingWords.of(spec, learned, codes[:half])
        gapped = [telling.neutral(text) for text in tried]
        left = sum(len(words(text.replace(GAP, ""))) for text in gapped) / sum(len(words(t)) for t in tried)
        commonest = " / ".join(f"{np.bincount(c).max() / len(c):.2f}" for c in codes[half:].T)
        names = " / ".join(a.name for a in spec.attributes)
        before, after = read(tried, codes[half:]), read(gapped, codes[half:])
        print(f"{kind} | {names} | {left:.2f} | {before} | {after} | {commonest}", flush=True)


if __name__ == "__main__":
    main()
