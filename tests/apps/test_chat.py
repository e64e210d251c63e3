"""A whole conversation with a scripted model behind a real client: what it does, and what it is sent."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers
from people import ScriptedPerson
from releases import obedient, small_release, write_data
from servers import Act, OpenAIServer

from quantext_graph.apps.agent_tools.tools import ReleaseTools
from quantext_graph.apps.chat.session import CALLS_IN_A_TURN, Talk, hold
from quantext_graph.data.records import open_table
from quantext_graph.release import background
from quantext_graph.spec.models import ModelSpec
from quantext_graph.workspace.folder import Workspace

_numbers = count()


def calls(name: str, *each: dict[str, Any], **arguments: Any) -> Act:
    """The model calls a tool, or calls it with `each` of several arguments at once."""
    functions = [{"name": name, "arguments": json.dumps(given)} for given in each or (arguments,)]
    made = [{"id": f"call_{next(_numbers)}", "type": "function", "function": each} for each in functions]
    return Act(finish="tool_calls", message={"content": None, "tool_calls": made})


class Crash(BaseException):
    """The process ends here."""


class Chat:
    """Chats over one folder with a model that other machines could be: its address is no loopback to us."""

    def __init__(self, folder: Path, model: OpenAIServer) -> None:
        self.folder, self.model = folder, model
        self.talk = Talk(ModelSpec(model="openai:tiny", base_url=model.url), folder, guided=False)

    def process(self, *answers: tuple[str, Any], crash_after: str | None = None) -> ScriptedPerson:
        """One process: a conversation until the person leaves, or a crash when they see the first line after
        a question."""
        person = ScriptedPerson(*answers)
        if crash_after is not None:
            shown = person.show

            def show(lines: Sequence[str]) -> None:
                shown(lines)
                if person.asked and crash_after in person.asked[-1]:
                    raise Crash

            person.show = show  # type: ignore[method-assign]
            with pytest.raises(Crash):
                hold(self.talk, person)
        else:
            hold(self.talk, person)
        assert person.answers == []
        return person

    def results(self, name: str) -> list[dict[str, Any]]:
        """What the model was told by a tool, oldest first."""
        messages = self.model.asked[-1]["messages"]
        names = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()}
        return [
            json.loads(m["content"])
            for m in messages
            if m["role"] == "tool" and names[m["tool_call_id"]] == name
        ]


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setenv("QUANTEXT_CHATS", str(tmp_path / "private" / "chats.sqlite"))
    monkeypatch.setattr("quantext_graph.mechanism.tradeoff.POOL", 2000)
    with OpenAIServer() as model, OpenAIServer() as tracer:
        port = str(model.port)
        monkeypatch.setattr("quantext_graph.models.resolve.is_loopback", lambda url: port not in url)
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_API_KEY", "key")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", tracer.url)
        yield Chat(tmp_path, model)
        wait_for_all_tracers()
        assert tracer.raw == []  # nothing of a chat is traced, whatever the environment asks for


def proposal(rewriter: str, **more: Any) -> dict[str, Any]:
    return {
        "data": "private.csv",
        "auxiliary": "public.csv",
        "attributes": [{"name": "gender"}, {"name": "diagnosis", "description": "what they live with"}],
        "secrets": [{"name": "share of diabetes", "where": {"diagnosis": ["diabetes"]}}],
        "model": "openai:tiny",
        "base_url": rewriter,
        **more,
    }


def at_the_gate(folder: Path, then: str) -> Any:
    """What the person says once the run stands at the gate."""

    def wait() -> str:
        found = background.wait(folder, 300)
        assert found.state == "gate", (found, found.reason)
        return then

    return wait


def shingles(text: str, width: int = 4) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + width]) for i in range(len(words) - width + 1)}


def renderings(hits: int, n: int) -> set[str]:
    share = hits / n
    return {
        str(share),
        f"{share:.3f}",
        f"{share:.2f}",
        f"{share:.1%}",
        f"{share:.0%}",
        f"{100 * share:.1f} %",
        f"{hits} of {n}",
        f"{hits}/{n}",
        f'"diabetes": {hits}',
    }


def test_from_file_to_published_folder(chat: Chat) -> None:
    """With a preview, a forbidden question, a crash, a refusal at the gate and a second try. The model's
    server has recorded every byte: no text and no share of the private file is among them."""
    mark, n = "qzx", 37
    write_data(chat.folder, n, mark=mark)
    work = chat.folder / "release.work"
    with obedient() as rewriter:
        chat.model.acts.extend(
            [
                calls("look_at_file", path="private.csv"),
                calls("look_at_file", path="public.csv"),
                Act("What must stay useful?"),
                calls("write_spec", **proposal(rewriter.url)),
                calls("check_release"),
                calls("tradeoff", nats=1),
                calls("preview_release", records=2),
                Act("With 1 nat it grows at most 2.72 times. Is the preview right?"),
                calls("private_share"),
                Act("I may not know."),
                calls("start_release"),
            ]
        )
        first = chat.process(
            ("", "Release private.csv. Hide the share of diabetes; public.csv is public."),
            ("", "The gender too. And what would 1 nat cost me?"),
            ("", "Yes. What is the true share?"),
            ("", "Start it."),
            ("Start it?", "y"),
            crash_after="Start it?",
        )
        assert chat.results("private_share")[0]["refused"].startswith("refused: openai:tiny is not on this")
        assert len(chat.results("tradeoff")[0]["points"]) >= 6

        chat.model.acts.extend(
            [
                Act("It runs."),
                calls("release_status", workspace="release.work"),
                Act("It is done."),
                calls("explain_audit", workspace="release.work"),
                calls("publish_release", workspace="release.work"),
                Act("You said no."),
                calls("start_release", retry_failed=True),
                Act("It runs again."),
            ]
        )
        second = chat.process(
            ("", at_the_gate(work, "How far is it?")),
            ("", "Publish it."),
            ("Publish it?", "perhaps"),
            ("Publish it?", "n"),
            ("Why not?", "write those that missed again"),
            ("", "Well?"),
            ("Start it?", "y"),
            ("", None),
        )
        assert not (chat.folder / "release").exists()
        assert "The attack that gained most" in second.saw

        chat.model.acts.extend([calls("publish_release", workspace="release.work"), Act("It is out.")])
        last = chat.process(("", at_the_gate(work, "Now publish.")), ("Publish it?", "y"), ("", None))
        assert last.said[-1] == "It is out."
        assert len(rewriter.asked) > n

    with (chat.folder / "release" / "data.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == n
    assert chat.results("start_release")[0]["going_on"] is True  # the crash was after it had begun
    sent = b"\n".join(chat.model.raw).decode().replace("\\", "")
    assert "write those that missed again" in sent
    assert_public(chat, work, sent, mark)
    seen = "\n".join([first.saw, second.saw, last.saw])
    assert mark in seen
    assert "private figure" in seen


def assert_public(chat: Chat, work: Path, sent: str, mark: str) -> None:
    opened = Workspace.open(work)
    texts, released = list(opened.store.texts()), [pair.released for pair in opened.store.pairs()]
    diabetes = opened.spec.attribute("diagnosis").code("diabetes")
    hits, n = int((opened.store.labels()[:, 1] == diabetes).sum()), opened.store.n
    opened.close()
    assert texts == [row.values[1] for row in open_table(chat.folder / "private.csv")]
    assert mark not in sent
    private = {part for text in [*texts, *released] for part in shingles(text)}
    assert len(private) > n
    assert sorted(part for part in private if part in sent) == []
    assert sorted(words for words in renderings(hits, n) if words in sent) == []
    for word in ("private figure", '"verified"', "unverified", "before  (", "points from the truth"):
        assert word not in sent
    kept = (chat.folder / "private" / "chats.sqlite").read_bytes()
    assert mark.encode() not in kept
    assert oct((chat.folder / "private" / "chats.sqlite").stat().st_mode)[-3:] == "600"


def test_the_search_for_leaks_finds_one(chat: Chat, tmp_path: Path) -> None:
    """The check above is none that cannot fail: a person who types a text has it sent."""
    write_data(chat.folder, 5, mark="qzx")
    text = next(iter(open_table(chat.folder / "private.csv"))).values[1] or ""
    chat.model.acts.append(Act("I see."))
    chat.process(("", text), ("", None))
    sent = b"\n".join(chat.model.raw).decode()
    assert all(part in sent for part in shingles(text))


def test_a_spec_that_stands_is_replaced_only_when_the_person_agrees(chat: Chat) -> None:
    write_data(chat.folder, 12)
    spec = chat.folder / "spec.yaml"
    spec.write_text("mine: yes\n", encoding="utf-8")
    chat.model.acts.extend(
        [calls("write_spec", **proposal("http://127.0.0.1:9/v1"), overwrite=True), Act("Kept.")]
    )
    person = chat.process(("", "Write it."), ("Replace the spec", "n"), ("Why not?", ""), ("", None))
    assert "share of diabetes" in person.saw
    assert spec.read_text(encoding="utf-8") == "mine: yes\n"
    chat.model.acts.extend(
        [calls("write_spec", **proposal("http://127.0.0.1:9/v1"), overwrite=True), Act("New.")]
    )
    chat.process(("", "Write it after all."), ("Replace the spec", "y"), ("", None))
    assert "share of diabetes" in spec.read_text(encoding="utf-8")


def test_several_releases_at_once_each_with_its_own_approval(chat: Chat) -> None:
    names = ("first", "second", "third")
    with obedient(seconds=0.2) as rewriter:
        for name in names:
            (chat.folder / name).mkdir()
            small_release(chat.folder / name, rewriter.url, n=30)
        chat.model.acts.extend(
            [
                calls("start_release", *({"spec": f"{name}/spec.yaml"} for name in names)),
                Act("Two run."),
                calls("list_releases"),
                calls("cancel_release", *({"workspace": f"{name}/release.work"} for name in names[::2])),
                Act("Both are stopped."),
            ]
        )
        person = chat.process(
            ("", "Start all three."),
            ("Start it?", "y"),
            ("Start it?", "n"),
            ("Why not?", "not that one"),
            ("Start it?", "y"),
            ("", "Stop them."),
            ("", None),
        )
    assert person.said[-1] == "Both are stopped."
    (listed,) = chat.results("list_releases")
    assert [(Path(run["workspace"]).parent.name, run["state"]) for run in listed["releases"]] == [
        ("first", "running"),
        ("third", "running"),
    ]
    assert [run["state"] for run in chat.results("cancel_release")] == ["stopped", "stopped"]
    told = [m["content"] for m in chat.model.asked[1]["messages"] if m["role"] == "tool"]
    assert sum("not that one" in words for words in told) == 1


def test_a_model_that_fails_is_one_line_and_is_asked_again(chat: Chat) -> None:
    chat.model.acts.extend([Act(status=401, error={"error": {"message": "no"}}), Act("Here I am.")])
    person = chat.process(("", "Hello"), ("", ""), ("", None))
    assert any("no access (401)" in line for line in person.shown)
    assert person.said[-1] == "Here I am."
    assert [m["content"] for m in chat.model.asked[-1]["messages"] if m["role"] == "user"] == ["Hello"]


def test_a_model_that_only_calls_tools_is_stopped(chat: Chat) -> None:
    chat.model.then = lambda _: calls("list_releases")
    person = chat.process(("", "Hello?"), ("", None))
    assert len(chat.model.asked) == CALLS_IN_A_TURN + 1
    assert "limit" in person.said[-1]
    chat.model.then = Act("Sorry.")
    assert chat.process(("", "Well?"), ("", None)).said[-1] == "Sorry."


def test_a_person_may_stop_a_tool_and_go_on_talking(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_at_file(self: ReleaseTools, path: str) -> None:
        """Look."""
        raise KeyboardInterrupt

    monkeypatch.setattr(ReleaseTools, "look_at_file", look_at_file)
    chat.model.acts.extend([calls("look_at_file", path="private.csv"), Act("What now?")])
    person = chat.process(("", "Look."), ("", "Leave it."), ("", None))
    assert "stopped" in person.saw
    assert person.said[-1] == "What now?"
    roles = [(m["role"], m["content"]) for m in chat.model.asked[-1]["messages"][1:]]
    assert roles[2:] == [("tool", "stopped by the person"), ("user", "Leave it.")]


def test_the_command_talks_on_standard_input_and_output(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from quantext_graph.apps.cli.main import main

    write_data(chat.folder, 8)
    monkeypatch.chdir(chat.folder)
    monkeypatch.setattr("sys.stdin", io.StringIO("Look at public.csv\n"))
    monkeypatch.setattr(
        "sys.argv", ["quantext", "chat", "--model", "openai:tiny", "--base-url", chat.model.url]
    )
    chat.model.acts.extend([calls("look_at_file", path="public.csv"), Act("Nine [letters].")])
    main()
    said = capsys.readouterr().out
    assert "what you type goes to openai:tiny" in said
    assert "│ gender: female" in said
    assert "Nine [letters]." in said
    assert chat.results("look_at_file")[0]["rows"] == 23


def test_arguments_that_no_tool_takes_are_told_to_the_model(chat: Chat) -> None:
    chat.model.acts.extend(
        [
            calls("look_at_file", file="private.csv"),
            calls("publish_release", workspace="nothing.work"),
            calls("start_release", spec="nothing.yaml"),
            Act("I give up."),
        ]
    )
    person = chat.process(("", "Go."), ("Publish it?", "y"), ("Start it?", "y"), ("", None))
    assert person.said[-1] == "I give up."
    tools = [m["content"] for m in chat.model.asked[-1]["messages"] if m["role"] == "tool"]
    assert "path" in tools[0]
    assert "no workspace here" in tools[1]
    assert "no such file" in tools[2]


def test_conversations_are_kept_apart_and_can_be_begun_anew(chat: Chat) -> None:
    chat.model.then = Act("Yes?")
    chat.process(("", "first"), ("", None))
    again = chat.process(("", "second"), ("", None))
    assert "Going on after 2 messages" in again.said[0]
    said = [m["content"] for m in chat.model.asked[-1]["messages"] if m["role"] == "user"]
    assert said == ["first", "second"]
    for talk in (
        Talk(chat.talk.model, chat.folder, False, name="other"),
        Talk(chat.talk.model, chat.folder, False, new=True),
    ):
        hold(talk, ScriptedPerson(("", "third"), ("", None)))
        said = [m["content"] for m in chat.model.asked[-1]["messages"] if m["role"] == "user"]
        assert said == ["third"]


def test_a_file_that_holds_no_conversations_is_one_line(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quantext_graph.spec.errors import QuantextError

    (tmp_path / "odd.sqlite").write_text("not a database, but long enough to look like a file of one" * 20)
    monkeypatch.setenv("QUANTEXT_CHATS", str(tmp_path / "odd.sqlite"))
    with pytest.raises(QuantextError, match="the store is damaged"):
        hold(chat.talk, ScriptedPerson())
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(tmp_path / "odd.sqlite").execute("SELECT * FROM sqlite_master")


def test_an_embedded_model_may_not_lead(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said before a model is fetched, in one line with what to use."""
    from quantext_graph.apps.cli.main import main

    monkeypatch.setenv("QUANTEXT_CACHE", str(chat.folder / "cache"))
    monkeypatch.setattr("sys.argv", ["quantext", "chat", "--agent"])
    with pytest.raises(SystemExit, match="2"):
        main()
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "embedded:qwen2.5-coder-1.5b cannot lead" in line
    assert "--model ollama:llama3.1:8b" in line
    assert not (chat.folder / "cache").exists()
