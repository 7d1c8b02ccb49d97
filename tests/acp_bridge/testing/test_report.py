import re
from html.parser import HTMLParser

from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.report import ReportRun, write_report
from tests.support.report_runs import agent, client, run_of, said
from tests.support.stub_scenario import prompt, stub_scenario

HOSTILE = "</script></pre><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\x1b[31m\u202e\ud800"
VOID = {"meta", "input"}


class Page(HTMLParser):
    """Checks that every element is closed where it must be; collects elements and text."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.tags = []
        self.ids = []
        self.targets = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        table = dict(attrs)
        assert not [name for name in table if name.startswith("on")]
        self.tags.append((tag, table))
        self.ids += [table["id"]] if "id" in table else []
        self.targets += [table["href"].removeprefix("#")] if "href" in table else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def written(tmp_path, *runs, **fields):
    path = tmp_path / "report.html"
    write_report(path, runs, **fields)
    return path.read_text(encoding="utf-8")


def test_a_hostile_text_is_text_wherever_it_stands(tmp_path):
    wire = (
        client(0, id=1, method="session/prompt", params={"prompt": HOSTILE}),
        agent(1, method=HOSTILE, params={HOSTILE: HOSTILE}),
        agent(2, **said(HOSTILE)),
    )
    run = ReportRun(HOSTILE, [HOSTILE], run_of(*wire), [{"method": HOSTILE, "params": {HOSTILE: 1}}])
    page = Page(written(tmp_path, run, title=HOSTILE))
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    assert "</script></pre><script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text
    assert "␛[31m" in page.text


def test_the_page_loads_nothing_and_forbids_scripts(tmp_path):
    source = written(tmp_path, ReportRun("one", [], run_of(agent(0, **said("x")))))
    page = Page(source)
    policy = [table["content"] for tag, table in page.tags if table.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object"}
    assert not re.search(r"url\(|@import|src=", source)


def test_every_link_of_the_page_has_its_target_once(tmp_path):
    different = [said("a"), said("b"), said("c")]
    run = run_of(transcript=[said("a"), said("x"), said("c"), said("d")])
    page = Page(
        written(tmp_path, *(ReportRun(name, ["red"], run, different) for name in "ab"), ReportRun("c", [], run))
    )
    assert len(page.ids) == len(set(page.ids))
    assert set(page.targets) <= set(page.ids)
    assert {"s1", "s1-d1", "s1-d2", "s2-d2", "s3"} <= set(page.targets)
    assert "s3-d1" not in page.ids


def test_the_overview_tells_verdicts_and_counts(tmp_path):
    red = ReportRun("red", ["it differs\n  at length"], run_of(transcript=[said("x")]), [said("y")])
    green = ReportRun("green", [], run_of(agent(1.25, **said("x"))), [{"jsonrpc": "2.0", **said("x")}])
    page = Page(written(tmp_path, red, green))
    assert "Scenarios: 2, failed: 1, passed: 1" in page.text
    assert "redfailed1100.00 sit differs" in page.text
    assert "greenpassed1001.25 s" in page.text
    opened = [("open" in table) for tag, table in page.tags if table.get("class") == "scenario"]
    assert opened == [True, False]


def test_differing_frames_are_marked_with_their_fields_and_equal_ones_are_folded(tmp_path):
    same = [said(f"same {number}") for number in range(10)]
    run = run_of(transcript=[*same, said("new"), {"method": "extra"}])
    page = Page(written(tmp_path, ReportRun("one", ["red"], run, [{"method": "missing"}, *same, said("old")])))
    assert [table["class"] for tag, table in page.tags if tag == "tr" and "id" in table] == [
        "missing",
        "changed",
        "extra",
    ]
    assert '$.params.update.content.text"old""new"' in page.text
    assert "4 equal frames" in page.text
    assert "3 of 13 rows differ" in page.text
    assert ("input", {"type": "checkbox", "checked": None}) in page.tags


def test_a_run_without_a_golden_says_so(tmp_path):
    page = Page(written(tmp_path, ReportRun("one", [], run_of(transcript=[said("x")]))))
    assert "no golden: nothing was compared" in page.text
    assert not [tag for tag, _ in page.tags if tag == "input"]


def test_what_looks_like_a_secret_is_not_shown(tmp_path):
    key = "sk-" + "a1b2" * 8
    block = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----"
    wire = (client(0, method="x", params=[{key: key}]), agent(1, **said(f"{'long ' * 30}{key}")))
    run = ReportRun("one", [f"stderr: {block}"], run_of(*wire), [said(key)])
    source = written(tmp_path, run)
    assert "a1b2" not in source
    assert "MIIE" not in source
    assert "[looks like a secret]" in source


def test_a_real_run_has_a_lane_for_each_session_and_the_time_of_each_frame(tmp_path):
    steps = [{"op": "newSession", "session": "b"}, prompt("say <b>hi</b>", session="b"), prompt("ask")]
    run = run_scenario(stub_scenario(tmp_path / "s", *steps, answers=[{"kind": "allow_once"}]))
    page = Page(written(tmp_path, ReportRun("s", [], run, run.transcript)))
    pictures = [table["aria-label"] for tag, table in page.tags if tag == "svg"]
    assert [picture.partition(":")[0] for picture in pictures] == ["connection", "session 1", "session 2"]
    assert [picture.rpartition(", ")[2] for picture in pictures] == ["0 prompts", "1 prompts", "1 prompts"]
    assert f"All {len(run.entries)} frames of the wire" in page.text
    assert {table["class"] for tag, table in page.tags if tag == "line"} == {"client", "said", "asked", "other"}
    times = [entry.at for entry in run.entries]
    assert times == sorted(times)
    assert times[0] > 0
    assert f"{times[-1]:.3f} s" in page.text
    assert "{{sessionId2}}" in page.text
