"""Spill files: private, exclusive, capped, and never the end of a command when the disk refuses."""

import os
import resource
import stat

import anyio

from bash_exec.spill import SpillBudget, SpillFile, SpillFolder
from bash_exec.spill_pruning import prune
from tests.support.processes import open_descriptors


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
    assert file.path.startswith(str(tmp_path))
    (await overflow(tmp_path / "b")).close()
    assert os.listdir(tmp_path / "b") == []


# --- what has grown old -----------------------------------------------------------------------------------------

DAY = 86400
OLD = 15 * DAY


def left_behind(root, name="output-abcd_123", *, file="0123456789abcdef.txt", age=OLD, folder_age=OLD):
    """What an executor of `age` seconds ago left."""
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / file).write_text("output")
    now = os.stat(folder).st_mtime
    os.utime(folder / file, (now - age,) * 2)
    os.utime(folder, (now - folder_age,) * 2)
    return folder


async def overflow(root) -> SpillFolder:
    """An executor's folder whose first stream has overflown."""
    folder = SpillFolder(root)
    file = SpillFile(folder, SpillBudget(100))
    assert await file.write(b"x")
    file.withdraw()
    return folder


def names(root) -> list[str]:
    return sorted(os.listdir(root))


async def test_files_older_than_two_weeks_go_with_the_first_overflow(tmp_path):
    left_behind(tmp_path, "output-one_1111")
    young = left_behind(tmp_path, "output-two_2222", age=13 * DAY, folder_age=13 * DAY)
    mixed = left_behind(tmp_path, "output-mix_3333", file="00112233445566ff.txt", age=13 * DAY)
    left_behind(tmp_path, "output-mix_3333")
    (await overflow(tmp_path)).close()
    assert names(tmp_path) == [mixed.name, young.name]
    assert names(mixed) == ["00112233445566ff.txt"]
    assert names(young) == ["0123456789abcdef.txt"]


async def test_the_files_of_a_process_that_lives_stay_however_old_they_are(tmp_path):
    holder = await overflow(tmp_path)
    (name,) = os.listdir(tmp_path)
    left_behind(tmp_path, name)
    (await overflow(tmp_path)).close()
    assert names(tmp_path / name) == ["0123456789abcdef.txt"]
    holder.close()
    (await overflow(tmp_path)).close()
    assert names(tmp_path) == []


async def test_only_what_has_our_names_and_is_no_link_is_removed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "spill"
    root.mkdir()
    target = left_behind(elsewhere, "output-far_4444")
    (root / "output-lnk_5555").symlink_to(target)
    mine = left_behind(root, "output-own_6666", file="notes.txt")
    (mine / "0123456789abcdef.txt").symlink_to(target / "0123456789abcdef.txt")
    os.mkfifo(mine / "fedcba9876543210.txt")
    other = left_behind(root, "results-abcd123")
    (root / "output-fil_7777").write_text("no folder")
    for path in (root / "output-fil_7777", mine / "fedcba9876543210.txt", mine):
        os.utime(path, (0, 0))
    (await overflow(root)).close()
    assert names(root) == ["output-fil_7777", "output-lnk_5555", "output-own_6666", "results-abcd123"]
    assert names(mine) == ["0123456789abcdef.txt", "fedcba9876543210.txt", "notes.txt"]
    assert names(target) == names(other) == ["0123456789abcdef.txt"]


def test_a_folder_that_is_not_there_is_pruned_without_a_word(tmp_path):
    prune(str(tmp_path / "absent"), before=0)


async def test_a_closed_folder_leaves_no_descriptor(tmp_path):
    before = open_descriptors()
    folder = await overflow(tmp_path)
    folder.close()
    folder.close()
    assert open_descriptors() == before
