"""The page of a session in a real browser: its loops under a clock of the test, its transcript while it grows."""

import signal
import threading

import anyio.to_thread
import pytest

pytest.importorskip("selenium", reason="selenium is not installed: the page is not opened in a browser")

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from acp_bridge.owner.protocol import Answer
from agent_loop.session.events import SessionHeader
from tests.support.browser import BROWSER, DRIVER, assert_readable, browser
from tests.support.page import LIMIT, add_events, created, deleted, loop_id, owned, page, short_directory
from tests.support.session_commands import NOW, CommandWorld, log_bytes
from tests.support.session_turns import answer, call, delta, result, step_end, step_start, turn_end, turn_start, user
from tests.support.transcript_entries import MARKUP

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium with its driver here: the page is not opened in a browser"
)

CLOCK = f"""
let time = {NOW}; const callbacks = [];
window.pageClock = {{
  now: () => time, every: (callback) => callbacks.push(callback),
  advance: (ms) => {{ time += ms; callbacks.forEach((callback) => callback()); }},
}};
"""
LONG = "x" * 81 + "\n" + "Look at every line of the build, " * 60 + "\n" + MARKUP
SESSION = "5b6d0a3e-4f0f-4f57-9f0e-2f5a1b6c7d8e"


class Shown:
    """The open page."""

    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        [found] = self.all(selector)
        return found

    def texts(self, selector):
        # in one step: the page changes meanwhile
        script = "return [...document.querySelectorAll(arguments[0])].map((found) => found.innerText)"
        return self.driver.execute_script(script, selector)

    def until(self, condition):
        return WebDriverWait(self.driver, 30, 0.02).until(lambda _: condition())

    def advance(self, ms):
        self.driver.execute_script(f"pageClock.advance({ms})")


async def refuse(_request):
    return Answer(ok=False, text="the disk is full")


def a_session_without_loops_says_how_one_is_made_and_shows_what_happens(place):
    world, served, driver, folder = place
    begun = [turn_start(1), user(f"prompt {MARKUP}"), step_start(1, 1)]
    log = world.write("empty", [("session/title", {"title": f"Title {MARKUP}", "by": "prompt"}), *begun])
    shown = Shown(driver, served.address)
    link = shown.one("tbody a")
    assert link.text.startswith("Title </pre>")
    link.click()
    shown.until(lambda: shown.all("#entries article.user"))
    assert driver.title.startswith("Title </pre>")
    assert shown.one("#loops .empty").text == "No loops yet\nIn your editor, send /loop <seconds> <prompt> to make one."
    assert shown.all("#loops form, #loops input, #loops textarea") == []

    add_events(log, delta(1, 1, "**It gr"))
    shown.until(lambda: shown.texts("#growing article.agent") == ["**It gr"])
    add_events(log, delta(1, 1, "ows** [link](javascript:alert(1))"))
    shown.until(lambda: shown.texts("#growing strong") == ["It grows"])
    add_events(log, answer(1, 1), call(1, 1, "c"))
    shown.until(lambda: shown.texts("#growing .ended") == ["running"])
    assert shown.texts("#entries article.agent strong") == ["It grows"]
    add_events(log, result(1, 1, "c", MARKUP), step_end(1, 1), turn_end(1))
    shown.until(lambda: shown.all("#entries section.tool"))
    assert shown.texts("#growing") == [""]
    add_events(log, ("session/title", {"title": "Another", "by": "user"}))
    shown.until(lambda: driver.title == "Another")
    assert shown.all("#entries a, #entries img, #entries script, #entries iframe") == []
    assert_readable(driver, texts=8)

    # the log begins anew: so does the page
    again = folder / "again"
    again.write_bytes(log_bytes(SessionHeader("empty", 1000, cwd="/srv/app"), begun))
    again.replace(log)
    shown.until(lambda: len(shown.all("#entries article")) == 1 and driver.title == "untitled session")
    log.unlink()
    shown.until(lambda: "This page stands still: no session 'empty' is stored." in shown.texts("#connection")[0])


