"""DP fine-tuning on a tiny random model: gradients, noise, empty batches, resuming, the whole method."""

import numpy as np
import pytest
from audit_corpus import codes, spec, write

WITHOUT = "needs PyTorch: pip install 'quantext-graph[dpft]'"
torch = pytest.importorskip("torch", reason=WITHOUT)
pytest.importorskip("opacus", reason=WITHOUT)
pytestmark = pytest.mark.torch

from opacus import GradSampleModule  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from quantext_graph.experiments.baselines import Corpus, Task  # noqa: E402
from quantext_graph.experiments.baselines.accounting import usual_delta  # noqa: E402
from quantext_graph.experiments.baselines.dp_finetuning import DPFineTuning, prompt  # noqa: E402
from quantext_graph.experiments.baselines.dp_training import (  # noqa: E402
    Training,
    Writer,
    noise_multiplier,
    spent_epsilon,
    text_losses,
    train,
)
from quantext_graph.spec.errors import QuantextError  # noqa: E402

TEXTS = ["a short one", "this text is a good deal longer than the other ones", "some tea", "rain, again"]
PROMPTS = ["Topic: tea\n", "Topic: rain\n", "Topic: tea | Stance: like\n", "T\n"]


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small lose by threads, and most on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A model of two layers over bytes, as `transformers` keeps one."""
    path = tmp_path_factory.mktemp("tiny")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<end>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=256, eos_token_id=0,
        bos_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return path


def writer(folder) -> Writer:
    made = Writer.load(str(folder), rank=2, seed=1)
    with torch.no_grad():  # adapters begin at zero, where half of the gradients vanish
        for name, p in made.parameters.items():
            if "lora_B" in name:
                p.normal_(0, 0.1, generator=torch.Generator().manual_seed(len(name)))
    return made


def test_gradients_of_each_text_are_those_of_a_loop(folder):
    made = writer(folder)
    wrapped = GradSampleModule(made.model, loss_reduction="sum")
    wrapped.train()
    text_losses(wrapped, made.batch(PROMPTS, TEXTS, 40)).sum().backward()
    together = {name: p.grad_sample.clone() for name, p in made.parameters.items()}
    wrapped.remove_hooks()
    for i in range(len(TEXTS)):
        made.model.zero_grad()
        text_losses(made.model, made.batch(PROMPTS[i : i + 1], TEXTS[i : i + 1], 40)).sum().backward()
        for name, p in made.parameters.items():
            torch.testing.assert_close(together[name][i], p.grad, rtol=1e-4, atol=1e-6)
            assert p.grad.abs().max() > 0, name


def test_a_text_moves_the_sum_by_at_most_the_clip(folder):
    """Without noise the first step's gradient is the sum of clipped ones over the expected batch."""
    made, clip = writer(folder), 0.01
    batch = made.batch(PROMPTS, TEXTS, 40)
    norms = []
    for i in range(len(TEXTS)):
        made.model.zero_grad()
        text_losses(made.model, {key: value[i : i + 1] for key, value in batch.items()}).sum().backward()
        norms.append(sum(p.grad.pow(2).sum() for p in made.parameters.values()) ** 0.5)
    assert min(norms) > clip
    seen = {}
    original = torch.optim.AdamW.step

    def look(self, *arguments):
        seen["norm"] = sum(p.grad.pow(2).sum() for group in self.param_groups for p in group["params"]) ** 0.5
        return original(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", look)
        train(made, PROMPTS, TEXTS, 40, Training(1, 4, 3, 1e-3, clip, 0.0), seed=3)
    assert 0 < seen["norm"] <= clip * (1 + 1e-4)  # 4 texts, expected batch 4


def test_an_empty_batch_adds_noise_and_counts(folder):
    made = writer(folder)
    trained = train(made, PROMPTS, TEXTS, 40, Training(6, 1e-9, 2, 1e-2, 1.0, 1.0), seed=5)
    assert trained.empty == 6
    assert trained.losses == []
    assert trained.moved > 0


def test_it_learns_where_there_is_no_noise(folder):
    made = Writer.load(str(folder), rank=4, seed=1)
    trained = train(made, PROMPTS, TEXTS, 40, Training(60, 4, 4, 5e-2, 1.0, 0.0), seed=2)
    assert trained.moved > 0.1
    assert np.mean(trained.losses[-5:]) < 0.97 * np.mean(trained.losses[:5])


def test_training_goes_on_after_a_stop_as_if_there_had_been_none(folder, tmp_path):
    setting = Training(20, 2, 2, 1e-2, 1.0, 0.5)
    whole = writer(folder)
    undisturbed = train(whole, PROMPTS, TEXTS, 40, setting, seed=9)
    place = tmp_path / "training.pt"

    def stop(_step, done, _total):
        if done == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(writer(folder), PROMPTS, TEXTS, 40, setting, seed=9, checkpoint=place, progress=stop)
    again = writer(folder)
    resumed = train(again, PROMPTS, TEXTS, 40, setting, seed=9, checkpoint=place)
    assert resumed.losses == pytest.approx(undisturbed.losses, abs=1e-5)
    assert resumed.empty == undisturbed.empty
    for name, p in whole.parameters.items():
        torch.testing.assert_close(again.parameters[name], p, rtol=1e-4, atol=1e-6)


def test_noise_of_a_budget_costs_that_budget_by_two_libraries():
    accounting = pytest.importorskip("dp_accounting")
    epsilon, delta, rate, steps = 4.0, usual_delta(3000), 64 / 3000, 60
    noise = noise_multiplier(epsilon, delta, rate, steps)
    assert spent_epsilon(noise, delta, rate, steps) == pytest.approx(epsilon, abs=0.03)
    step = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(noise))
    pld = accounting.pld.PLDAccountant().compose(accounting.SelfComposedDpEvent(step, steps))
    assert pld.get_epsilon(delta) == pytest.approx(epsilon, abs=0.05)


