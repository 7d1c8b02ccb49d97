"""Files through the editor: what is asked of it, what its answers mean, when the disk answers instead."""

from pathlib import Path
from typing import Any

import pytest

from acp_bridge.client_files import CONTENT_BYTES, ClientFiles
from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from agent_loop.abort import AbortController
from agent_loop.tools.files.seam import WHOLE_LIMIT, FileProblem, Place
from tests.support.bridge_world import bridge_world
from tests.support.file_tools import TOOLS
from tests.support.scripted_adapter import calls, says

NOT_FOUND = RpcError(-32002, "Resource not found")
REFUSED = RpcError(-32603, "the buffer is locked")


class Editor:
    """The client's end of the wire: gives `answers` in order, and keeps what was asked."""

    congested = False

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def request(self, method: str, params: dict[str, Any], *, signal: Any = None, on_late: Any = None) -> Any:
        self.asked.append((method, params))
        answer = self._answers.pop(0)
        if isinstance(answer, AbortController):
            answer.abort("cancel")
            raise RpcError(-32800, "cancelled")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def drained(self) -> None: ...
    def notify(self, method: str, params: dict[str, Any], /) -> None: ...
    def notify_encoded(self, frame: bytes, /) -> None: ...
    def post(self, method: str, params: dict[str, Any], /) -> None: ...


class Session:
    """One file, on the disk when `stored` is given, and the editor in front of it."""

    def __init__(self, folder: Path, *answers: Any, stored: str | None = None, inside: bool = True, **offers: bool):
        self.path = folder / "a.txt"
        if stored is not None:
            self.path.write_text(stored)
        self.editor = Editor(*answers)
        self.abort = AbortController()
        self.place = Place(str(self.path), str(self.path), inside)
        self.files = ClientFiles(self.editor, "s1", **{"reads": True, "writes": True, **offers})

    async def read(self) -> str | None:
        return await self.files.read(self.place, signal=self.abort)

    async def write(self, text: str) -> None:
        await self.files.write(self.place, text, signal=self.abort)


async def test_what_the_editor_holds_is_read_and_written(tmp_path: Path):
    session = Session(tmp_path, {"content": "unsaved"}, {}, stored="saved")
    assert await session.read() == "unsaved"
    await session.write("new")
    assert session.editor.asked == [
        ("fs/read_text_file", {"sessionId": "s1", "path": str(session.path)}),
        ("fs/write_text_file", {"sessionId": "s1", "path": str(session.path), "content": "new"}),
    ]
    assert session.path.read_text() == "saved", "the editor writes, not we"


async def test_only_what_is_offered_is_asked_for(tmp_path: Path):
    reads = Session(tmp_path, {"content": "unsaved"}, stored="saved", writes=False)
    assert await reads.read() == "unsaved"
    await reads.write("new")
    assert reads.path.read_text() == "new"
    writes = Session(tmp_path, {}, reads=False)
    assert await writes.read() == "new"
    window = await writes.files.window(writes.place, first=1, count=5, signal=writes.abort)
    assert window.lines == ("new",)
    await writes.write("newer")
    assert [method for method, _ in reads.editor.asked + writes.editor.asked] == [
        "fs/read_text_file",
        "fs/write_text_file",
    ]


@pytest.mark.parametrize(
    ("answer", "stored", "inside", "text"),
    [
        (NOT_FOUND, None, True, None),
        (REFUSED, None, True, None),
        ({"content": ""}, None, True, None),
        ({"content": "a new buffer"}, None, True, "a new buffer"),
        ({"content": ""}, "saved", True, ""),
        (NOT_FOUND, "saved", True, "saved"),
        (REFUSED, "saved", False, "saved"),
    ],
)
async def test_a_file_that_the_editor_does_not_know_is_that_of_the_disk(tmp_path, answer, stored, inside, text):
    assert await Session(tmp_path, answer, stored=stored, inside=inside).read() == text


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (REFUSED, "IO", "the editor did not read {}: the buffer is locked"),
        ({}, "IO", "the editor's answer for {} has no text: content: Field required"),
        ({"content": None}, "IO", "the editor's answer for {} has no text"),
        (ConnectionClosed(), "aborted", "the editor went away before it answered for {}"),
    ],
)
async def test_an_answer_without_text_is_an_error(tmp_path: Path, answer, code, said):
    session = Session(tmp_path, answer, stored="saved")
    with pytest.raises(FileProblem) as problem:
        await session.read()
    assert problem.value.code == code
    assert problem.value.message.startswith(said.format(session.path))


async def test_what_is_no_text_is_never_asked_for(tmp_path: Path):
    session = Session(tmp_path, stored="bin\0ary")
    with pytest.raises(FileProblem) as problem:
        await session.read()
    assert problem.value.code == "NOT_TEXT"
    assert session.editor.asked == []


