import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import audit_corpus as corpus
import numpy as np
import pytest

from quantext_graph.audit.assessment import audit
from quantext_graph.audit.inputs import AuditInputs, Draw, Pair
from quantext_graph.audit.on_target import judgement
from quantext_graph.audit.report import marked_segments, render
from quantext_graph.audit.text_channel import TextChannel
from quantext_graph.audit.verdict import verdict
from quantext_graph.core.quantize import quantize
from quantext_graph.core.rules import MechanismParameters
from quantext_graph.spec.errors import QuantextError

HOSTILE = (
    "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'> & \"it\" {{ 7 * 7 }}"
)
MECHANISM = {"selection": "joint", "pool": "public", "spread": 0.3, "budget_nats": 1.0, "pool_size": 500}
NAMES = ["Topic", "Stance"]
SPEC = corpus.spec(**MECHANISM)


def judged(realised, targets, rng):
    """Of a judge who reads nine known topics of ten right, and of whom nothing is known about stances."""
    known = np.column_stack([rng.integers(3, size=200), np.full(200, -1)])
    read = np.where((rng.random(200) < 0.1)[:, None], (known + 1) % 3, known)
    return judgement(
        read=realised, targets=targets, known=(read, known), names=NAMES, evaluator="a classifier"
    )


def release(n=60, seed=0):
    """The inputs of an audit of an invented release that is right on nine of ten records."""
    rng = np.random.default_rng(seed)
    private, public = corpus.codes(n, 0.8, rng), corpus.codes(120, 0.5, rng)
    drawn = quantize(private, (3, 2), auxiliary=public, secrets=[corpus.FAVOR], rng=rng, **MECHANISM)
    realised = drawn.assigned.copy()
    missed = rng.random(n) < 0.1
    realised[missed, 1] = 1 - realised[missed, 1]
    before, after = corpus.write(private, rng), corpus.write(realised, rng)
    before[0], after[0] = f"{HOSTILE} before", f"{HOSTILE} after"
    before[1] = "I   would\nlike tea with you"
    pairs = [
        Pair(
            before=before[i],
            after=after[i],
            labels=tuple(private[i].tolist()),
            target=tuple(drawn.assigned[i].tolist()),
            realised=tuple(realised[i].tolist()),
            snippets=("would like tea",) if i == 1 else (HOSTILE,) if i == 0 else (),
            attempts=1 + i % 3,
            failures=("Stance", "copy")[: i % 3],
            verified=not missed[i],
            fallback=i == 2,
        )
        for i in range(n)
    ]
    return AuditInputs(
        private_texts=before,
        private_codes=private,
        released_texts=after,
        targets=drawn.assigned,
        realised=realised,
        judgement=judged(realised, drawn.assigned, rng),
        pairs=pairs,
        after_attempts=(0.6, 0.8, 0.9),
        auxiliary_texts=corpus.write(public, rng),
        auxiliary_codes=public,
        draw=Draw(MechanismParameters(**MECHANISM), drawn.rule, drawn.choice, {"likes": drawn.leakage}),
    )


@pytest.fixture(scope="module")
def inputs():
    return release()


