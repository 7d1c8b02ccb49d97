"""What is kept beside a log by its content: written before it, read exactly, gone with it, copied by a fork."""

import os
import stat

import anyio
import pytest

from agent_loop.hooks import Hooks
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.attachments import (
    AttachmentFiles,
    image_type,
    is_ref,
    read_attachment,
    ref_of,
    refs_in,
    remove_attachments,
)
from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.live import LiveSessions
from agent_loop.session.log_file import FileOperations
from agent_loop.session.store import PersistenceError, SessionStoreError
from tests.support.session_turns import events_of, text_turn, turn_end, turn_start

PNG = b"\x89PNG\r\n\x1a\nand more"
HEADER = SessionHeader("s", 5, cwd="/there")


class Failing(FileOperations):
    """Fails as often as told."""

    def __init__(self, failures=1):
        self.failures = failures

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise OSError(28, "No space left on device")

    def write(self, descriptor, data):
        self._fail()
        return super().write(descriptor, data)


class NoSync(Failing):
    """As `Failing`, when something is made durable."""

    def write(self, descriptor, data):
        return FileOperations.write(self, descriptor, data)

    def sync(self, descriptor):
        self._fail()
        super().sync(descriptor)


def image_turn(ref):
    blocks = [{"type": "image", "mimeType": "image/png", "ref": ref}]
    said = ("user/message", {"content": blocks, "source": {"kind": "user"}})
    return [turn_start(1), said, turn_end(1)]


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x01\x02\x03\x04WEBPVP8", "image/webp"),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_its_first_bytes(data, mime):
    assert image_type(data) == mime


def test_only_what_can_be_a_name_is_one():
    assert is_ref(ref_of(b""))
    for other in ("../../etc/passwd", ref_of(b"").upper(), "a" * 63, None, 5):
        assert not is_ref(other)


def test_the_names_of_an_event_are_those_of_its_blocks():
    ref = ref_of(PNG)
    content = [{"type": "image", "ref": ref}, {"type": "image", "ref": "../x"}, {"type": "text", "text": "a"}, "odd"]
    assert list(refs_in(make_event("user/message", 0, 0, {"content": content}))) == [ref]
    for data in ({"content": "x"}, {}, None, "x"):
        assert list(refs_in(make_event("else", 0, 0, data))) == []


