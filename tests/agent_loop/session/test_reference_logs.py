"""The recordings of the system that this one follows load here, wherever they are found."""

import os
from pathlib import Path

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import decode_event, decode_header, encode_event, encode_header
from agent_loop.session.events import make_event
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path

ROOT = Path(__file__).parents[3]
REFERENCE = Path(os.environ.get("DSH_REFERENCE", ROOT.parent / "shared" / "fixtures" / "dsh-2026-06-21"))


@pytest.mark.skipif(
    not REFERENCE.is_dir(),
    reason=f"the reference recordings are not here ({REFERENCE.name}; DSH_REFERENCE names their folder)",
)
@pytest.mark.parametrize("name", ["handshake", "text-turn", "tool-call-turn", "error-finish", "cancel"])
async def test_a_reference_log_loads_unchanged_and_is_written_alike(name, tmp_path):
    content = (REFERENCE / name / "session.jsonl").read_bytes()
    lines = content.splitlines(keepends=True)
    header = decode_header(lines[0])
    assert encode_header(header) == lines[0]
    assert b"".join(encode_event(make_event(*decode_event(line))) for line in lines[1:]) == b"".join(lines[1:])
    path = log_path(tmp_path, header.id, header.cwd)
    path.parent.mkdir()
    path.write_bytes(content)
    opened = await JsonlSessionStore(tmp_path, VirtualRuntime()).load(header.id, None)
    assert opened.event_count == len(lines) - 1
    await opened.journal.close()
    assert path.read_bytes() == content
