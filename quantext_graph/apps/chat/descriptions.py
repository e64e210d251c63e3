"""What a small model is asked in the guided chat: to describe an attribute, by JSON schema."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field, create_model

from quantext_graph.models.chat_model import ChatModel
from quantext_graph.prompts import load


class CategoryWords(BaseModel):
    name: str = Field(min_length=1, max_length=60)
    description: str = Field(max_length=200)
    word: str = Field(max_length=40)


class AttributeWords(BaseModel):
    description: str = Field(max_length=160)
    categories: list[CategoryWords]


def propose(chat: ChatModel, attribute: dict[str, Any], texts: str) -> dict[str, Any] | None:
    """The attribute with a description of it and of each category; with two to five categories where it
    has none (`proposed`). None where the model's answer cannot be used.

    Args:
        texts: what the texts are, in the person's words.

    Raises:
        ModelError, ModelUnavailable: as `ChatModel.structured`.
    """
    names = [category["name"] for category in attribute["categories"]]
    prompt, words = load("guide"), {"texts": texts, "attribute": attribute["name"]}
    words |= {"categories": ", ".join(names)} if names else {}
    asked = prompt.say("known" if names else "unknown", **words)
    messages = [SystemMessage(prompt.say("system")), HumanMessage(asked)]
    reply = chat.structured(messages, words_for(len(names)), temperature=0.3, max_tokens=700)
    if not reply.values:
        return None
    described = [category.model_dump() for category in reply.value.categories]
    for name, category in zip(names, described, strict=False):
        category["name"] = name  # the files say how it is written
    return {
        **attribute,
        "description": reply.value.description,
        "categories": described,
        "proposed": not names,
    }


@cache
def words_for(count: int) -> type[AttributeWords]:
    """What is asked for: as many categories as are known, or two to five."""
    number = Field(min_length=count or 2, max_length=count or 5)
    categories: Any = (list[CategoryWords], number)
    return create_model("AttributeWords", __base__=AttributeWords, categories=categories)
