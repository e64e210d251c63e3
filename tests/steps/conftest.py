"""A kit over a scripted model."""

from collections.abc import Callable
from typing import Any

import pytest
from steps_fakes import SPEC, Script, auxiliary

from quantext_graph.spec.models import Spec
from quantext_graph.steps.context import Kit, prepare


@pytest.fixture
def spec() -> Spec:
    return Spec.model_validate(SPEC)


@pytest.fixture
def make_kit(spec: Spec) -> Callable[..., Kit]:
    def make(script: Script, rows: int = 0, **options: Any) -> Kit:
        return prepare(options.pop("spec", spec), auxiliary(rows), script.chat, script.chat, **options)

    return make
