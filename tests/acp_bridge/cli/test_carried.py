"""Images of an exported session: inside the file, and beside the log again after an import."""

import json

import anyio
import pytest

from acp_bridge.cli.carried import with_bytes, without_bytes
from agent_loop.session.attachments import AttachmentFiles, ref_of
from agent_loop.session.events import make_event
from agent_loop.session.log_file import FileOperations
from tests.support.session_commands import CommandWorld
from tests.support.session_turns import turn_end, turn_start

ID = "5b6d0a3e-4f0f-4f57-9f0e-2f5a1b6c7d8e"
PNG = b"\x89PNG\r\n\x1a\nand more"
NOTE = b"the key is value-of-the-key-42"
IMAGE = {"type": "image", "mimeType": "image/png", "ref": ref_of(PNG)}
TEXT = {"type": "resource", "uri": "file:///srv/app/a", "text": NOTE.decode(), "ref": ref_of(NOTE)}
GONE = {"type": "image", "mimeType": "image/png", "ref": ref_of(b"gone")}


@pytest.fixture
def world(tmp_path):
    return CommandWorld(tmp_path / "sessions", {"DEEPSEEK_API_KEY": "value-of-the-key-42", "HOME": str(tmp_path)})


def stored(world):
    said = {"content": [{"type": "text", "text": "see"}, IMAGE, TEXT, GONE], "source": {"kind": "user"}}
    path = world.write(ID, [turn_start(1), ("user/message", said), turn_end(1)])
    files = AttachmentFiles(path, FileOperations())
    files.keep(PNG)
    files.keep(NOTE)
    files.write()
    return path


def test_an_export_carries_the_image_and_an_import_puts_it_beside_the_log(world, tmp_path):
    stored(world)
    target = tmp_path / "out.jsonl"
    assert world.run("export", ID, "-o", str(target)).code == 0
    assert "value-of-the-key-42" not in target.read_text()
    blocks = json.loads(target.read_text().split("\n")[2])["data"]["content"]
    assert [sorted(block) for block in blocks] == [
        ["text", "type"],
        ["data", "mimeType", "ref", "type"],
        ["text", "type", "uri"],
        ["mimeType", "ref", "type"],
    ]
    assert world.run("delete", ID, "--yes").code == 0
    assert list(world.root.rglob("*.files")) == []
    assert world.run("import", str(target)).code == 0
    log = next(world.root.rglob("*.jsonl"))
    assert "data" not in json.loads(log.read_text().split("\n")[2])["data"]["content"][1]
    assert (log.with_name(log.name + ".files") / ref_of(PNG)).read_bytes() == PNG


def test_a_page_holds_no_bytes(world):
    stored(world)
    assert "[image]" in world.run("export", ID, "--format", "md").out


def test_what_does_not_fit_its_name_is_not_taken_out_of_a_file():
    blocks = [{**IMAGE, "data": value} for value in ("", "AAAA", "%", 5, None)]
    event, carried = without_bytes(make_event("user/message", 0, 0, {"content": [*blocks, "odd", {"type": "text"}]}))
    assert carried == []
    assert event.data["content"][:5] == [IMAGE] * 5


def test_an_event_that_names_nothing_is_the_same_one():
    event = make_event("turn/start", 0, 0, {"turn": 1})
    assert without_bytes(event) == (event, [])
    assert anyio.run(with_bytes, event, None) is event