async def test_bytes_are_there_before_the_event_that_names_them_and_private(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    journal = store.create(HEADER)
    ref = journal.keep(PNG)
    assert await journal.attachment(ref) == PNG
    journal.write_pending()
    assert list(tmp_path.iterdir()) == [], "nothing is on disk before the first turn"
    for event in events_of(image_turn(ref)):
        journal.append(event)
    journal.write_pending()
    log = log_path(tmp_path, "s", "/there")
    path = log.with_name(log.name + ".files") / ref
    assert path.read_bytes() == PNG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await journal.flush()
    assert await journal.attachment(ref) == PNG
    assert await journal.attachment(ref_of(b"other")) is None
    await journal.close()
    opened = await store.load("s", "/there")
    assert await opened.journal.attachment(ref) == PNG
    await opened.journal.close()


async def test_the_same_bytes_are_kept_once(tmp_path):
    files = AttachmentFiles(tmp_path / "s.jsonl", FileOperations())
    ref = files.keep(PNG)
    files.write()
    before = (tmp_path / "s.jsonl.files" / ref).stat()
    assert files.keep(PNG) == ref
    files.write()
    assert (tmp_path / "s.jsonl.files" / ref).stat().st_mtime_ns == before.st_mtime_ns
    assert os.listdir(tmp_path / "s.jsonl.files") == [ref]
    files.sync()
    files.sync()


def test_what_could_not_be_written_or_made_durable_waits(tmp_path):
    files = AttachmentFiles(tmp_path / "s.jsonl", Failing())
    ref = files.keep(PNG)
    with pytest.raises(OSError, match="No space"):
        files.write()
    assert os.listdir(tmp_path / "s.jsonl.files") == []
    assert files.read(ref) == PNG
    files.write()
    assert read_attachment(tmp_path / "s.jsonl", ref) == PNG
    other = AttachmentFiles(tmp_path / "t.jsonl", NoSync())
    other.keep(PNG)
    other.write()
    with pytest.raises(OSError, match="No space"):
        other.sync()
    other.sync()


def test_changed_bytes_and_foreign_names_give_nothing(tmp_path):
    log = tmp_path / "s.jsonl"
    files = AttachmentFiles(log, FileOperations())
    ref = files.keep(PNG)
    files.write()
    (tmp_path / "s.jsonl.files" / ref).write_bytes(b"else")
    assert read_attachment(log, ref) is None
    (tmp_path / "x").write_bytes(PNG)
    assert read_attachment(log, "../x") is None
    remove_attachments(log)
    remove_attachments(log)
    assert read_attachment(log, ref) is None


async def test_a_full_disk_is_told_as_that_of_a_log_is(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=Failing())
    journal = store.create(HEADER)
    for event in events_of(image_turn(journal.keep(PNG))):
        journal.append(event)
    with pytest.raises(PersistenceError, match="No space"):
        journal.write_pending()
    await journal.close()
    with pytest.raises(PersistenceError, match="No space"):
        await JsonlSessionStore(tmp_path, VirtualRuntime(), operations=Failing()).keep(SessionHeader("t", 5), PNG)


async def test_what_cannot_be_read_is_an_error_and_not_an_absence(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    journal = store.create(HEADER)
    ref = journal.keep(PNG)
    for event in events_of(image_turn(ref)):
        journal.append(event)
    await journal.flush()
    log = log_path(tmp_path, "s", "/there")
    path = log.with_name(log.name + ".files") / ref
    path.unlink()
    path.mkdir()
    with pytest.raises(SessionStoreError, match="cannot be opened"):
        await journal.attachment(ref)
    stored = await store.read("s")
    with pytest.raises(SessionStoreError, match="cannot be opened"):
        await stored.attachment(ref)
    await journal.close()
    assert await store.delete("s")
    assert not path.exists()


async def opened(store):
    journal = store.create(HEADER)
    ref = journal.keep(PNG)
    for event in events_of(image_turn(ref)):
        journal.append(event)
    await journal.flush()
    assert await journal.attachment(ref) == PNG
    await journal.close()
    return ref


async def test_every_store_gives_what_was_kept_to_who_reads_and_to_who_loads(store):
    ref = await opened(store)
    log = await store.read("s")
    assert await log.attachment(ref) == PNG
    assert await log.attachment(ref_of(b"")) is None
    loaded = await store.load("s", "/there")
    assert await loaded.journal.attachment(ref) == PNG
    await loaded.journal.close()
    assert await store.delete("s")


async def test_a_fork_has_what_its_turns_name_and_outlives_its_parent(store):
    ref = await opened(store)
    sessions = LiveSessions(store, Hooks(lambda *_: None), VirtualRuntime())
    fork = await sessions.fork("s", cwd="/other")
    assert await store.delete("s")
    assert await fork.attachment(ref) == PNG
    await sessions.aclose()


async def test_a_fork_of_what_has_lost_its_image_is_a_fork_without_it(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    ref = await opened(store)
    remove_attachments(log_path(tmp_path, "s", "/there"))
    sessions = LiveSessions(store, Hooks(lambda *_: None), VirtualRuntime())
    fork = await sessions.fork("s", cwd="/other")
    assert await fork.attachment(ref) is None
    await sessions.aclose()


async def test_an_addition_that_fails_leaves_nothing_behind(store):
    header = SessionHeader("new", 5, cwd="/there")

    async def broken():
        await store.keep(header, PNG)
        yield events_of(text_turn(1))[0]
        raise anyio.BrokenResourceError

    with pytest.raises(anyio.BrokenResourceError):
        await store.add(header, broken())
    journal = store.create(header)
    assert await journal.attachment(ref_of(PNG)) is None
    await journal.close()


async def test_an_addition_under_a_name_that_is_taken_leaves_that_session_alone(store):
    ref = await opened(store)

    async def again():
        await store.keep(HEADER, PNG)
        for event in events_of(text_turn(1)):
            yield event

    with pytest.raises(PersistenceError):
        await store.add(HEADER, again())
    assert await (await store.read("s")).attachment(ref) == PNG
