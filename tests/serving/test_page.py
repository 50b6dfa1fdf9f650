"""The explorer in a real browser, each view used as a person would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import Running, serving

from headstart.inspection.attend import attend
from headstart.inspection.neighbours import nearest_occurrences
from headstart.inspection.occurrence_text import marked_word
from headstart.serving.app import LOOPBACK
from headstart.serving.guard import Rules
from headstart.serving.limits import Limits
from headstart.serving.models import Models
from headstart.tasks import TASKS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZES = {"desktop": {"width": 1200, "height": 900}, "phone": {"width": 390, "height": 844}}
SENTENCE = "Nobody likes filmed , nobody ."
SAFE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page is not tried in a browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=SAFE)
        yield found
        found.close()


@pytest.fixture(params=[("desktop", "light"), ("phone", "dark")], ids=lambda param: param[0])
def page(browser: Any, server: Running, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The explorer on a screen. Whatever the browser complains of, or asks another machine for, fails the test."""
    size, scheme = request.param
    context = browser.new_context(viewport=SIZES[size], color_scheme=scheme)
    found = context.new_page()
    complaints: list[str] = []
    found.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("request", lambda asked: complaints.append(asked.url) if str(server.address) not in asked.url else None)
    found.goto(str(server.address))
    yield found
    assert complaints == []
    assert found.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    context.close()


def is_complaint(message: Any) -> bool:
    """Chromium also reports answers of 4xx there, which the page shows as sentences."""
    return message.type == "error" and "Failed to load resource" not in message.text


def check_accessible(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def follow(page: Any, view: str) -> None:
    page.get_by_role("link", name=view, exact=True).click()
    page.get_by_role("heading", level=2).wait_for()


def test_two_contexts(page: Any) -> None:
    page.get_by_label("A sentence").fill("the cat sat on the mat")
    page.get_by_label("Another with the same word").fill("a cat on a mat")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Cosine of “cat” in both sentences").wait_for()
    assert page.get_by_role("radiogroup", name="The word").locator("label").all_inner_texts() == ["cat", "on", "mat"]
    page.get_by_role("radio", name="mat").check()
    page.get_by_role("heading", name="Cosine of “mat” in both sentences").wait_for()
    cards = page.locator("section.card")
    assert cards.get_by_role("heading").all_inner_texts() == ["static", "elmo", "bert"]
    assert cards.nth(0).locator("tr").inner_text().split() == ["vector", "1.00"]
    assert cards.nth(1).locator("th").all_inner_texts() == ["input", "layer 1", "layer 2"]
    check_accessible(page)
    page.get_by_label("Another with the same word").fill("a dog")
    page.keyboard.press("Enter")
    page.get_by_text("The two sentences have no word in common.").wait_for()
    assert page.get_by_role("radio").count() == 0
    check_accessible(page)


def test_uses_of_a_word_are_those_nearest_to_each_sentence(browser: Any, searching: Running, indexed: Models) -> None:
    page = browser.new_page(viewport=SIZES["phone"])
    page.goto(str(searching.address))
    page.get_by_label("A sentence").fill("a dog and a cat")
    page.get_by_label("Another with the same word").fill("the cat")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Cosine of “cat”").wait_for()
    page.locator(".uses").nth(3).wait_for()
    assert page.locator("h4").all_inner_texts() == [
        "Nearest words, in both",
        *["Used as in the first", "Used as in the second"] * 2,
    ]
    first = marked_word("a dog and a [cat]")
    assert first is not None
    for kind, place in (("elmo", 0), ("bert", 2)):
        expected = nearest_occurrences(*indexed.index(kind), first, 3)
        shown = page.locator(".uses").nth(place)
        assert shown.locator("b").all_inner_texts() == [one.word for one in expected]
        titles = [item.get_attribute("title") for item in shown.locator("li").all()]
        assert titles == [one.sentence for one in expected]
    check_accessible(page)
    page.close()


def test_hidden_words(page: Any) -> None:
    follow(page, "Predict")
    page.get_by_label("A sentence").fill("the cat sat")
    page.get_by_role("button", name="Use it").click()
    page.get_by_text("Choose a word to hide it.", exact=True).wait_for()
    page.get_by_role("button", name="cat").click()
    cards = page.locator("section.card")
    cards.first.wait_for()
    assert cards.get_by_role("heading").all_inner_texts() == [
        "bert: both sides",
        "elmo: forward",
        "elmo: backward",
    ]
    seen = [" ".join(text.replace("▁▁▁", "_").split()) for text in page.locator(".seen").all_inner_texts()]
    assert seen == ["the _ sat", "the _", "_ sat"]
    assert cards.first.locator("tr").count() == 8
    assert page.get_by_role("button", name="cat").get_attribute("aria-pressed") == "true"
    check_accessible(page)
    page.get_by_role("button", name="the").click()
    page.get_by_text("No word stands on that side.").wait_for()


def test_attention_is_drawn(page: Any, served_models: Models) -> None:
    follow(page, "Layers")
    page.get_by_label("A sentence").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    page.get_by_role("radio", name="2", exact=True).check()
    page.get_by_role("radio", name="Head 2").check()
    word = page.get_by_role("button", name="likes")
    word.click()
    heads = attend(served_models.encoder("bert", "attention"), SENTENCE, 2, at_words=True)
    row = heads.of(2, 2)[2]
    best = int(row.argmax())
    page.get_by_role("status").get_by_text(
        f"“likes” looks at {heads.units[best]} ({row[best]:.0%}".rstrip("%")
    ).wait_for()
    lines = page.locator(".attention path:not(.aside)")
    assert lines.count() == (row.round(4) >= 0.02).sum()
    check_accessible(page)
    word.click()
    assert lines.count() == (heads.of(2, 2).round(4) >= 0.02).sum()
    page.get_by_text("As a table").click()
    cells = page.locator(".shares tbody tr").nth(2).locator("td").all_inner_texts()
    np.testing.assert_allclose(np.array(cells, float), row, atol=0.006)
    check_accessible(page)


def test_what_each_task_reads_is_drawn(page: Any, served_models: Models) -> None:
    follow(page, "Layers")
    table = page.get_by_role("table", name="Share of each layer of bert (equal shares: 33 %)")
    table.wait_for()
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()
    }
    (learned,) = served_models.task("qa").model.mix_weights()
    assert list(rows) == list(TASKS)
    assert rows["qa"] == [f"{weight:.0%}".replace("%", " %") for weight in learned["input"]["weights"]]


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_is_drawn(page: Any, name: str) -> None:
    follow(page, "Tasks")
    page.get_by_role("radio", name=name).check()
    page.get_by_role("heading", name=f"Answer of {name}").wait_for()
    assert page.locator(".problem").count() == 0
    assert page.locator("[aria-live] > *").count() > 1
    assert page.locator("[aria-live] pre").count() == 0, "the task has no drawing of its own"
    check_accessible(page)


