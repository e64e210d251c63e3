"""What released texts tell of a secret share beyond what the bound on the draw allows, on real tweets.

    python tests/benchmarks/text_channel.py --data DIR [--keep 0.6 1] [--writers notes own] [--releases 64]
    python tests/benchmarks/text_channel.py --data DIR --reader perfect --wrong 0 .02 .05 .1
    python tests/benchmarks/text_channel.py --data DIR --reader perfect --labeller --doubt 0 .4
    python tests/benchmarks/text_channel.py --data DIR --keep 0.6 --writers public uncapped
    python tests/benchmarks/text_channel.py --data DIR --audit [--runs 12]

DIR holds stance/tweet.csv. The secret is the share of posts on one subject. No model writes: the writer is
the worst that follows its target, who uses notes word for word. With `notes` every text is half of its
record's words and half of a public text of its target; with `own` a record whose target is
its label is published as it is and only the others are written so; `clean` carries nothing of any record;
`neutral` is `notes` without the words that speak for a category of the secret's attribute in public texts.

`--wrong` is a share of labels that the holder has wrong; with `--labeller` the labels are the program's own,
by a classifier that learned from the public texts, and `--doubt` is the share of public labels that are in
doubt, which says how sure a label must be not to be used last. `--reader perfect` reads what each text says
without a mistake: a record's own words its true category, a text that follows its target the target, but for
the share `--slips`, which says what its record was. `--reader doubt` sees of the texts that tell their record
whether its label was in doubt, and no more.

Two writers are `recipe: none` without a model: `public` publishes records that have their target as they are
up to a public number of each combination, and fills the rest with public texts; `uncapped` does so with all
of them. Their attacker knows every public text and the true subject of every text, and so counts the private
ones of each combination; what such counts say of the share is worked out by Poisson's law, with the true
proportions within both sides of the secret.

Many releases of two private shares are made. The attacker sees all that is public, learns from other
releases which words tell the old label, sums over the texts of each target, and names the share (10-fold).
With `--audit` the audit looks at single releases instead: how many it can judge, how often it flags a leak.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import poisson
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quantext_graph.audit.text_channel import TextChannel, text_channel
from quantext_graph.core.arrays import Codes, Event, event_mask, grid
from quantext_graph.core.distribution import TableDistribution
from quantext_graph.core.matching import UNUSED, assign
from quantext_graph.core.own_words import own_words_caps
from quantext_graph.core.public_pool import public_joint
from quantext_graph.core.quantize import public_dependency_tree
from quantext_graph.core.rules import MechanismParameters, build_rule
from quantext_graph.core.selection import JointRule, select_joint
from quantext_graph.core.targets import quota_targets, released_count
from quantext_graph.steps.classifier import TextClassifier

COLUMNS = ("Target", "Stance", "Sentiment")
SUBJECT = "Legalization of Abortion"
POOL = 4_000
"""M: what is measured hangs on K/M and hardly on M."""

CASES = ((300, 0.1, (0.15, 0.45)), (1500, 0.5, (0.15, 0.35)))
"""n, nats, the two shares."""

_WORD = re.compile(r"[\w#@']+")

AS_THEY_ARE = ("public", "uncapped")
"""Writers who write nothing."""

MOST_ROWS = 6_000
"""Texts that the attacker learns words from."""


@dataclass(frozen=True)
class Tweets:
    """Texts, their true (N, m) codes, ψ, the secret, and where the program labelled them its `labels`
    and how sure it is of the secret's attribute (N,)."""

    texts: list[str]
    codes: Codes
    sizes: tuple[int, ...]
    event: Event
    labels: Codes | None = None
    sure: Any = None

    @classmethod
    def read(cls, data: Path) -> Tweets:
        with (data / "stance/tweet.csv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        names = [sorted({row[column] for row in rows}) for column in COLUMNS]
        codes = np.array(
            [[known.index(row[c]) for c, known in zip(COLUMNS, names, strict=True)] for row in rows]
        )
        event = {0: [names[0].index(SUBJECT)]}
        return cls([row["Tweet"] for row in rows], codes, tuple(map(len, names)), event)

    def of(self, rows: Any) -> Tweets:
        labels, sure = (None, None) if self.labels is None else (self.labels[rows], self.sure[rows])
        return Tweets([self.texts[i] for i in rows], self.codes[rows], self.sizes, self.event, labels, sure)

    def labelled_by(self, labeller: TextClassifier) -> Tweets:
        found = labeller.log_probabilities(self.texts)
        labels = np.stack([values.argmax(axis=1) for values in found], axis=1)
        return replace(self, labels=labels, sure=np.exp(found[0].max(axis=1)))

    @property
    def inside(self) -> Any:
        return event_mask(self.codes, self.event)


class Program:
    """The mechanism over a public set, and the writers. `wrong` is the share of labels that the holder has
    wrong in the secret's attribute, `least` how sure a label must be not to be in doubt."""

    def __init__(
        self,
        public: Tweets,
        n: int,
        nats: float,
        keep: float,
        wrong: float = 0.0,
        least: float = 0.0,
        *,
        filled: bool = False,
    ) -> None:
        self.public, self.wrong, self.least = public, wrong, least
        tree = public_dependency_tree(public.codes, public.sizes)
        joint = public_joint(public.codes, tree, public.sizes)
        assert isinstance(joint, TableDistribution)
        self.caps = own_words_caps(joint, n) if filled else np.full(len(joint.probabilities), n)
        self.parameters = MechanismParameters(
            spread=0.3, budget_nats=nats, pool_size=POOL, keep=keep, filled=filled
        )
        self.rule = build_rule(
            self.parameters,
            tree=tree,
            sizes=public.sizes,
            n=n,
            auxiliary=public.codes,
            secrets=[public.event],
            pool_seed=1,
        )
        assert isinstance(self.rule, JointRule)
        block = self.rule.pool.source.block(POOL, np.random.default_rng(1))
        self._table = block.probability(grid(public.sizes))  # made once, not by each release
        self._shown: dict[tuple[int, ...], list[int]] = {}
        for i, combination in enumerate(map(tuple, public.codes.tolist())):
            self._shown.setdefault(combination, []).append(i)

    def match(self, labels: Codes, rng: np.random.Generator, last: Any = None) -> tuple[Any, Codes]:
        """Records used, and their targets."""
        sizes, parameters = self.public.sizes, self.parameters
        cells = np.ravel_multi_index(tuple(labels.T), sizes)
        masses = np.bincount(cells, minlength=self._table.shape[1]) / len(labels)
        kept = select_joint(np.maximum(masses - self._table, 0).sum(axis=1), self.rule.selection_size)
        released = TableDistribution(sizes, self._table[int(rng.choice(kept[0]))])
        targets = quota_targets(released, released_count(len(labels), parameters.keep), rng=rng)
        rows = assign(labels, targets, last=last, rng=rng)
        used = np.flatnonzero(rows != UNUSED)
        return used, targets[rows[used]]

    def labelled(self, private: Tweets, rng: np.random.Generator) -> tuple[Codes, Any]:
        """The holder's labels, of which some of the first attribute are another category, and which of them
        are in doubt."""
        if private.labels is not None:
            return private.labels, private.sure < self.least
        labels = private.codes.copy()
        wrong = rng.random(len(labels)) < self.wrong
        labels[wrong, 0] = (labels[wrong, 0] + rng.integers(1, self.public.sizes[0], wrong.sum())) % (
            self.public.sizes[0]
        )
        return labels, np.zeros(len(labels), dtype=bool)

    def written(
        self, writer: str, texts: Sequence[str], labels: Codes, targets: Codes, rng: np.random.Generator
    ) -> list[str]:
        new = []
        for text, label, target in zip(texts, labels, targets, strict=True):
            shown = self._public(tuple(target.tolist()), rng)
            if writer == "own" and (label == target).all():
                new.append(text)
            elif writer == "clean":
                new.append(shown)
            else:
                kept = _half(text, rng)
                new.append(f"{self._neutral(kept) if writer == 'neutral' else kept} {_half(shown, rng)}")
        return new

    def _neutral(self, text: str) -> str:
        return " ".join(w for w in text.split() if not self._telling.intersection(_WORD.findall(w.lower())))

    @cached_property
    def _telling(self) -> set[str]:
        """Words that are twice as common in public texts of one category of the secret's attribute."""
        shown = [set(_WORD.findall(text.lower())) for text in self.public.texts]
        category = self.public.codes[:, 0]
        total = Counter(word for words in shown for word in words)
        telling: set[str] = set()
        for code in range(self.public.sizes[0]):
            inside = Counter(
                word for words, c in zip(shown, category, strict=True) for word in words if c == code
            )
            share = (category == code).mean()
            telling |= {w for w, c in inside.items() if c + 0.5 > 2 * share * (total[w] + 1)}
        return telling

    def as_they_are(
        self, texts: Sequence[str], labels: Codes, targets: Codes, rng: np.random.Generator
    ) -> tuple[list[str], Any]:
        """The texts of who writes nothing, and which of them are records in their own words."""
        combination = np.ravel_multi_index(tuple(targets.T), self.public.sizes)
        own = np.zeros(len(texts), dtype=bool)
        new = list(texts)
        for cell in np.unique(combination):
            places = rng.permutation(np.flatnonzero(combination == cell))
            stay = places[(labels[places] == targets[places]).all(axis=1)][: self.caps[cell]]
            own[stay] = True
            rest = places[~own[places]]
            rows = self._shown.get(tuple(targets[places[0]].tolist()), [])
            # Repeated where there are too few: who writes nothing and counts nothing must fill it somehow.
            drawn = rng.choice(rows, len(rest), replace=len(rest) > len(rows)) if len(rows) else []
            for place, row in zip(rest, drawn, strict=False):
                new[place] = self.public.texts[int(row)]
        return new, own

    def _public(self, target: tuple[int, ...], rng: np.random.Generator) -> str:
        rows = self._shown.get(target) or [
            i for i, combination in enumerate(self.public.codes.tolist()) if combination[0] == target[0]
        ]
        return self.public.texts[int(rng.choice(rows))]


def _half(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    kept = rng.random(len(words)) < 0.5
    return " ".join(word for word, keep in zip(words, kept, strict=True) if keep)


def private_set(tweets: Tweets, n: int, share: float, rng: np.random.Generator) -> Tweets:
    """n tweets of which `share` lie in the secret."""
    inside, outside = np.flatnonzero(tweets.inside), np.flatnonzero(~tweets.inside)
    count = round(share * n)
    rows = [rng.choice(inside, count, replace=False), rng.choice(outside, n - count, replace=False)]
    return tweets.of(rng.permutation(np.concatenate(rows)))


@dataclass(frozen=True)
class Release:
    """What an attacker sees: texts and targets. `inside`: whether each record was in the secret, in truth;
    `says`: whether its text says so to one who reads without a mistake; `doubt`: whether it shows that its
    label was in doubt; `changed`: the share of texts whose labels were changed. Of who writes nothing, `own`:
    how many private texts each combination has, and `most`: how many it may have."""

    texts: list[str]
    targets: Codes
    inside: Any
    says: Any
    doubt: Any
    changed: float
    side: int
    own: Any = None
    most: Any = None

    @property
    def others(self) -> float:
        """Share of texts that are not records in their own words."""
        return math.nan if self.own is None else 1 - float(self.own.sum()) / len(self.texts)


def releases(
    program: Program,
    tweets: Tweets,
    n: int,
    shares: tuple[float, float],
    writer: str,
    count: int,
    seed: int,
    words: bool = True,
    slips: float = 0.0,
) -> Iterator[Release]:
    """`count` releases of each share; without `words` no text is written. Of the texts that follow their
    target a share `slips` and says what its record was."""
    for side, share in enumerate(shares):
        for number in range(count):
            rng = np.random.default_rng([seed, side, number])
            private = private_set(tweets, n, share, rng)
            labels, doubt = program.labelled(private, rng)
            used, targets = program.match(labels, rng, doubt)
            chosen = private.of(used)
            changed = (labels[used] != targets).any(axis=1)
            share_changed = float(changed.mean())
            if writer in AS_THEY_ARE:
                texts, own = program.as_they_are(chosen.texts, labels[used], targets, rng)
                cells = np.ravel_multi_index(tuple(targets.T), tweets.sizes)
                counts, all_of = (np.bincount(c, minlength=len(program.caps)) for c in (cells[own], cells))
                inside = np.where(own, chosen.inside, event_mask(targets, tweets.event))
                most = np.minimum(all_of, program.caps)
                yield Release(texts, targets, inside, inside, own, share_changed, side, counts, most)
                continue
            texts = program.written(writer, chosen.texts, labels[used], targets, rng) if words else []
            told = rng.random(len(used)) < slips if writer != "own" else ~changed
            says = np.where(told, chosen.inside, event_mask(targets, tweets.event))
            yield Release(texts, targets, chosen.inside, says, doubt[used] & told, share_changed, side)


def counted(made: list[Release], tweets: Tweets, n: int, shares: tuple[float, float]) -> tuple[float, float]:
    """`attacked` for releases whose texts are as they were: by how many are inside in truth, and how much the
    numbers of private texts speak for one share and against the other."""
    cells = np.ravel_multi_index(tuple(tweets.codes.T), tweets.sizes)
    inside = event_mask(grid(tweets.sizes), tweets.event)
    held = np.bincount(cells, minlength=len(inside)) / len(cells)
    low, high = (
        n * held * np.where(inside, share / held[inside].sum(), (1 - share) / held[~inside].sum())
        for share in shares
    )

    def speaks(release: Release) -> float:
        """Log-odds for the high share: a combination below what it may have shows its whole private count."""
        short, asked = release.own < release.most, release.most > 0
        logs = [
            np.where(short, poisson.logpmf(release.own, mean), poisson.logsf(release.most - 1, mean))
            for mean in (low, high)
        ]
        return float(np.clip(np.nan_to_num(logs[1] - logs[0])[asked].sum(), -30, 30))

    side = np.array([release.side for release in made])
    counts, read = (
        np.array([np.bincount(r.targets[:, 0], weights=w(r), minlength=tweets.sizes[0]) for r in made])
        for w in (lambda r: None, lambda r: r.inside.astype(float))
    )
    seen = np.column_stack([counts, read, [speaks(release) for release in made]])
    return _right(seen, side), _right(counts, side)


def _right(columns: Any, side: Any) -> float:
    attacker = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return float((cross_val_predict(attacker, columns, side, cv=folds) == side).mean())


def attacked(made: list[Release], sizes: tuple[int, ...], reader: str = "words") -> tuple[float, float]:
    """Success at naming the share of releases that the attacker has not learned from: with texts, without."""
    hashed = HashingVectorizer(n_features=2**16, ngram_range=(1, 2), alternate_sign=False)
    X = [hashed.transform(release.texts) for release in made] if reader == "words" else []
    side = np.array([release.side for release in made])
    counts = np.array([np.bincount(r.targets[:, 0], minlength=sizes[0]) for r in made], dtype=float)
    right = np.zeros((2, len(made)))
    for fit, test in StratifiedKFold(10, shuffle=True, random_state=0).split(counts, side):
        scores = _scores(made, X, fit, sizes) if reader == "words" else [_seen(r, reader) for r in made]
        sums = np.array(
            [
                np.bincount(r.targets[:, 0], weights=score, minlength=sizes[0])
                for r, score in zip(made, scores, strict=True)
            ]
        )
        for way, columns in enumerate((np.hstack([counts, sums]), counts)):
            attacker = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500))
            attacker.fit(columns[fit], side[fit])
            right[way, test] = attacker.predict(columns[test]) == side[test]
    return float(right[0].mean()), float(right[1].mean())


