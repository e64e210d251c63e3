"""The utility metrics of a release as a tool: what its texts are still good for."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool
from pydantic import BaseModel, Field

from quantext_graph.audit.metrics import Utility, compare
from quantext_graph.audit.utility import Reference, category_tv
from quantext_graph.models.chat_model import text_embedding
from quantext_graph.spec.models import Models


class UtilityArguments(BaseModel):
    """Arguments of the utility tool; what is of the private corpus is private."""

    private_texts: list[str] = Field(min_length=1, description="texts of the private corpus")
    released_texts: list[str] = Field(
        min_length=1, description="texts of the release, in any number and order"
    )
    private_labels: dict[str, list[str]] = Field(
        {}, description="for each attribute the categories of the private texts"
    )
    released_labels: dict[str, list[str]] = Field(
        {}, description="for each attribute the categories that the released texts say"
    )


def utility_of(arguments: UtilityArguments, embedding: str = "wordllama") -> Utility:
    """The metrics of a release, on embeddings that stay on this machine."""
    embedder = text_embedding(embedding, Models())
    shared = [name for name in arguments.private_labels if name in arguments.released_labels]
    tv = {
        name: category_tv(arguments.private_labels[name], arguments.released_labels[name]) for name in shared
    }
    private, released = (
        embedder.embed_documents(texts) for texts in (arguments.private_texts, arguments.released_texts)
    )
    reference = Reference(arguments.private_texts, private)
    return compare(reference, arguments.released_texts, released, attribute_tv=tv)


@tool("utility", args_schema=UtilityArguments, response_format="content_and_artifact")
def utility(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure what a release is still good for: KNN precision and recall, Fréchet distance, attribute
    match, their aggregate. The content is public: the sizes. The artifact, the metrics, is private,
    since it tells of the private corpus."""
    given = UtilityArguments(**arguments)
    sizes = {"n_private": len(given.private_texts), "n_released": len(given.released_texts)}
    try:
        return sizes, utility_of(given).to_json()
    except ValueError as error:
        return {"error": str(error)}, {}
