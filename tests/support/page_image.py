"""`bin/page-image`: takes docs/images/ui.png from the real page of a session with loops."""

import sys
import time
from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from acp_bridge.owner.protocol import Answer, Request
from tests.support.browser import browser
from tests.support.page import created, owned, page, short_directory
from tests.support.session_commands import NOW, CommandWorld
from tests.support.session_turns import answer, delta, step_end, step_start, text, turn_end, turn_start, user

NIGHTLY = (
    "Read the log of the nightly run below ci/.\n"
    "Name the first test that failed and the commit that broke it; when all is green, say so in one line."
)
HEARTBEAT = (
    "<heartbeat>\n  <loop_id>loop_7c0d…</loop_id>\n  <prompt>Look whether the build is green.</prompt>\n</heartbeat>"
)
LOG = [
    ("session/title", {"title": "Keep an eye on the build", "by": "prompt"}),
    ("command/run", {"commandId": "c", "line": "/loop 600 Look whether the build is green."}),
    created(1, "Look whether the build is green.", 600, NOW + 252_000),
    created(2, NIGHTLY, 86_400, NOW + 31_260_000),
    ("command/done", {"commandId": "c", "ok": True, "text": "Every 10 m, for the first time in 10 m."}),
    turn_start(1),
    ("user/message", {"content": text(HEARTBEAT), "source": {"kind": "plugin", "plugin": "loop"}}),
    step_start(1, 1),
    delta(1, 1, "The build is **green**: 1,284 tests passed."),
    answer(1, 1),
    step_end(1, 1),
    turn_end(1),
    turn_start(2),
    user("Thanks. What changed since yesterday?"),
    step_start(2, 1),
    delta(2, 1, "Three commits since then; the last one renames"),
]
CLOCK = f"window.pageClock = {{ now: () => {NOW}, every: () => {{}} }};"


async def refuse(_request: Request) -> Answer:
    return Answer(ok=False, text="")


def main(target: Path) -> None:
    with short_directory() as folder:
        world = CommandWorld(folder / "sessions", environment={"TZ": "UTC", "HOME": str(folder)})
        session = "5b6d0a3e-4f0f-4f57-9f0e-2f5a1b6c7d8e"
        log = world.write(session, LOG, cwd="/home/ada/greetings", time=NOW - 400_000)
        with (
            page(world.environment, "--no-open") as served,
            owned(log, folder / "run", refuse),
            browser(folder / "profile") as driver,
        ):
            driver.set_window_size(1280, 1010)
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOCK})
            driver.get(f"{served.address}session/{session}")
            WebDriverWait(driver, 30).until(lambda _: driver.find_elements(By.CSS_SELECTOR, "button.delete:enabled"))
            WebDriverWait(driver, 30).until(lambda _: driver.find_elements(By.CSS_SELECTOR, "#growing article"))
            driver.find_elements(By.CSS_SELECTOR, "button.delete")[0].click()
            time.sleep(0.3)  # no event tells that the focus ring is drawn
            driver.save_screenshot(str(target))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