@pytest.fixture(scope="module")
def report(inputs):
    return audit(inputs, SPEC, corpus.WordEmbeddings(), rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def page(report):
    return render(report)


class Tags(HTMLParser):
    """The tags of a page, its addresses, and what it shows."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.addresses, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "srcset")]

    def handle_data(self, data):
        self.text += data


# -- figures ----------------------------------------------------------------------------------------


def test_the_figures_are_those_that_are_promised(report):
    figures = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert {"knn_precision", "knn_recall", "fid", "attribute_match", "aggregate"} <= figures["utility"].keys()
    kinds = {attack["attack"] for attack in figures["attacks"]}
    assert {"mechanism-aware", "residual"} <= kinds
    for attack in figures["attacks"]:
        assert {"attack", "secret", "estimate", "error", "prior_error"} <= attack.keys()
    assert figures["secrets"][0]["private"] == 0.8
    assert figures["on_target"]["accuracy"]["Topic"] == pytest.approx(0.9, abs=0.05)
    assert figures["on_target"]["accuracy"]["Stance"] is None
    assert figures["on_target"]["corrected"] is None, "of a judge of whom not all is known"


def test_no_figure_holds_a_text(report, inputs):
    figures = json.dumps(report.to_json(), ensure_ascii=False)
    assert not any(text in figures for text in [*inputs.private_texts, *inputs.released_texts])
    assert not any(text in repr(report) for text in inputs.private_texts)


BAD = {
    "different sizes": lambda given: replace(
        given, released_texts=given.released_texts[:17], targets=given.targets[:17], realised=None, pairs=()
    ),
    "no labels of the private texts": lambda given: replace(
        given, private_codes=np.full_like(given.private_codes, -1)
    ),
    "one attribute unlabelled": lambda given: replace(
        given, private_codes=given.private_codes * [1, 0] - [0, 1], realised=None
    ),
    "one text": lambda given: AuditInputs(["tea"], given.private_codes[:1], ["rain"], given.targets[:1]),
    "one empty text": lambda given: AuditInputs([""], given.private_codes[:1], [""], given.targets[:1]),
    "texts without a word that the embedding knows": lambda given: AuditInputs(
        ["?"] * 5, given.private_codes[:5], ["!"] * 4
    ),
    "all texts equal": lambda given: replace(
        given, private_texts=["tea"] * 60, released_texts=["tea"] * 60, auxiliary_texts=["tea"] * 120,
        pairs=[replace(pair, before="tea", after="tea") for pair in given.pairs],
    ),
    "a category that never occurs": lambda given: replace(
        given, private_codes=given.private_codes * [0, 1], realised=given.realised * [0, 1]
    ),
    "nothing known but texts": lambda given: AuditInputs(
        given.private_texts, np.full_like(given.private_codes, -1), given.released_texts
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_odd_input_has_an_answer_and_no_nan(change, inputs):
    found = audit(change(inputs), SPEC, corpus.WordEmbeddings(), rng=np.random.default_rng(0))
    json.dumps(found.to_json(), allow_nan=False)
    assert "nan" not in Tags(render(found)).text.replace("Not known", "").lower().split()
    assert all(sentence.endswith(".") for sentence in verdict(found))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: replace(given, released_texts=[], targets=None, realised=None), "no released texts"),
        (lambda given: replace(given, private_texts=[]), "no private texts"),
        (lambda given: replace(given, targets=given.targets[:3]), "target labels have shape"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(change, message, inputs):
    with pytest.raises(QuantextError, match=message) as caught:
        audit(change(inputs), SPEC, corpus.WordEmbeddings())
    assert "\n" not in str(caught.value)


# -- the page ---------------------------------------------------------------------------------------


def test_texts_are_escaped(page):
    assert "</script><script>window" not in page
    assert "<img" not in page
    assert Tags(page).tags.count("script") == 1
    assert HOSTILE in Tags(page).text  # shown as it is, braces and all


def test_the_page_needs_no_network(page):
    assert all(address.startswith("#") for address in Tags(page).addresses)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_snippets_are_marked_whatever_blanks_they_have():
    assert marked_segments("I   would\nlike tea, too", ["would like  tea"]) == [
        ("I   ", False),
        ("would\nlike tea", True),
        (", too", False),
    ]
    assert marked_segments("aa", ["a"]) == [("aa", True)]
    assert marked_segments("", ["a"]) == []
    assert marked_segments("(a+)", ["(a+)", "", "b"]) == [("(a+)", True)]


def test_a_seeded_draw_and_a_vacuous_bound_promise_nothing(report, inputs):
    draw = inputs.draw
    seeded = replace(report, inputs=replace(inputs, draw=replace(draw, seeded=True)))
    assert "seeded" in verdict(seeded)[1]
    empty = {"likes": replace(draw.leakage["likes"], vacuous=True)}
    assert "vacuous" in verdict(replace(report, inputs=replace(inputs, draw=replace(draw, leakage=empty))))[1]
    assert "Nothing is guaranteed" in verdict(replace(report, inputs=replace(inputs, draw=None)))[1]


def test_the_text_channel_is_on_the_page_in_the_verdict_and_in_the_figures(report):
    channel = TextChannel(
        secret="likes",
        pairs=300,
        changed=40,
        carried=0.7,
        carried_standard_error=0.15,
        shares=(0.15, 0.45),
        bound_nats=0.1,
        allowed=0.55,
        share_alone=0.56,
        success=0.91,
        interval=(0.8, 0.97),
        nats=0.37,
        power_nats=0.3,
    )
    telling = replace(report, channels=(channel,))
    assert "at least 0.37 nats that it does not count" in verdict(telling)[1]
    assert "What the texts tell beyond the bound" in render(telling)
    assert json.loads(json.dumps(telling.to_json()))["text_channel"][0]["leaks"] is True
    silent = replace(report, channels=(replace(channel, nats=0.0),))
    assert "less than 0.30 nats would not have been" in verdict(silent)[1]


# -- in a browser -----------------------------------------------------------------------------------

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic --disable-dev-shm-usage"
)


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    folder = tmp_path_factory.mktemp("browser")
    (folder / "report.html").write_text(page, encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={folder / 'profile'}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get((folder / "report.html").as_uri())
    yield driver
    driver.quit()


def shown(browser):
    rows = browser.find_elements("css selector", "#pairs tbody tr")
    return [row for row in rows if row.is_displayed()]


def numbers(browser):
    return [int(row.find_element("css selector", "td").text.split()[-1]) for row in shown(browser)]


def choose(browser, status):
    browser.find_element("css selector", f"#status option[value='{status}']").click()


@pytest.mark.browser
def test_the_page_opens_without_a_complaint_and_runs_no_script_of_a_text(browser):
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.broken") is None
    assert "PRIVATE" in browser.title
    assert browser.find_element("class name", "banner").is_displayed()


@pytest.mark.browser
def test_searching_and_filtering(browser, inputs):
    search = browser.find_element("id", "search")
    search.send_keys("WOULD")
    assert numbers(browser) == [2]
    assert browser.find_element("id", "count").text == "1 of 60 records"
    assert browser.find_element("css selector", "#pairs tr:not([hidden]) mark").text == "would\nlike tea"
    search.clear()
    search.send_keys(" ")
    choose(browser, "missed")
    assert len(shown(browser)) == sum(not pair.verified for pair in inputs.pairs) > 0
    choose(browser, "")
    assert len(shown(browser)) == 60


@pytest.mark.browser
def test_sorting_by_keyboard(browser):
    button = browser.find_element("css selector", "#pairs th button[data-key=number]")
    button.send_keys("\n")
    assert numbers(browser) == list(range(60, 0, -1))
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    button.send_keys("\n")
    assert numbers(browser) == list(range(1, 61))


@pytest.mark.browser
def test_nothing_runs_out_of_a_phone_screen(browser):
    browser.set_window_size(500, 800)
    for width in (360, 1280):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        )
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
