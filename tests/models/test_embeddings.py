"""Text embeddings: those that run in this process, and what is said where one cannot be had."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quantext_graph.models.chat_model import ModelError, RemoteModelRefused, text_embedding
from quantext_graph.models.downloads import pull
from quantext_graph.spec.models import Models


def test_wordllama_embeds_without_a_download() -> None:
    texts = ["I adore this candidate", "I love that politician", "The train to Leeds is late"]
    vectors = np.array(text_embedding("wordllama", Models()).embed_documents(texts))
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > likeness[0, 2]
    assert np.diag(likeness) == pytest.approx(1, abs=1e-3)
    assert text_embedding("wordllama", Models()).embed_documents([]) == []


HOST = """
import logging
root = logging.getLogger()
before = root.level, list(root.handlers)
from quantext_graph.models.chat_model import text_embedding
from quantext_graph.spec.models import Models
text_embedding("wordllama", Models()).embed_documents(["one"])
from quantext_graph.experiments.baselines.accounting import gaussian_sigma
gaussian_sigma(1.0, 1, 1e-5)
import quantext_graph.apps.cli.main
assert (root.level, root.handlers) == before, (root.level, root.handlers)
"""


def test_no_package_that_we_load_configures_the_log_of_the_host() -> None:
    ran = subprocess.run([sys.executable, "-c", HOST], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


# Of "I adore this candidate" by all-MiniLM-L6-v2 in single precision (sentence-transformers 6.2).
ADORE = [-0.0222, -0.0084, 0.0286, -0.0026, 0.0659, 0.0091, 0.0933, 0.0105]


def test_minilm_gives_the_vectors_of_its_authors() -> None:
    pull("minilm")
    minilm = text_embedding("minilm", Models())
    long = "I hate it. " * 400  # cut at 256 tokens
    vectors = np.array(minilm.embed_documents([long, "I adore this candidate", "", "The train is late"]))
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[1, :8] == pytest.approx(ADORE, abs=0.01)  # weights of 8 bits
    alone = minilm.embed_query("I adore this candidate")
    assert vectors[1] == pytest.approx(alone, abs=1e-5)  # padding counts for nothing
    assert minilm.embed_documents([]) == []


def test_minilm_that_was_not_pulled_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUANTEXT_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="quantext model pull minilm"):
        text_embedding("minilm", Models())


@pytest.mark.parametrize("reference", ["openai:text-embedding-3-small", "nobody:x"])
def test_remote_embeddings_are_refused(reference: str) -> None:
    with pytest.raises(RemoteModelRefused, match="allow_remote"):
        text_embedding(reference, Models())


def test_embeddings_of_an_unknown_provider_are_one_line() -> None:
    with pytest.raises(ModelError, match="wordllama"):
        text_embedding("nobody:x", Models(allow_remote=True))
