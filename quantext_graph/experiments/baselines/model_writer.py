"""Puts targets into words by a language model: the project's own steps, each result kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langsmith import tracing_context

from quantext_graph.core.arrays import Codes
from quantext_graph.experiments.baselines.kept import Kept
from quantext_graph.experiments.baselines.method import Written
from quantext_graph.graph.record_graph import RecordState, build_record_graph
from quantext_graph.graph.workers import run_pass
from quantext_graph.models.chat_model import Outcome
from quantext_graph.prompts import load, marked
from quantext_graph.spec.models import Limits
from quantext_graph.steps.context import Kit
from quantext_graph.steps.extract import Extraction
from quantext_graph.steps.rewrite import fallback, last_resort
from quantext_graph.steps.texts import Written as WrittenText
from quantext_graph.steps.wording import describe

KEPT_PART = 3
"""A variation keeps the first of so many parts of a text."""

_VARIATION_TEMPERATURE = 1.0
_TOKENS_A_WORD = 2.2


class ModelWriter:
    """A `Writer` over the kit of a run. `kit` is made when the first text is asked for that is not kept."""

    def __init__(
        self, kit: Callable[[], Kit], kept: Kept, limits: Limits, progress: Callable[[str, int, int], None]
    ) -> None:
        self._kit, self._kept, self._limits, self._progress = kit, kept, limits, progress

    def compose(self, targets: Codes, *, step: str) -> Written:
        """From the target alone, with an opening for it: Aug-PE's random call."""

        def write(kit: Kit, i: int) -> str:
            target = tuple(targets[i].tolist())
            return fallback(kit, Extraction(), target).text or last_resort(kit, target)

        return self._all(step, len(targets), write)

    def rewrite(self, texts: Sequence[str], labels: Codes, targets: Codes, *, step: str) -> Written:
        """Extract, rewrite, verify, as a release does (Alg. 1 lines 15-18)."""
        graph: Any = build_record_graph()

        def write(kit: Kit, i: int) -> str:
            given: RecordState = {
                "record": i,
                "text": texts[i],
                "labels": tuple(labels[i].tolist()),
                "target": tuple(targets[i].tolist()),
            }
            return str(graph.invoke(given, context=kit)["result"].text)

        return self._all(step, len(texts), write)

    def vary(self, texts: Sequence[str], targets: Codes, *, step: str) -> Written:
        """Aug-PE's variation call; where the model writes nothing that can be used, the text stays."""

        def write(kit: Kit, i: int) -> str:
            told = texts[i].split()
            words = len(told)
            reply = kit.chat.write(
                _variation(kit, texts[i], tuple(targets[i].tolist()), words),
                WrittenText,
                # A small model stays with the subject where the beginning is kept, as Aug-PE's
                # filling of blanks keeps part of a text.
                opening=" ".join(told[: -(-words // KEPT_PART)]),
                temperature=_VARIATION_TEMPERATURE,
                max_tokens=int(_TOKENS_A_WORD * words) + 40,
                stop=("\n", "</text>") if "\n" not in texts[i] else ("</text>",),
            )
            return reply.value.text if reply.outcome is Outcome.OK else texts[i]

        return self._all(step, len(texts), write)

    def _all(self, step: str, count: int, write: Callable[[Kit, int], str]) -> Written:
        new = [i for i in range(count) if f"{step} {i}" not in self._kept]
        done = count - len(new)
        if new:
            kit = self._kit()

            def work(i: int) -> tuple[int, str]:
                with tracing_context(enabled=False):
                    return i, write(kit, i)

            def keep(result: tuple[int, str]) -> None:
                nonlocal done
                self._kept.put(f"{step} {result[0]}", result[1])
                done += 1
                self._progress(step, done, count)

            run_pass(new, work, keep, workers=self._limits.concurrency, stop=lambda: False)
        return Written([self._kept.get(f"{step} {i}") for i in range(count)])


def _variation(kit: Kit, text: str, target: tuple[int, ...], words: int) -> list[BaseMessage]:
    system = load("vary").say("system", target=describe(kit.spec, target), words=str(words))
    return [SystemMessage(system), HumanMessage(marked(text))]
