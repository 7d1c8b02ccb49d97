"""bash through the wire: the terminal card with live output, and the fenced block of an editor without terminals."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import agent, agent_home, selected
from tests.support.bash_calls import bash_call, done

LIVE_LIMIT = 256 * 1024
ON_LOAD = 4 * 1024
NOTHING = "(no output)\n"
UNTIL_GO = "until [ -e go ]; do sleep 0.05; done"


@dataclass
class Card:
    """What an editor has on the screen for one call."""

    title: str
    opened_content: list
    info: dict | None = None
    statuses: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    exits: list[dict] = field(default_factory=list)
    content: list | None = None
    raw: dict | None = None

    @property
    def joined(self):
        return "".join(self.output)

    @property
    def said(self):
        return "".join(block["content"]["text"] for block in self.content or ())


def cards(updates):
    """The cards by id, as an editor builds them up."""
    screen = {}
    for update in updates:
        meta = update.get("_meta") or {}
        if update["sessionUpdate"] == "tool_call":
            card = Card(update["title"], update.get("content", []), meta.get("terminal_info"))
            assert update["toolCallId"] not in screen
            screen[update["toolCallId"]] = card
        elif update["sessionUpdate"] == "tool_call_update":
            card = screen[update["toolCallId"]]
            card.content = update.get("content", card.content)
            card.raw = update.get("rawOutput", card.raw)
        else:
            continue
        assert not card.exits, "nothing follows the exit of a terminal"
        card.statuses += [update["status"]] if "status" in update else []
        for name, rows, value in (("terminal_output", card.output, "data"), ("terminal_exit", card.exits, None)):
            if row := meta.get(name):
                assert row["terminal_id"] == update["toolCallId"]
                rows.append(row[value] if value else {key: row[key] for key in ("exit_code", "signal")})
    return screen


def rejecting(command):
    """Allows everything but `command`."""

    def answer(frame):
        wanted = "reject_once" if frame["params"]["toolCall"]["title"] == command else "allow_once"
        return selected(frame, wanted)

    return answer


ENDS = {
    "success": bash_call("printf 'a\\nb\\n'; printf 'c\\n' >&2"),
    "non-zero": bash_call("echo bad; exit 3"),
    "signal": bash_call("echo dying; kill -KILL $$"),
    "timeout": bash_call("echo early; sleep 60", timeoutMs=300),
    "silent": bash_call("true"),
    "rejected": bash_call("rm -rf nothing"),
    "no directory": bash_call("pwd", workdir="absent"),
}


def call_id_of(answer):
    return answer["tool_calls"][0]["id"]


async def test_every_end_of_a_command_is_one_terminal_exit_live_and_on_every_load(tmp_path):
    cancelled = bash_call("echo started; sleep 60")
    script = [part for answer in ENDS.values() for part in (answer, done())] + [cancelled]
    async with model_server(script) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, permission=rejecting("rm -rf nothing")) as editor:
            await editor.initialize(terminal=True)
            session = await editor.new_session()
            for _ in ENDS:
                assert await editor.prompt(session) == "end_turn"
            prompt = await editor.send_prompt(session)
            await editor.until(lambda frame: "started" in str(frame.get("params", {}).get("update", {}).get("_meta")))
            await editor.notify("session/cancel", sessionId=session)
            assert (await editor.answer(prompt))["result"] == {"stopReason": "cancelled"}
            live = cards(editor.updates())
            seen = len(editor.entries)
            await editor.load(session)
            again = cards(editor.updates(since=seen))
        async with agent(home) as editor:
            await editor.initialize(terminal=True)
            await editor.load(session)
            loaded = cards(editor.updates())
    ended = {name: live[call_id_of(answer)] for name, answer in ENDS.items()}
    assert sorted(ended["success"].joined.splitlines()) == ["a", "b", "c"]
    assert {name: card.joined for name, card in ended.items() if name != "success"} == {
        "non-zero": "bad\n",
        "signal": "dying\n",
        "timeout": "early\n",
        "silent": "",
        "rejected": "",
        "no directory": "",
    }
    none = {"exit_code": None, "signal": None}
    assert {name: card.exits for name, card in ended.items()} == {
        "success": [{"exit_code": 0, "signal": None}],
        "non-zero": [{"exit_code": 3, "signal": None}],
        "signal": [{"exit_code": None, "signal": "SIGKILL"}],
        "timeout": [{"exit_code": None, "signal": "SIGTERM"}],
        "silent": [{"exit_code": 0, "signal": None}],
        "rejected": [none],
        "no directory": [none],
    }
    for name, card in ended.items():
        started = name not in {"rejected", "no directory"}
        assert (card.content is None) == started, "only a command that never ran says why in content"
        assert card.info == {
            "terminal_id": call_id_of(ENDS[name]),
            "cwd": str(Path(home.cwd, "absent")) if name == "no directory" else home.cwd,
        }
        assert card.opened_content[-1] == {"type": "terminal", "terminalId": call_id_of(ENDS[name])}
        assert card.statuses[0] == "pending"
    assert ended["timeout"].raw["timedOut"] is True
    aborted = live[call_id_of(cancelled)]
    assert (aborted.joined, aborted.exits) == ("started\n", [{"exit_code": None, "signal": "SIGTERM"}])
    assert aborted.statuses[-1] == "failed"
    for screen in (again, loaded):
        assert screen.keys() == live.keys()
        for call_id, card in screen.items():
            before = live[call_id]
            assert (card.joined, card.exits, card.content, card.raw) == (
                before.joined,
                before.exits,
                before.content,
                before.raw,
            )


async def test_output_is_shown_while_the_command_runs_and_never_twice(tmp_path):
    call = bash_call(f"printf 'grün \\033[32mok\\033[0m \\033]0;title\\007\\n'; {UNTIL_GO}; echo two")
    async with model_server([call, done()]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            await editor.initialize(terminal=True)
            session = await editor.new_session()
            prompt = await editor.send_prompt(session)
            await editor.until(lambda frame: "ok" in str(frame.get("params", {}).get("update", {}).get("_meta")))
            home.touch("go")
            await editor.answer(prompt)
            (card,) = cards(editor.updates()).values()
    assert card.joined == "grün \x1b[32mok\x1b[0m \ntwo\n"
    assert len(card.output) == 2
    assert card.statuses == ["pending", "in_progress", "completed"]


async def test_a_flood_is_live_up_to_the_cap_then_its_end_and_on_load_both_ends(tmp_path):
    whole = "".join(f"{number}\n" for number in range(1, 50001))
    async with model_server([bash_call("seq 1 50000"), done()]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            await editor.initialize(terminal=True)
            session = await editor.new_session()
            await editor.prompt(session)
            (live,) = cards(editor.updates()).values()
        async with agent(home) as editor:
            await editor.initialize(terminal=True)
            await editor.load(session)
            (loaded,) = cards(editor.updates()).values()
    shown, _, ending = live.joined.partition("[")
    assert whole.startswith(shown)
    assert len(shown) == LIVE_LIMIT
    _dropped, _, ending = ending.partition(" bytes not shown]\n")
    assert len(ending) > 40_000
    assert whole.endswith(ending)
    head, _, rest = loaded.joined.partition("\x1b[0m\n[")
    missing, _, tail = rest.partition(" bytes not shown]\n")
    assert len(loaded.joined) <= ON_LOAD + 100
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + int(missing) + len(tail) == len(whole)
    assert live.exits == loaded.exits == [{"exit_code": 0, "signal": None}]
    assert live.raw["truncated"] is True
    (spilled,) = live.raw["spillPaths"]
    assert home.read(spilled) == whole


async def test_without_terminals_the_card_ends_with_fenced_console_text(tmp_path):
    commands = {
        "echo ok": "```console\nok\n```",
        "echo '```'; exit 2": "````console\n```\n[exit code: 2]\n````",
        "true": "```console\n(no output)\n```",
    }
    script = [part for command in commands for part in (bash_call(command), done())]
    async with model_server(script) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            for _ in commands:
                await editor.prompt(session)
            live = cards(editor.updates())
        async with agent(home) as editor:
            await editor.initialize()
            await editor.load(session)
            loaded = cards(editor.updates())
    assert {card.title: card.said for card in live.values()} == commands
    for card in live.values():
        assert (card.info, card.output, card.exits) == (None, [], [])
        assert [block["type"] for block in card.opened_content] == ["content"]
    assert {key: card.content for key, card in loaded.items()} == {key: card.content for key, card in live.items()}


@pytest.mark.parametrize("terminal", [True, False])
async def test_what_a_command_leaves_running_is_named_and_not_waited_for(tmp_path, terminal):
    rows = {"sleep 60 & echo done": ("done\n", "sleep 60"), "setsid sleep 300": ("", "sleep 300")}
    script = [part for command in rows for part in (bash_call(command), done())]
    async with model_server(script) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, "--permission-mode", "full") as editor:
            await editor.initialize(terminal=terminal)
            session = await editor.new_session()
            for number, (output, left) in enumerate(rows.values()):
                assert await editor.prompt(session) == "end_turn"
                card = list(cards(editor.updates()).values())[-1]
                (pid,) = card.raw["background"]
                assert home.read(f"/proc/{pid}/comm") == "sleep\n"
                told = server.requests[2 * number + 1].body["messages"][-1]["content"]
                assert told == f"{output or NOTHING}[still running in background: {pid} ({left})]"
                assert card.exits == ([{"exit_code": 0, "signal": None}] if terminal else [])
                assert card.joined == (output if terminal else "")
                assert card.said == ("" if terminal else f"```console\n{told}\n```")
                assert card.statuses == ["in_progress", "completed"]


@pytest.mark.usefixtures("measured")
async def test_the_end_of_a_background_command_is_told_to_the_model_once(tmp_path):
    def answers(body):
        told = [message for message in body["messages"] if "background command bash-1" in str(message["content"])]
        if told:
            return done(f"told {len(told)} times")
        return bash_call("echo in the back", run_in_background=len(server.requests) == 1)

    async with model_server(answers) as server:
        home = agent_home(tmp_path, base_url=server.base_url, DSH_PERMISSION_MODE="full")
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            assert await editor.prompt(session) == "end_turn"
    assert editor.text() == "told 1 times"
    (notice,) = home.events(session, "context/message")
    assert notice["source"] == {"kind": "plugin", "plugin": "tool-bash"}
