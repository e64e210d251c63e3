"""The API reference, from the docstrings: `python docs/api.py [FOLDER]` writes HTML pages to build/api.

Every module of the package is a page. One that needs an extra which is not installed is named and left out.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pdoc

import quantext_graph


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/api")
    pdoc.render.configure(docformat="google")
    names = ["quantext_graph", *sorted(_modules())]
    for name in quantext_graph.__all__:  # loaded when used; here they are
        getattr(quantext_graph, name)
    warnings.filterwarnings(
        "ignore", message="The module specification"
    )  # packages bring their modules along
    pdoc.pdoc(*names, output_directory=folder)
    print(f"{folder}: {len(names)} modules")


def _modules() -> Iterator[str]:
    for package in ("quantext_graph", "quantext_graph.prompts", "quantext_graph.tools"):
        path = import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            if found.name.endswith("__main__"):
                continue
            try:
                import_module(found.name)
            except ModuleNotFoundError as error:
                print(f"{found.name}: left out, {error.name} is not installed", file=sys.stderr)
            else:
                yield found.name


if __name__ == "__main__":
    main()
