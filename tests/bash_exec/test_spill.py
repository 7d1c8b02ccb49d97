"""Spill files: private, exclusive, capped, and never the end of a command when the disk refuses."""

import os
import resource
import stat

import anyio

from bash_exec.spill import SpillBudget, SpillFile, SpillFolder


def content(file: SpillFile) -> bytes:
    with open(file.path, "rb") as written:
        return written.read()


def files_below(folder) -> list[str]:
    return [name for _, _, names in os.walk(folder) for name in names]


def exists(path: str) -> bool:
    return os.path.exists(path)


async def test_a_stream_is_written_whole_into_a_private_file(tmp_path):
    folder = SpillFolder(tmp_path / "a" / "b")
    file = SpillFile(folder, SpillBudget(100))
    assert file.path is None
    assert await file.write(b"one ")
    assert await file.write(b"two")
    file.close()
    file.close()
    assert content(file) == b"one two"
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file.path)).st_mode) == 0o700


async def test_two_files_share_a_folder_and_no_name(tmp_path):
    folder = SpillFolder(tmp_path)
    files = [SpillFile(folder, SpillBudget(10)) for _ in range(2)]
    async with anyio.create_task_group() as group:
        for file in files:
            group.start_soon(file.write, b"x")
    for file in files:
        file.close()
    assert files[0].path != files[1].path
    assert os.path.dirname(files[0].path) == os.path.dirname(files[1].path)


async def test_the_cap_is_shared_and_exact(tmp_path):
    folder, budget = SpillFolder(tmp_path), SpillBudget(5)
    first, second, third = (SpillFile(folder, budget) for _ in range(3))
    assert await first.write(b"abc")
    assert await second.write(b"de")
    first.close()
    assert content(first) == b"abc"
    assert not await second.write(b"f")
    assert not await third.write(b"g")
    assert (second.path, third.path) == (None, None)
    assert files_below(tmp_path) == [os.path.basename(first.path)]


async def test_a_cancelled_writer_leaves_no_gap(tmp_path):
    file = SpillFile(SpillFolder(tmp_path), SpillBudget(100))
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert await file.write(b"one ")
    assert await file.write(b"two")
    file.close()
    assert content(file) == b"one two"


async def test_a_withdrawn_file_stays_away(tmp_path):
    file = SpillFile(SpillFolder(tmp_path), SpillBudget(100))
    assert await file.write(b"one")
    file.withdraw()
    file.withdraw()
    assert await file.write(b"two")
    assert file.path is None
    assert files_below(tmp_path) == []


async def test_a_folder_that_cannot_be_made_leaves_no_path(tmp_path):
    (tmp_path / "file").write_text("in the way")
    file = SpillFile(SpillFolder(tmp_path / "file"), SpillBudget(100))
    assert await file.write(b"x")
    assert await file.write(b"y")
    assert file.path is None


async def test_a_full_disk_takes_the_file_back(tmp_path):
    file = SpillFile(SpillFolder(tmp_path), SpillBudget(1 << 20))
    assert await file.write(b"x" * 10)
    path = file.path
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        assert await file.write(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.path is None
    assert not exists(path)


async def test_an_empty_folder_goes_and_one_with_files_stays(tmp_path):
    folder = SpillFolder(tmp_path)
    folder.close()
    file = SpillFile(folder, SpillBudget(100))
    await file.write(b"x")
    file.close()
    folder.close()
    assert exists(file.path)
    os.unlink(file.path)
    folder.close()
    assert os.listdir(tmp_path) == []