def _seen(release: Release, reader: str) -> Any:
    """What a reader who makes no mistake sees in each text."""
    seen = release.says if reader == "perfect" else release.doubt
    return np.asarray(seen, dtype=float)


def _scores(made: list[Release], X: list[Any], fit: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Log-odds of each text's record given its words and its target, learned on the releases `fit`, less what
    the target alone says. Half of `fit` is scored by the other half: nothing is scored by what it taught."""
    from scipy.sparse import csr_matrix, hstack, vstack

    def rows(i: int) -> Any:
        return hstack([X[i], csr_matrix(np.eye(sizes[0])[made[i].targets[:, 0]])]).tocsr()

    def learned(numbers: Any) -> Any:
        most = max(1, MOST_ROWS // len(made[0].texts))
        numbers = numbers[:most]
        inside = np.concatenate([made[i].inside for i in numbers])
        return LogisticRegression(C=3.0, solver="liblinear").fit(vstack([rows(i) for i in numbers]), inside)

    def score(model: Any, i: int) -> Any:
        words = model.coef_[0, : X[i].shape[1]]
        return np.clip(X[i] @ words, -4, 4)

    order = np.random.default_rng(0).permutation(fit)
    left, right = order[::2], order[1::2]
    by_left, by_right = learned(left), learned(right)
    of_left = set(left.tolist())
    return [score(by_right if i in of_left else by_left, i) for i in range(len(made))]


def measure(tweets: Tweets, asked: argparse.Namespace) -> None:
    print(
        "n | nats | shares | keep | writer | labels wrong | in doubt | success | share alone | allowed | "
        "s.e. | changed | not own words | at most"
    )
    order = np.random.default_rng(asked.seed).permutation(len(tweets.texts))
    private, public = tweets.of(order[:3000]), tweets.of(order[3000:])
    doubts = {0.0: 0.0}
    if asked.labeller:
        labeller = TextClassifier.fit(public.texts, public.codes, public.sizes)
        private = private.labelled_by(labeller)
        doubts = {share: float(np.quantile(labeller.confidence[:, 0], share)) for share in asked.doubt}
    for n, nats, usual in CASES[: 1 if asked.small else None]:
        shares = tuple(asked.shares or usual)
        for keep, wrong, (doubt, least) in itertools.product(asked.keep, asked.wrong, doubts.items()):
            for writer in asked.writers:
                program = Program(public, n, nats, keep, wrong, least, filled=writer == "public")
                made = list(
                    releases(
                        program,
                        private,
                        n,
                        shares,
                        writer,
                        asked.releases,
                        asked.seed,
                        words=asked.reader == "words",
                        slips=asked.slips,
                    )
                )
                success, alone = (
                    counted(made, private, n, shares)
                    if writer in AS_THEY_ARE
                    else attacked(made, tweets.sizes, asked.reader)
                )
                allowed = min(1.0, 0.5 * math.exp(nats))
                error = math.sqrt(0.25 / len(made))
                changed = np.mean([r.changed for r in made])
                others = [release.others for release in made]
                said = f"{wrong:.0%}" if private.labels is None else "labeller"
                figures = (success, alone, allowed, error, changed, np.mean(others), max(others))
                print(
                    f"{n} | {nats} | {shares} | {keep} | {writer} | {said} | {doubt:.0%}",
                    *(f"{figure:.2f}" for figure in figures),
                    sep=" | ",
                    flush=True,
                )


def audits(tweets: Tweets, asked: argparse.Namespace) -> None:
    print("n | nats | keep | writer | flagged | judged | mean success | allowed | mean nats | mean power")
    for n, nats, shares in CASES[: 1 if asked.small else None]:
        for keep in asked.keep:
            for writer in asked.writers:
                runs = [audited(tweets, n, nats, keep, shares, writer, run) for run in range(asked.runs)]
                found = [channel for channel in runs if channel is not None]
                flagged = sum(channel.leaks for channel in found)
                means = [
                    f"{np.mean([getattr(channel, name) for channel in found] or [math.nan]):.2f}"
                    for name in ("success", "allowed", "nats", "power_nats")
                ]
                case = f"{n} | {nats} | {keep} | {writer} | {flagged} | {len(found)} of {len(runs)}"
                print(case, *means, sep=" | ", flush=True)


def audited(
    tweets: Tweets, n: int, nats: float, keep: float, shares: tuple[float, float], writer: str, run: int
) -> TextChannel | None:
    """What the audit finds of one release, of a private share between the two."""
    rng = np.random.default_rng([7, run])
    order = rng.permutation(len(tweets.texts))
    pool, public = tweets.of(order[:3000]), tweets.of(order[3000:])
    program = Program(public, n, nats, keep)
    private = private_set(pool, n, float(np.mean(shares)), rng)
    used, targets = program.match(private.codes, rng)
    texts = program.written(writer, [private.texts[i] for i in used], private.codes[used], targets, rng)

    def deal(share: float, rng: np.random.Generator) -> tuple[Codes, Codes]:
        inside, outside = np.flatnonzero(private.inside), np.flatnonzero(~private.inside)
        count = round(share * n)
        labels = private.codes[np.concatenate([rng.choice(inside, count), rng.choice(outside, n - count)])]
        chosen, aimed = program.match(labels, rng)
        return labels[chosen], aimed

    return text_channel(
        texts,
        private.codes[used],
        targets,
        tweets.event,
        (public.texts, public.codes),
        deal,
        secret=SUBJECT,
        bound_nats=nats,
        shares=shares,
        rng=rng,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=float, nargs="+", default=[1.0, 0.6])
    parser.add_argument("--writers", nargs="+", default=["own", "notes", "clean"])
    parser.add_argument("--wrong", type=float, nargs="+", default=[0.0])
    parser.add_argument("--labeller", action="store_true", help="label by the program's own classifier")
    parser.add_argument("--doubt", type=float, nargs="+", default=[0.0])
    parser.add_argument("--reader", choices=("words", "perfect", "doubt"), default="words")
    parser.add_argument("--slips", type=float, default=0.0, help="texts that miss their target, for readers")
    parser.add_argument("--shares", type=float, nargs=2, help="instead of the two shares of each case")
    parser.add_argument("--releases", type=int, default=64)
    parser.add_argument("--audit", action="store_true", help="look at single releases, as the audit does")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--small", action="store_true", help="the first case alone")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    (audits if asked.audit else measure)(Tweets.read(asked.data), asked)


if __name__ == "__main__":
    main()
