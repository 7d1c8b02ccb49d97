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
