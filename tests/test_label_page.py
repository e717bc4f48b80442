"""The labelling page in a real browser: by keyboard and mouse, through restarts, with a hundred thousand images.

The browser cannot reach anything but this machine, and every test fails if the page logs an error or asks elsewhere.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelling_server import Server, picture_folder, serving, start
from PIL import Image

playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
expect = playwright.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page's tests need Chromium: apt install chromium")

PATIENCE = 20_000  # milliseconds, for a busy machine


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        expect.set_options(timeout=PATIENCE)
        nowhere = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", nowhere])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a server's page; at the end, nothing may have gone wrong in it or been asked from elsewhere."""
    troubles: list[str] = []
    expected = ["ERR_CONNECTION"]  # of a server that has ended, or was killed
    contexts = []

    def open_page(server: Server, *, wait: bool = True, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: said.type == "error" and troubles.append(f"{said.text} {said.location}"))
        page.on("request", lambda request: _is_ours(request.url, server) or troubles.append(request.url))
        page.goto(server.address)
        if wait:
            expect(page.locator(".tile").first).to_be_visible()
            expect(page.locator("#tabs button").nth(1)).not_to_contain_text(" 0")  # suggestions: it has thought
        return page

    open_page.expected = expected  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in troubles if not any(part in each for part in expected)] == []


def _is_ours(url: str, server: Server) -> bool:
    return url.startswith(f"http://127.0.0.1:{server.port}/")


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, list[str], Any, list[int]]:
    return tmp_path / "pictures", *picture_folder(tmp_path / "pictures")


@pytest.fixture
def server(pictures: Any, tmp_path: Path) -> Iterator[Server]:
    with serving(*pictures[:3], tmp_path / "session.jsonl") as running:
        yield running


NAMES = ["red", "green", "blue"]
REVEAL = """async (kind) => {
  const [{ reveal }, { store, status }] = await Promise.all([import("/page/grid.js"), import("/page/store.js")]);
  reveal(store.order.find((item) => status(item).kind === kind));
}"""
GUESSES = """async () => {
  const { store, status } = await import("/page/store.js");
  return store.order.filter((item) => status(item).kind === "predicted");
}"""
LOOKS = """(kind) => {
  const look = (part) => getComputedStyle(document.querySelector(`.tile[data-kind=${kind}] ${part}`));
  return [look(".frame").borderTopStyle, look(".badge").borderTopStyle + look(".badge").backgroundColor];
}"""


def focus(page: Any, item: int) -> None:
    """To an image, by clicking it; all of them are on the page's first screens."""
    expect(page.locator("body[data-busy]")).to_have_count(0)  # new predictions may move it away under the pointer
    tile = page.locator(f"#item-{item}")
    if not tile.is_visible():
        page.evaluate("item => import('/page/grid.js').then(grid => grid.reveal(item))", item)
    tile.click()


def type_label(page: Any, name: str) -> None:
    page.keyboard.press("l")
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def label_one_of_each(page: Any, truth: list[int]) -> None:
    for number, name in enumerate(NAMES):
        focus(page, truth.index(number))
        type_label(page, name)
        expect(page.locator("#progress-text")).to_contain_text(f"{number + 1} labelled by you")
    expect(page.locator("#progress-text")).to_contain_text("3 labelled by you, 0 accepted, 57 predicted")


def active(page: Any) -> int:
    return int(page.locator(".tile.active").get_attribute("data-item"))


