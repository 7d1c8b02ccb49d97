"""The report in a real browser: what a reader clicks, presses and sees."""

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: the report is not opened in a browser")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from acp_bridge.testing.report import ReportRun, write_report
from tests.support.browser import BROWSER, DRIVER, assert_readable, browser
from tests.support.report_runs import agent, client, run_of, said

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium with its driver here: the report is not opened in a browser"
)

HOSTILE = "</script></pre><script>document.title = 'acted'</script><img src=x onerror=\"document.title = 'acted'\">"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two scenarios: a long one that differs in its rows 30 and 60, and one that passed."""
    folder = tmp_path_factory.mktemp("report")
    frames = [said(f"chunk {number}") for number in range(1, 61)]
    found = [*frames[:29], said(HOSTILE), *frames[30:59], {"id": 9, "result": {"stopReason": "refusal"}}]
    wire = [
        client(0.1, id=1, method="session/new", params={"cwd": "/srv/app", "mcpServers": []}),
        agent(0.2, id=1, result={"sessionId": "s"}),
        client(0.3, id=2, method="session/prompt", params={"sessionId": "s", "prompt": []}),
        *(agent(0.3 + number / 100, **said(f"chunk {number}")) for number in range(60)),
        agent(1.0, id=2, result={"stopReason": "end_turn"}),
    ]
    red = ReportRun("red", ["it differs"], run_of(*wire, transcript=found), frames)
    green = ReportRun("green", [], run_of(*wire, transcript=frames), frames)
    write_report(folder / "report.html", [red, green])
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


def shown(driver, selector):
    return [element for element in driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def in_window(driver, element):
    return driver.execute_script(
        "const r = arguments[0].getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight;", element
    )


def test_a_reader_goes_from_the_overview_to_each_difference_and_opens_the_raw_frame(page, driver):
    driver.get(page)
    title = driver.title
    first, second = (driver.find_element(By.ID, f"s1-d{number}") for number in (1, 2))
    assert not in_window(driver, second)

    # the number of differences is a link to the first of them, and each leads to the next one
    shown(driver, '.overview a[href="#s1-d1"]')[0].click()
    assert in_window(driver, first)
    assert first == driver.switch_to.active_element
    first.find_element(By.LINK_TEXT, "↓").send_keys(Keys.ENTER)
    assert driver.current_url.endswith("#s1-d2")
    assert in_window(driver, second)

    # the raw frame opens by mouse and closes by keyboard
    summary = first.find_elements(By.TAG_NAME, "summary")[1]
    raw = first.find_elements(By.TAG_NAME, "pre")[1]
    assert not raw.is_displayed()
    summary.click()
    assert raw.is_displayed()
    assert "</script></pre><script>" in raw.text
    summary.send_keys(Keys.ENTER)
    assert not raw.is_displayed()

    # equal frames far from a difference are folded until one asks for them
    fold = driver.find_element(By.CSS_SELECTOR, ".comparison input")
    folded = len(shown(driver, "#s1 .comparison .far tr"))
    fold.send_keys(Keys.SPACE)
    assert (folded, len(shown(driver, "#s1 .comparison .far tr"))) == (0, 26 + 23)
    assert shown(driver, ".fold") == []

    # a scenario that passed is closed; its link opens it
    assert shown(driver, "#s2 h3") == []
    driver.find_element(By.LINK_TEXT, "green").click()
    assert len(shown(driver, "#s2 h3")) >= 2

    # nothing that the agent said has acted, nothing was refused to the page itself
    assert driver.title == title == "ACP snapshot report"
    assert driver.get_log("browser") == []


def test_every_text_can_be_read_in_light_and_in_dark(page, driver):
    driver.get(page)
    assert_readable(driver, texts=200)
