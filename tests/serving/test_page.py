"""The explorer in a real browser, each view used as a person would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import Running, serving

from headstart.serving.app import LOOPBACK
from headstart.serving.guard import Rules
from headstart.serving.limits import Limits
from headstart.serving.models import Models
from headstart.tasks import TASKS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZES = {"desktop": {"width": 1200, "height": 900}, "phone": {"width": 390, "height": 844}}
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


def test_two_contexts(page: Any) -> None:
    page.get_by_label("A sentence").fill("the cat sat on the mat")
    page.get_by_label("Another with the same word").fill("a mat and a cat")
    page.get_by_label("The word").fill("mat")
    page.get_by_role("button", name="Compare").press("Enter")
    page.get_by_text("Cosine of “mat” in both sentences").first.wait_for()
    cards = page.locator("section.card")
    assert cards.get_by_role("heading").all_inner_texts() == ["static", "elmo", "bert"]
    assert cards.nth(0).locator("tr").all_inner_texts() == ["word vector\t1.00\t"]
    assert cards.nth(1).locator("th").all_inner_texts() == ["words", "layer 1", "layer 2"]
    check_accessible(page)
    page.get_by_label("The word").fill("dog")
    page.keyboard.press("Enter")
    page.get_by_text("'dog' is not a word of both sentences; they share").wait_for()
    check_accessible(page)


def test_hidden_words(page: Any) -> None:
    page.get_by_role("link", name="Hidden words").click()
    page.get_by_label("A sentence").fill("the cat sat")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="cat").press("Space")
    page.get_by_text("bert: reads both sides").wait_for()
    headings = page.locator("section.card").get_by_role("heading").all_inner_texts()
    assert headings == [
        "elmo: reads forward, from the left",
        "elmo: reads backward, from the right",
        "bert: reads both sides",
    ]
    assert page.locator("section.card").first.locator("tr").count() == 5
    assert page.get_by_role("button", name="cat").get_attribute("aria-pressed") == "true"
    check_accessible(page)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_is_drawn(page: Any, name: str) -> None:
    page.get_by_role("link", name="Tasks").click()
    page.get_by_label("Model").select_option(name)
    page.get_by_role("button", name="Answer").click()
    answer = page.locator("[aria-live] > *")
    answer.first.wait_for()
    assert page.locator(".problem").count() == 0
    assert page.locator("[aria-live] pre").count() == 0, "the task has no drawing of its own"
    check_accessible(page)


def test_runs_have_their_curves(page: Any) -> None:
    page.get_by_role("link", name="Runs").click()
    page.get_by_label("Training").select_option("bert")
    page.get_by_role("img", name="loss of bert").wait_for()
    assert page.locator("polyline").first.get_attribute("points").count(",") > 5
    check_accessible(page)


def test_what_is_typed_stays_text(page: Any) -> None:
    page.get_by_role("link", name="Tasks").click()
    page.get_by_label("Model").select_option("tag")
    typed = "<img src=x onerror=alert(1)> 🙂 Ada"
    page.get_by_role("textbox", name="text").fill(typed)
    page.get_by_role("button", name="Answer").click()
    page.locator(".said").wait_for()
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


def test_the_page_is_reached_by_keyboard_alone(page: Any) -> None:
    page.get_by_role("button", name="Compare").wait_for()
    focused = []
    for _ in range(8):
        page.keyboard.press("Tab")
        focused.append(page.evaluate("document.activeElement.textContent || document.activeElement.name"))
    assert focused == ["To the view", "Two contexts", "Hidden words", "Tasks", "Runs", "first", "second", "word"]


def test_every_file_of_the_page_is_served(server: Running) -> None:
    import headstart.serving

    folder = Path(headstart.serving.__file__).parent / "page"
    for file in folder.iterdir():
        answer = server.ask("/" if file.name == "index.html" else f"/page/{file.name}")
        assert (answer.status, answer.body) == (200, file.read_bytes())
    assert server.ask("/page/../app.py").status == 404
