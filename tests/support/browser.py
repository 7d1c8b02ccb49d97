"""A real browser without a screen: Chromium, driven by selenium.

It keeps its profile in a directory of its own and speaks to nobody but its driver; the driver is never downloaded.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)

# the contrast of every text that is shown with what lies behind it; the worst one
WORST_CONTRAST = """
const rgba = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => {
  const v = c[i] / 255; return sum + w * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
const behind = (e) => { for (; e; e = e.parentElement) {
  const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
let worst = [99, ''], seen = 0;
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.checkVisibility() || e.closest('svg')) continue;
  const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05); seen += 1;
  if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 200)];
}
return [...worst, seen, getComputedStyle(document.body).backgroundColor];
"""


@contextmanager
def browser(profile: Path, *, dark: bool = False) -> Iterator[webdriver.Chrome]:
    """A window of 1280 × 900 pixels; it is closed afterwards."""
    assert BROWSER is not None
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        *FLAGS,
        f"--user-data-dir={profile}",
        "--window-size=1280,900",
        *(["--force-dark-mode"] if dark else []),
    ):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def assert_readable(driver: webdriver.Chrome, *, texts: int) -> None:
    """Unfold the page: in light and in dark, which differ, each of more than `texts` texts has a contrast of 4.5."""
    driver.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; });")
    backs = set()
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        contrast, where, seen, back = driver.execute_script(WORST_CONTRAST)
        assert contrast >= 4.5, (scheme, where)
        assert seen > texts
        backs.add(back)
    assert len(backs) == 2
