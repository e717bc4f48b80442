"""Make label-page.png: the labelling page on the pictures of `team label --demo`, as a person would have left it.

python docs/label_page.py     (needs the extras label and test, and Chromium)
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from team.labelling.demo import draw_example

TARGET = Path(__file__).with_name("label-page.png")
BY_HAND = 12


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        truth = draw_example(base)
        command = [sys.executable, "-m", "team.cli", "label", str(base / "images"), "--labels", str(base / "few.csv")]
        command += ["--no-browser", "--session", str(base / "session.jsonl")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            address = next(found[1] for line in server.stdout if (found := re.match(r"open (\S+)", line)))
            photograph(address, truth)
        finally:
            server.terminate()
            server.wait()
    picture = Image.open(TARGET).convert("RGB").quantize(224, dither=Image.Dither.NONE)
    picture.save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


def photograph(address: str, truth: dict[str, str]) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 840})
        page.goto(address)
        page.get_by_text("predicted, least sure first").first.wait_for()
        names = page.locator("#classes bdi").all_inner_texts()
        page.keyboard.press("n")
        for _ in range(BY_HAND):  # label what the page proposes
            name = page.locator("#detail .file").inner_text()
            page.keyboard.press(str(1 + names.index(truth[name])))
            page.wait_for_function("name => document.querySelector('#detail .file').innerText !== name", arg=name)
        page.keyboard.press("c")
        page.locator("body:not([data-busy])").wait_for()
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.locator("body:not([data-busy])").wait_for()
        page.locator("#classes .class-name").nth(1).click()
        page.locator("#grid").hover()
        page.mouse.wheel(0, -440)  # the end of one class, with labels from a person, and the beginning of the next
        page.locator(".tile[aria-label*='predicted knight']").first.click()
        page.locator(".examples").wait_for()
        page.wait_for_timeout(500)  # for the last pictures to be there
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