def loops_count_down_are_due_and_overdue_in_the_order_in_which_they_come(place):
    world, served, driver, folder = place
    log = world.write(
        SESSION,
        [
            turn_start(1),
            turn_end(1),
            created(1, LONG, 7200, NOW + 7_200_000),
            created(2, "check the build", 45, NOW + 45_000),
            created(3, "y" * 80, 300, NOW + 4_000),
        ],
    )
    with owned(log, folder / "run", refuse):
        shown = Shown(driver, f"{served.address}session/{SESSION}")
        shown.until(lambda: len(shown.all("li.loop")) == 3)
        assert shown.texts("li h3") == ["y" * 80, "check the build", "x" * 77 + "…"]
        assert shown.texts("li .every") == ["Every 5m", "Every 45s", "Every 2h"]
        assert shown.texts("li .next") == ["Next in 4s", "Next in 45s", "Next in 2h"]
        # the whole prompt stands below, as text, in a box that is scrolled
        prompt = shown.all("li pre")[2]
        assert prompt.get_property("textContent") == LONG
        assert prompt.size["height"] < 250
        assert prompt.get_property("scrollHeight") > prompt.size["height"]
        assert SESSION not in shown.one("#loops").get_attribute("outerHTML")

        shown.advance(1000)
        assert shown.texts("li .next") == ["Next in 3s", "Next in 44s", "Next in 1h 59m"]
        shown.advance(3000)
        assert shown.texts("li .next")[0] == "Due now"
        shown.advance(1000)
        assert shown.texts("li .next")[0] == "Overdue"
        # it fired: its next time moves it down
        dispatched = {"version": 1, "operation": "dispatch", "id": loop_id(3), "next_at": NOW + 304_000}
        add_events(log, ("loop/change", dispatched))
        shown.until(lambda: shown.texts("li .next") == ["Next in 40s", "Next in 4m 59s", "Next in 1h 59m"])


def a_loop_is_deleted_after_a_question_and_a_failure_keeps_the_question(place):
    world, served, driver, folder = place
    log = world.write("deleting", [turn_start(1), turn_end(1), created(1, "one", 60, NOW), created(2, "two", 60, NOW)])
    heard, answers, go = [], [Answer(ok=False, text="the disk is full"), Answer(ok=True, text="Deleted.")], []

    async def execute(request):
        heard.append((request.session_id, request.line))
        go.append(threading.Event())
        await anyio.to_thread.run_sync(go[-1].wait)
        return answers.pop(0)

    with owned(log, folder / "run", execute):
        shown = Shown(driver, f"{served.address}session/deleting")
        shown.until(lambda: shown.all("li button.delete:enabled"))
        row = shown.all("li")[0]
        assert not row.find_element(By.CSS_SELECTOR, ".confirm").is_displayed()

        def part(selector):
            return row.find_element(By.CSS_SELECTOR, selector)

        part("button.delete").click()
        assert part(".question").is_displayed()
        part("button.no").click()
        assert not part(".question").is_displayed()
        assert heard == []

        part("button.delete").click()
        part("button.yes").click()
        shown.until(lambda: go)
        assert (row.get_attribute("aria-busy"), part("button.yes").text) == ("true", "Deleting…")
        assert not part("button.yes").is_enabled()
        assert not part("button.no").is_enabled()
        go[0].set()
        shown.until(lambda: part("[role=alert]").is_displayed())
        assert part("[role=alert]").text == "It was not deleted: the disk is full"
        assert part(".question").is_displayed()
        assert part("button.yes").is_enabled()

        part("button.yes").click()
        shown.until(lambda: len(go) == 2)
        assert not part("[role=alert]").is_displayed()
        go[1].set()
        shown.until(lambda: driver.execute_script("return [...view.rows.values()][0].answeredAt") is not None)
        # answered, but the log does not show it yet
        assert row.get_attribute("aria-busy") == "true"
        shown.advance(30_001)
        assert "the log does not show it" in part("[role=alert]").text
        add_events(log, deleted(1))
        shown.until(lambda: shown.texts("li h3") == ["two"])
        assert heard == [("deleting", f"/loop delete {loop_id(1)}")] * 2
    # its owner is gone
    shown.until(lambda: not shown.one("button.delete").is_enabled())
    assert shown.one("#loops .note").text.startswith("No running agent has this session open")
    assert driver.get_log("browser") == []


def without_its_server_the_page_says_so_and_deletes_nothing(place):
    world, served, driver, folder = place
    log = world.write("alone", [turn_start(1), turn_end(1), created(1, "one", 60, NOW)])
    with owned(log, folder / "run", refuse):
        shown = Shown(driver, f"{served.address}session/alone")
        shown.until(lambda: shown.all("li button.delete:enabled"))
        served.process.send_signal(signal.SIGINT)
        shown.until(lambda: shown.one("#connection").is_displayed())
        # a second signal while it ends would end it in the middle of that
        served.process.wait(LIMIT)
    assert not shown.one("button.delete").is_enabled()
    assert shown.one("#connection").text.startswith("The connection to `dsh-acp-agent ui` is lost.")
    assert shown.one("#loops .note").text == "Loops cannot be deleted while this page is not connected."


def test_a_person_watches_sessions_and_deletes_loops_until_the_server_ends():
    # one test, so that one browser and one server are enough
    with short_directory() as folder:
        world = CommandWorld(folder / "sessions", environment={"TZ": "UTC", "HOME": str(folder)})
        with page(world.environment, "--no-open") as served, browser(folder / "profile") as driver:
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOCK})
            place = world, served, driver, folder
            a_session_without_loops_says_how_one_is_made_and_shows_what_happens(place)
            loops_count_down_are_due_and_overdue_in_the_order_in_which_they_come(place)
            a_loop_is_deleted_after_a_question_and_a_failure_keeps_the_question(place)
            without_its_server_the_page_says_so_and_deletes_nothing(place)
