"""LangChain's standard tests for the tools that make a release, in a folder with a run at the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from releases import obedient, small_release

from quantext_graph.apps.agent_tools.tools import release_tools
from quantext_graph.release.run import Run

WORK = {"workspace": "release.work"}
EXAMPLES: dict[str, dict[str, Any]] = {
    "look_at_file": {"path": "private.csv"},
    "write_spec": {
        "path": "written.yaml",
        "data": "private.csv",
        "auxiliary": "public.csv",
        "attributes": [{"name": "gender"}, {"name": "diagnosis"}],
        "secrets": [{"where": {"diagnosis": ["diabetes"]}}],
        "overwrite": True,
    },
    "check_release": {},
    "tradeoff": {"nats": 1.0},
    "preview_release": {"records": 1},
    "start_release": WORK,
    "release_status": WORK,
    "cancel_release": WORK,
    "explain_audit": WORK,
    "publish_release": WORK,
    "list_releases": {},
    "private_share": {},
}


@pytest.fixture(scope="module")
def at_gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("gate")
    with obedient() as models, pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTEXT_LEDGER", str(folder / "ledger.sqlite"))
        with Run.start(small_release(folder, models.url, n=12)) as run:
            run.go()
        yield folder


def test_every_tool_is_tested() -> None:
    assert [tool.name for tool in release_tools()] == list(EXAMPLES)


class InFolder:
    """One of the tools, over the folder."""

    name: str

    @pytest.fixture(autouse=True)
    def _tools(self, at_gate: Path) -> None:
        self._tool = next(tool for tool in release_tools(at_gate) if tool.name == self.name)

    @property
    def tool_constructor(self) -> BaseTool:
        return self._tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return EXAMPLES[self.name]


for _name in EXAMPLES:
    for _base in (ToolsUnitTests, ToolsIntegrationTests):
        _made = type(f"Test_{_name}_{_base.__name__}", (InFolder, _base), {"name": _name})
        globals()[_made.__name__] = _made
