"""What `check` says where texts go out as they are: to everybody, and to the holder alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from quantext_graph.core.arrays import Codes
from quantext_graph.data.records import Records
from quantext_graph.mechanism.own_words import Outlook, caps, short_combinations
from quantext_graph.spec.models import Spec


def own_words_lines(spec: Spec, texts: Outlook) -> list[str]:
    """What a person should know before texts go out as they are; all of it public."""
    filled = "public texts" if spec.rewriting.shortage == "public" else "written from notes"
    said = [
        "texts: records that have their target go out as they are. Persons in them are not protected, only "
        f"the proportion is. The others are {filled}: {texts.others:.0%} of the release on average, up to "
        f"{texts.others_at_most:.0%}, a number that public shares fix"
    ]
    for title, (low, high) in texts.hidden.items():
        least, most = texts.reached[title]
        said.append(
            f"{title}: hidden while between {low:.0%} and {high:.0%} of the private texts have it; a share "
            f"beyond shows in the number of own words. Released shares lie between {least:.0%} and {most:.0%}"
        )
    return said


def own_words_warnings(spec: Spec, source: Records, auxiliary: Codes) -> Iterator[str]:
    """What speaks against it. The second warning is private: it counts records.

    Args:
        auxiliary: public codes (N, m).
    """
    if error := spec.rewriting.label_error:
        yield (
            f"label_error {error:.1%}: a text with a wrong label goes out as it is and says its true one, "
            "which the bound does not count; at 1 % an attacker who reads better than the labeller was right "
            "60 % of the time where 55 % are allowed (300 posts, 0.1 nats)"
        )
    if len(spec.label_columns) < len(spec.attributes):
        return
    labels = np.array([[record.labels[i] for i in range(len(spec.attributes))] for record in source])
    if short := short_combinations(spec, labels, caps(spec, len(labels), auxiliary)):
        yield (
            f"{short} combinations of categories have fewer private records than the public set makes expect "
            "(a private figure): whoever knows the public texts will see how many of a release are private "
            "there; leave a category out that the private set hardly has, or name a public set more like it"
        )
