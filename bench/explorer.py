"""The picture of the explorer in the README, from a server that runs for as long as it takes.

    python -m bench.explorer words-mini elmo-mini bert-mini --among TEXT --out docs/explorer.png

Needs a Chromium: the one on the path, or else the one that `playwright install chromium` keeps.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import uvicorn
from playwright.sync_api import expect, sync_playwright

from headstart.progress import result_of
from headstart.serving.app import LOOPBACK, build_app
from headstart.serving.guard import Rules
from headstart.serving.limits import Limits
from headstart.serving.models import Models, open_models
from headstart.serving.occurrences import WORDS, with_indexes
from headstart.serving.server import Address, listen, settings_of_server

WIDTH, HEIGHT, SCALE = 960, 600, 1.25
"""Of the screen, in its own pixels; the picture is 1200 pixels wide, and higher where the view is."""
SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> None:
    given = parsed(arguments)
    models = result_of(open_models(given.sources))
    models = result_of(with_indexes(models, given.among, given.words))
    with running(models) as address:
        photograph(f"{address}/#{given.view}", given.out)
    print(f"{given.out}: {given.out.stat().st_size / 1000:.0f} kB")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.explorer", description="The README's picture of the page.")
    parser.add_argument("sources", nargs="+", help="what is served, as for `headstart serve`")
    parser.add_argument("--among", action="append", default=[], help="text to search for occurrences")
    parser.add_argument("--words", type=int, default=WORDS, help="how much of it")
    parser.add_argument("--view", default="contexts", help="contexts, predict, layers, tasks or runs")
    parser.add_argument("--out", type=Path, required=True, help="a .png file")
    return parser.parse_args(arguments)


@contextmanager
def running(models: Models) -> Iterator[Address]:
    bound, address = listen(Address("127.0.0.1", 0))
    server = uvicorn.Server(settings_of_server(build_app(models, Rules(frozenset(LOOPBACK), Limits()), StringIO())))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def photograph(url: str, out: Path) -> None:
    """The view as it is at first, with its example answered."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE, color_scheme="light"
        )
        page.set_default_timeout(1000 * SECONDS)
        page.goto(url)
        page.locator("main h3").first.wait_for()
        expect(page.locator("[aria-busy]")).to_have_count(0, timeout=1000 * SECONDS)
        page.screenshot(path=out, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