def test_labelling_works_by_keyboard_alone(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    truth = pictures[3]
    page = visit(server)
    expect(page.get_by_text("What is in these images?")).to_be_visible()
    named: list[int] = []
    while len(named) < len(NAMES):  # name the first image of each class one meets
        item = active(page)
        if truth[item] in named:
            page.keyboard.press("ArrowRight")
            continue
        type_label(page, NAMES[truth[item]])
        named.append(truth[item])
        expect(page.locator("#progress-text")).to_contain_text(f"{len(named)} labelled by you")
    expect(page.locator("#progress-text")).to_contain_text("57 predicted")
    page.keyboard.press("n")  # then what the page proposes, by number
    for _ in range(5):
        item = active(page)
        page.keyboard.press(str(1 + named.index(truth[item])))
        expect(page.locator(".tile.active")).not_to_have_attribute("data-item", str(item))
    expect(page.locator("#progress-text")).to_contain_text("8 labelled by you")
    page.keyboard.press("c")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#progress-text")).to_contain_text("8 labelled by you, 1 accepted, 51 predicted")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.locator("#progress-text")).to_contain_text("7 labelled by you, 0 accepted, 53 predicted")
    page.keyboard.press("Control+y")
    expect(page.locator("#progress-text")).to_contain_text("8 labelled by you")
    page.keyboard.press("?")
    expect(page.get_by_text("How this works")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("How this works")).to_be_hidden()
    expect(page.locator("#saved-text")).to_have_text("All changes saved")


def test_many_images_are_labelled_at_once(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("#bar-text")).to_have_text("5 images selected")
    expect(page.locator(".tile[aria-selected=true]")).to_have_count(5)
    page.keyboard.press("2")
    expect(page.locator("#progress-text")).to_contain_text("8 labelled by you")
    expect(page.locator("body[data-busy]")).to_have_count(0)
    guesses = page.evaluate(GUESSES)
    focus(page, guesses[0])
    page.locator(f"#item-{guesses[2]}").click(modifiers=["Shift"])
    page.locator(f"#item-{guesses[5]}").click(modifiers=["Control"])
    expect(page.locator("#bar-text")).to_have_text("4 images selected")
    page.locator("#chips button").nth(0).click()
    expect(page.locator("#progress-text")).to_contain_text("12 labelled by you")
    page.locator(".group button", has_text="Accept").first.click()
    expect(page.locator("#progress-text")).not_to_contain_text(re.compile(r"\b0 accepted"))


def test_undo_works_after_a_restart(pictures: Any, tmp_path: Path, visit: Callable[..., Any]) -> None:
    session = tmp_path / "session.jsonl"
    server = start(*pictures[:3], session)
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.close()
    server.kill()
    with serving(*pictures[:3], session) as again:
        page = visit(again)
        expect(page.locator("#progress-text")).to_contain_text("3 labelled by you")
        page.keyboard.press("Control+z")
        expect(page.locator("#progress-text")).to_contain_text("2 labelled by you")
        expect(page.locator("#classes li")).to_have_count(2)
        page.locator("#redo").click()
        expect(page.locator("#progress-text")).to_contain_text("3 labelled by you")


def test_predictions_follow_a_label_and_the_page_says_what_changed(
    server: Server, pictures: Any, visit: Callable[..., Any]
) -> None:
    truth = pictures[3]
    page = visit(server)
    red, green = truth.index(0), truth.index(1)
    focus(page, red)
    type_label(page, "red")
    expect(page.get_by_text("Now an example of something else")).to_be_visible()
    focus(page, green)
    type_label(page, "green")
    expect(page.locator("#progress-text")).to_contain_text("58 predicted")
    blue = [item for item, label in enumerate(truth) if label == 2]
    focus(page, blue[0])
    type_label(page, "blue")
    expect(page.locator("#news")).to_contain_text("changed")
    page.get_by_role("tab", name="Just changed").click()
    expect(page.locator(".tile").first).to_be_visible()
    found = page.locator(".tile").evaluate_all("tiles => tiles.map(tile => Number(tile.dataset.item))")
    assert set(found) <= set(blue[1:])
    assert len(found) > 10
    expect(page.locator(".tile.moved .badge.predicted").first).to_have_text("blue")


def test_human_accepted_and_predicted_look_different(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#progress-text")).to_contain_text("1 accepted")
    looks = set()
    for kind in ("human", "accepted", "predicted"):
        page.evaluate(REVEAL, kind)
        frame, badge = page.evaluate(LOOKS, kind)
        looks.add((frame, badge))
    assert {frame for frame, _ in looks} == {"solid", "double", "dashed"}
    assert len({badge for _, badge in looks}) == 3


def test_classes_are_added_renamed_and_merged(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.locator("#add-name").fill("violet")
    page.locator("#add-name").press("Enter")
    expect(page.locator("#classes li")).to_have_count(4)
    page.get_by_label("Rename or merge violet").click()
    page.locator("#new-name").fill("purple")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator("#classes li").nth(3)).to_contain_text("purple")
    page.get_by_label("Rename or merge blue").click()
    page.locator("#merge-into").select_option("green")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.locator("#classes li")).to_have_count(3)
    visit.expected.append("409")  # type: ignore[attr-defined]
    page.locator("#add-name").fill("RED")
    page.locator("#add-name").press("Enter")
    expect(page.locator("#problem-text")).to_contain_text("There is a class “red” already")
    expect(page.locator("#saved-text")).to_have_text("All changes saved")


def test_an_image_is_explained_from_both_sides(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.keyboard.press("Home")
    expect(page.locator(".example")).to_have_count(3)
    expect(page.locator(".why")).to_contain_text("From the image: of 3 classes")
    expect(page.locator(".why")).to_contain_text("From the class: of 57 unlabelled images")


def test_accuracy_is_estimated_from_images_whose_prediction_is_hidden(
    server: Server, pictures: Any, visit: Callable[..., Any]
) -> None:
    truth = pictures[3]
    page = visit(server)
    label_one_of_each(page, truth)
    page.get_by_role("button", name="Check accuracy").click()
    expect(page.get_by_text("What is this?")).to_be_visible()
    for done in range(40):
        expect(page.locator("#audit-view")).to_contain_text(f"{done} answer")
        assert page.locator("#audit-view .badge").count() == 0
        name = page.locator("#audit-view img").get_attribute("alt")
        page.keyboard.press(str(1 + truth[pictures[1].index(name)]))
    expect(page.locator("#audit-view")).to_contain_text("40 checked were right")
    expect(page.locator("#audit-card")).to_contain_text("of the 57 predictions")


def test_labels_are_exported_where_the_page_says(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    label_one_of_each(page, pictures[3])
    page.get_by_role("button", name="Export").click()
    page.locator("#export button[type=submit]").click()
    expect(page.locator(".outcome")).to_contain_text("60 images written to")
    table = Path(page.locator(".outcome code").inner_text())
    assert table.read_text().count("\n") == 61
    assert table.parent.name == "exports"


def test_a_full_disk_and_a_stopped_server_are_shown(pictures: Any, tmp_path: Path, visit: Callable[..., Any]) -> None:
    session = tmp_path / "session.jsonl"
    visit.expected.append("507")  # type: ignore[attr-defined]
    server = start(*pictures[:3], session, largest_file=700)
    page = visit(server)
    type_label(page, "red")
    expect(page.locator("#progress-text")).to_contain_text("1 labelled by you")
    page.keyboard.press("a")
    page.keyboard.press("1")
    expect(page.locator("#saved-text")).to_have_text("Last change not saved")
    expect(page.locator("#problem-text")).to_contain_text("make room on that disk, then try again")
    expect(page.locator("#progress-text")).to_contain_text("1 labelled by you")
    page.evaluate("Promise.all([...document.images].map(image => image.decode()))")  # or one would be left half sent
    server.kill()
    expect(page.locator("#saved-text")).to_have_text("Not connected")
    expect(page.locator("#problem-text")).to_contain_text("Start it again in the terminal")


def test_a_hundred_thousand_images_need_few_elements(tmp_path: Path, visit: Callable[..., Any]) -> None:
    visit.expected.append("422")  # type: ignore[attr-defined]  # only one of the images exists
    folder, count = tmp_path / "pictures", 100_000
    folder.mkdir()
    Image.new("RGB", (32, 32), "teal").save(folder / "0.png")
    features = np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)
    paths = [f"{number}.png" for number in range(count)]
    with serving(folder, paths, features, tmp_path / "session.jsonl", trust=True) as server:
        page = visit(server)
        most = 0
        height = page.evaluate("document.getElementById('grid').scrollHeight")
        for share in (0, 0.1, 0.5, 0.77, 1):
            page.evaluate("top => { document.getElementById('grid').scrollTop = top }", int(height * share))
            page.wait_for_timeout(200)
            assert page.locator(".tile").count() > 10
            most = max(most, page.evaluate("document.querySelectorAll('*').length"))
        assert most < 1000, f"{most} elements"
        page.keyboard.press("End")
        expect(page.locator(".tile.active")).to_have_attribute("aria-setsize", str(count))
        type_label(page, "last")
        page.keyboard.press("Home")
        type_label(page, "first")
        expect(page.locator("#progress-text")).to_contain_text("2 labelled by you, 0 accepted, 99\u202f998 predicted")


def test_names_are_never_read_as_markup(tmp_path: Path, visit: Callable[..., Any]) -> None:
    folder = tmp_path / "pictures"
    paths, features, _ = picture_folder(folder, each=4)
    nasty = "<img src=x onerror=document.title='owned'>.png"
    (folder / paths[0]).rename(folder / nasty)
    with serving(folder, sorted([nasty, *paths[1:]]), features, tmp_path / "session.jsonl") as server:
        page = visit(server)
        focus(page, 0)
        for name in ("<script>document.title='owned'</script>", "<b onmouseover=document.title='owned'>x</b>"):
            type_label(page, name)
            expect(page.locator("#classes")).to_contain_text(name)
        expect(page.locator("#chips")).to_contain_text("<script>")
        focus(page, 0)
        expect(page.locator("#detail")).to_contain_text(nasty)
        page.wait_for_timeout(300)
        assert page.title() == "pictures – team label"
        assert page.locator("b, #chips script").count() == 0


def test_it_can_be_used_on_a_narrow_screen(server: Server, pictures: Any, visit: Callable[..., Any]) -> None:
    page = visit(server)
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator(".tile").first.click()
    page.locator("#label-name").fill("red")
    page.locator("#label-name").press("Enter")
    page.locator("#toggle-classes").click()
    expect(page.locator("#classes")).to_contain_text("red")
    page.locator("#classes-panel [data-close]").click()
    expect(page.locator("#classes")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (value) => (value <= 0.03928 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (node) => {
    const colour = pixel(getComputedStyle(node).backgroundColor);
    return colour[3] > 250 || !node.parentElement ? colour : behind(node.parentElement);
  };
  const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const faint = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest(":disabled") || !hasText(node)) continue;
    const pair = [pixel(getComputedStyle(node).color), behind(node)].map(luminance).sort();
    const contrast = (pair[1] + 0.05) / (pair[0] + 0.05);
    if (contrast < 4.5) faint.push(`${node.textContent.slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  const named = (node) => node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length;
  const nameless = [...document.querySelectorAll("button, input, select")].filter((node) => !named(node));
  return [...faint, ...nameless.map((node) => node.outerHTML)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_every_control_has_a_name(
    server: Server, pictures: Any, visit: Callable[..., Any], scheme: str
) -> None:
    """WCAG AA: a contrast of 4.5 or more."""
    page = visit(server, color_scheme=scheme)
    label_one_of_each(page, pictures[3])
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#progress-text")).to_contain_text("1 accepted")
    assert page.evaluate(FAINT) == []