def test_runs_have_their_curves(page: Any) -> None:
    follow(page, "Runs")
    page.get_by_role("radio", name="bert").check()
    picture = page.get_by_role("img", name="training loss of bert")
    picture.wait_for()
    assert page.locator("polyline").first.get_attribute("points").count(",") > 5
    last = page.locator("figcaption").first.inner_text()
    picture.hover(position={"x": 60, "y": 60})
    assert page.locator("figcaption").first.inner_text() != last
    check_accessible(page)


def test_a_running_training_is_followed(browser: Any, served_models: Models, tmp_path: Path) -> None:
    log = tmp_path / "young" / "log.jsonl"
    log.parent.mkdir()
    log.write_text('{"step": 1, "loss": 3.0}\n')
    with serving(served_models, runs=tmp_path) as server:
        page = browser.new_page()
        page.goto(f"{server.address}/#runs")
        page.get_by_text("There is nothing to draw yet").wait_for()
        page.get_by_role("radio", name="young").focus()
        with log.open("a") as file:
            file.write('{"step": 2, "loss": 2.5}\n{"step": 3, "loss": 1.5}\n')
        page.get_by_role("img", name="training loss of young: 3 at step 1, 1.5 at step 3").wait_for()
        assert page.evaluate("document.activeElement.value") == "young"
        page.close()


def test_what_is_typed_stays_text(page: Any) -> None:
    follow(page, "Tasks")
    page.get_by_role("radio", name="tag").check()
    typed = "<img src=x onerror=alert(1)> 🙂 Ada"
    page.get_by_role("textbox", name="text").fill(typed)
    page.get_by_role("button", name="Answer").click()
    page.locator(".said").get_by_text("🙂").wait_for()
    assert page.locator("main img").count() == 0
    assert page.locator(".said").inner_text().startswith("<")


def test_a_server_with_a_token_asks_for_it(browser: Any, served_models: Models) -> None:
    with serving(served_models, Rules(frozenset(LOOPBACK), Limits(), "secret")) as server:
        found = browser.new_page()
        found.goto(str(server.address))
        found.get_by_label("Token of this server").fill("secret")
        found.keyboard.press("Enter")
        found.get_by_role("button", name="Compare").wait_for()
        found.close()


def test_every_view_is_used_by_keyboard_alone(page: Any) -> None:
    page.get_by_role("heading", name="Cosine of").wait_for()
    tab_to(page, "play")
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="Cosine of “in”").wait_for()
    open_view(page, "Predict")
    tab_to(page, "walked")
    page.keyboard.press("Space")
    page.get_by_role("table", name="instead of “walked”").first.wait_for()
    open_view(page, "Layers")
    page.get_by_role("radio", name="Head 1").wait_for()
    tab_to(page, "garden")
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("“garden” looks at").wait_for()
    open_view(page, "Tasks")
    tab_to(page, "classify")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.value")
    page.get_by_role("heading", name=f"Answer of {chosen}").wait_for()
    open_view(page, "Runs")
    page.get_by_role("radio").first.wait_for()
    tab_to(page, page.get_by_role("radio", checked=True).get_attribute("value"))


def open_view(page: Any, view: str) -> None:
    tab_to(page, view)
    page.keyboard.press("Enter")


def tab_to(page: Any, wanted: str) -> None:
    """By the tabulator key alone; wanted: the text of a link or button, or the value of an input."""
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent || document.activeElement.value"))
        if seen[-1] == wanted:
            return
    raise AssertionError(f"'{wanted}' is not reached, only {seen}")


def test_every_file_of_the_page_is_served(server: Running) -> None:
    import headstart.serving

    folder = Path(headstart.serving.__file__).parent / "page"
    for file in folder.iterdir():
        answer = server.ask("/" if file.name == "index.html" else f"/page/{file.name}")
        assert (answer.status, answer.body) == (200, file.read_bytes())
    assert server.ask("/page/../app.py").status == 404
