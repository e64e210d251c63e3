"""Fixtures that several test modules use."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") and find_spec("torch") is None:
        pytest.skip("needs PyTorch: pip install 'quantext-graph[dpft]'")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, which are not part of the project; skips where it is absent."""
    root = os.environ.get("QUANTEXT_SHARED") or Path(__file__).parents[2] / "shared"
    folder = Path(root) / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data sets at {folder}; QUANTEXT_SHARED names their folder")
    return folder


@pytest.fixture(autouse=True)
def own_ledger(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests never write to the user's own ledger."""
    monkeypatch.setenv("QUANTEXT_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite"))