@pytest.mark.parametrize("labels", ["public", "noised"])
def test_the_method_releases_texts_to_labels_that_are_not_the_private_ones(
    folder, tmp_path, labels, capfd, recwarn
):
    rng = np.random.default_rng(1)
    private, public = codes(60, 0.9, rng), codes(40, 0.5, rng)
    method = DPFineTuning(model=str(folder), steps=3, batch=8, tokens=30, noise=1.0, labels=labels)

    def release():
        task = Task(
            spec(), Corpus(write(private, rng), private), Corpus(write(public, rng), public), writer=None,
            embed=None, rng=np.random.default_rng(4), folder=tmp_path,
        )  # fmt: skip
        return method.release(task)

    tmp_path.mkdir(exist_ok=True)
    released = release()
    assert len(released.texts) == 60
    assert all(released.texts)
    likes = (released.targets[:, 1] == 0).mean()
    assert likes == pytest.approx(0.5, abs=0.02) if labels == "public" else likes != 0.9
    assert released.label_source.startswith(labels)
    training = spent_epsilon(1.0, released.guarantee.delta * (1.0 if labels == "public" else 0.9), 8 / 60, 3)
    assert released.guarantee.epsilon == pytest.approx(training + (labels == "noised") * 0.4)
    assert released.detail["weights_moved"] > 0
    assert list(release().texts) == list(released.texts)  # kept, not written again
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []


def test_a_model_that_is_not_there_is_one_line():
    with pytest.raises(QuantextError, match="quantext model pull nothing"):
        Writer.load("embedded:nothing", 2, 0)
    with pytest.raises(QuantextError, match="cannot be loaded"):
        Writer.load("/nowhere/at/all", 2, 0)


def test_the_prompt_names_the_labels():
    assert prompt(spec(), (1, 0)) == "Topic: rain | Stance: like\n"


def test_adapters_alone_are_trained(folder):
    made = Writer.load(str(folder), rank=2, seed=1)
    assert made.parameters
    assert all("lora_" in name for name in made.parameters)