async def test_a_write_that_is_refused_inside_the_workspace_fails_and_outside_goes_to_the_disk(tmp_path: Path):
    session = Session(tmp_path, REFUSED, stored="saved")
    with pytest.raises(FileProblem, match="the editor did not write "):
        await session.write("new")
    assert session.path.read_text() == "saved"
    outside = Session(tmp_path, REFUSED, stored="saved", inside=False)
    await outside.write("new")
    assert outside.path.read_text() == "new"


@pytest.mark.parametrize("text", ["bytes \udcff", "x" * CONTENT_BYTES])
async def test_what_does_not_fit_into_a_frame_is_written_to_the_disk(tmp_path: Path, text: str):
    session = Session(tmp_path)
    await session.write(text)
    assert session.path.read_bytes() == text.encode("utf-8", "surrogateescape")
    assert session.editor.asked == []


async def test_of_a_large_file_only_the_lines_are_asked_for(tmp_path: Path):
    session = Session(tmp_path, {"content": "three\nfour\nfive"}, REFUSED, stored="")
    with session.path.open("wb") as file:
        file.write(b"1\n2\n" + b"x" * 9000)
        file.truncate(WHOLE_LIMIT + 1)
    with pytest.raises(FileProblem) as problem:
        await session.read()
    assert problem.value.code == "TOO_LARGE"
    window = await session.files.window(session.place, first=3, count=2, signal=session.abort)
    assert (window.lines, window.first, window.total, window.more) == (("three", "four"), 3, None, True)
    assert session.editor.asked == [
        ("fs/read_text_file", {"sessionId": "s1", "path": str(session.path), "line": 3, "limit": 3})
    ]
    window = await session.files.window(session.place, first=2, count=1, signal=session.abort)
    assert window.lines == ("2",), "the editor refuses it, the disk has it"


async def test_the_end_of_the_turn_ends_the_wait(tmp_path: Path):
    session = Session(tmp_path, stored="x")
    session.editor = Editor(session.abort)
    session.files = ClientFiles(session.editor, "s1", reads=True, writes=True)
    with pytest.raises(FileProblem) as problem:
        await session.read()
    assert problem.value.code == "aborted"
    assert problem.value.message == f"the turn ended before the editor answered for {session.path}"


async def test_a_cancelled_turn_withdraws_the_question_to_the_editor(tmp_path: Path):
    (tmp_path / "a.txt").write_text("saved")
    read = calls(("c1", "read", {"file_path": "a.txt"}))
    fs = {"fs": {"readTextFile": True}}
    async with bridge_world(read, cwd=tmp_path, capabilities=fs) as world:
        world.agents.tools.register(TOOLS["read"])
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        asked = await world.request("fs/read_text_file")
        await world.notify("session/cancel", sessionId=session)
        withdrawn = await world.request("$/cancel_request")
        assert withdrawn["params"] == {"requestId": asked["id"]}
        assert (await world.answer(prompt))["result"] == {"stopReason": "cancelled"}
    assert world.updates[-1][1]["status"] == "failed"


async def test_what_a_person_types_while_the_question_stands_is_not_overwritten(tmp_path: Path):
    (tmp_path / "a.txt").write_text("saved\n")
    edit = calls(("c2", "edit", {"file_path": "a.txt", "old_string": "buffer", "new_string": "text"}))
    fs = {"fs": {"readTextFile": True, "writeTextFile": True}}
    async with bridge_world(
        calls(("c1", "read", {"file_path": "a.txt"})), edit, says("done"), cwd=tmp_path, capabilities=fs
    ) as world:
        for name in ("read", "edit"):
            world.agents.tools.register(TOOLS[name])
        prompt = await world.send_prompt(await world.new_session())
        buffer = "the buffer\n"

        async def serve_reads(method: str) -> dict[str, Any]:
            while True:
                frame = await world.until(lambda frame: "method" in frame and "id" in frame)
                if frame["method"] == method:
                    return frame
                assert frame["method"] == "fs/read_text_file"
                await world.send_frames({"id": frame["id"], "result": {"content": buffer}})

        question = await serve_reads("session/request_permission")
        # the person types on while the question stands
        buffer = "the buffer, longer\n"
        await world.send_frames({"id": question["id"], "result": {"outcome": _chosen("allow_once")}})
        frame = await world.request("fs/read_text_file")
        await world.send_frames({"id": frame["id"], "result": {"content": buffer}})
        assert (await world.answer(prompt))["result"] == {"stopReason": "end_turn"}
    assert question["params"]["toolCall"]["content"] == [
        {"type": "diff", "path": f"{tmp_path}/a.txt", "oldText": "the buffer\n", "newText": "the text\n"}
    ]
    last = [update for _, update in world.updates if update.get("toolCallId") == "c2"][-1]
    assert last["status"] == "failed"
    assert "has changed since it was read" in last["content"][0]["content"]["text"]


def _chosen(option: str) -> dict[str, str]:
    return {"outcome": "selected", "optionId": option}
