"""An exported page in a real browser: what a reader sees and clicks, and that nothing stored acts."""

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: the page is not opened in a browser")

from selenium.webdriver.common.by import By

from tests.support.browser import BROWSER, DRIVER, assert_readable, browser
from tests.support.session_commands import CommandWorld
from tests.support.session_turns import answer, delta, result, step_end, step_start, text, turn_end, turn_start, user
from tests.support.transcript_entries import MARKUP

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium with its driver here: the page is not opened in a browser"
)


def thought(value):
    chunk = {"type": "reasoning-delta", "index": 0, "text": value}
    return "assistant/chunk", {"turn": 1, "step": 1, "chunk": chunk}


def bash(call_id, output):
    call = {"callId": call_id, "name": "bash", "arguments": '{"command":"make","description":"build"}'}
    kind, data = result(1, 1, call_id, output)
    return [
        ("tool/call", {"turn": 1, "step": 1, **call}),
        (kind, {**data, "meta": {"output": output, "exitCode": 2}}),
    ]


ANSWER = f"# Head\n\n{MARKUP}\n\n- item\n\n[link](http://x.example/)\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n"
PLAN = [{"content": "done", "status": "completed"}, {"content": "open", "status": "pending"}]
LOG = [
    ("session/title", {"title": f"Title {MARKUP}", "by": "prompt"}),
    turn_start(1),
    user(f"prompt {MARKUP}"),
    step_start(1, 1),
    thought(f"thought {MARKUP}"),
    delta(
        1, 1, f"# Head\n\n{MARKUP}\n\n- item\n\n[link](http://x.example/)\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n"
    ),
    answer(1, 1),
    *bash("short", MARKUP),
    *bash("long", "line\n" * 40),
    (
        "plan/update",
        {"entries": [{"content": "done", "status": "completed"}, {"content": "open", "status": "pending"}]},
    ),
    ("session/notice", {"severity": "error", "title": "notice", "description": "why"}),
    step_end(1, 1),
    ("turn/end", {"turn": 1, "reason": {"kind": "error", "message": "503"}}),
    turn_start(2),
    ("context/message", {"content": text("ended"), "source": {"kind": "plugin", "plugin": "tool-bash"}}),
    turn_end(2),
]


def test_the_page_is_read_folded_and_safe_in_light_and_in_dark(tmp_path):
    world = CommandWorld(tmp_path / "sessions")
    world.write("s", LOG)
    page = tmp_path / "page.html"
    assert world.run("export", "s", "-o", str(page)).code == 0
    with browser(tmp_path / "profile") as driver:
        driver.get(page.as_uri())
        assert driver.title.startswith("Title </pre>")
        outputs = driver.find_elements(By.CSS_SELECTOR, "section.tool details")
        short, long = (output.find_element(By.TAG_NAME, "pre") for output in outputs)
        assert short.is_displayed()
        assert not long.is_displayed()
        outputs[1].find_element(By.TAG_NAME, "summary").click()
        assert long.text.count("line") == 40
        assert driver.find_element(By.CSS_SELECTOR, "article.agent h1").text == "Head"
        assert driver.find_elements(By.CSS_SELECTOR, "a, img, script, link, iframe") == []

        assert_readable(driver, texts=30)
        # nothing that was stored has acted, nothing was refused to the page itself
        assert driver.title.startswith("Title </pre>")
        assert driver.get_log("browser") == []
