"""The page of attention: whole without a script, and in a browser with it."""

from __future__ import annotations

import base64
import io
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from headstart.inspection.attend import Attention
from headstart.inspection.attend_view import attention_page, png_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
UNITS = ("[CLS]", "</script>", "b", "[SEP]")
FIRST = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0.25, 0.75, 0], [1, 0, 0, 0]]
SECOND = [[0.25] * 4, [0.6, 0.4, 0, 0], [0, 0, 0.5, 0.5], [0.25] * 4]


@pytest.fixture
def attention() -> Attention:
    """Two heads of one layer, and a word that would end a script."""
    shares = np.array([[FIRST, SECOND]], np.float32)
    return Attention("toy", (3,), (1, 2), UNITS, ("</script>", "b"), (-1, 0, 1, -1), shares)


def test_it_needs_nothing_else_and_makes_sense_without_a_script(attention: Attention) -> None:
    page = attention_page(attention)
    without = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "http" not in page
    assert page.count("</script>") == 2
    assert without.count("&lt;/script&gt;") == 2  # in the sentence and in what can be pointed at
    assert 'alt="layer 3, head 1: 0 % [CLS], 0 % [SEP], 12 % before, 38 % itself, 50 % after, 0 % others"' in without
    assert "<small>after 50</small>" in without
    assert "In each map a row is the word that looks" in without


def test_a_pixel_is_as_opaque_as_the_root_of_its_share(attention: Attention) -> None:
    picture = imread(io.BytesIO(png_of(attention.of(3, 2))), format="png")
    assert picture.shape == (4, 4, 4)
    np.testing.assert_allclose(picture[..., 3], np.sqrt(attention.of(3, 2)), atol=0.005)
    assert base64.b64encode(png_of(attention.of(3, 2))).decode() in attention_page(attention)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page is not tried in a browser")
def test_pointing_at_a_word_shows_where_every_head_looks(attention: Attention, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    path = tmp_path / "page.html"
    path.write_text(attention_page(attention), encoding="utf-8")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        units, heads = page.locator(".units button"), page.locator(".maps button")
        units.nth(1).hover()
        assert heads.all_inner_texts() == ["b 100", "[CLS] 60"]
        assert units.all_inner_texts() == ["[CLS]\n30", "</script>\n20", "b\n50", "[SEP]"]
        heads.nth(1).click()
        units.nth(2).hover()
        assert units.all_inner_texts() == ["[CLS]", "</script>", "b\n50", "[SEP]\n50"]
        assert "From “b”, in %: above, layer 3, head 2" in page.locator("#told").inner_text()
        page.emulate_media(color_scheme="light")
        assert Axe().run(page).response["violations"] == []
        page.emulate_media(color_scheme="dark")
        assert Axe().run(page).response["violations"] == []
        assert complaints == []
        browser.close()
