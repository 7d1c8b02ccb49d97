"""Where a stored key goes, and how it is found again."""

import pytest

from acp_bridge.credential_file import CredentialFile, CredentialStoreError
from acp_bridge.credential_store import CredentialStore, Kept
from tests.support.dict_keyring import DictKeyring


def store(tmp_path, keyring=None):
    return CredentialStore(CredentialFile(str(tmp_path / "keys" / "credentials.json")), keyring)


async def test_without_a_keyring_the_file_keeps_the_key(tmp_path):
    keys = store(tmp_path)
    assert await keys.find("one") is None
    assert await keys.save("one", "k-1") == Kept(keys.file.path)
    assert await keys.find("one") == "k-1"
    assert await store(tmp_path).find("one") == "k-1"
    assert await keys.forget("one")
    assert not await keys.forget("one")
    assert await keys.find("one") is None


async def test_a_keyring_keeps_it_and_the_file_only_says_so(tmp_path):
    keyring = DictKeyring()
    keys = store(tmp_path, keyring)
    assert await keys.save("one", "k-1") == Kept("the system keyring")
    assert keyring.keys == {"one": "k-1"}
    assert keys.entries()["one"].key is None
    assert list(keys.entries()) == ["one"]
    assert await keys.forget("one")
    assert keyring.keys == {}
    assert keys.entries() == {}


async def test_a_keyring_is_asked_once_for_each_login(tmp_path):
    keyring = DictKeyring()
    keys, other_process = store(tmp_path, keyring), store(tmp_path, keyring)
    await other_process.save("one", "k-1")
    keyring.asked = 0
    assert [await keys.find("one") for _ in range(3)] == ["k-1"] * 3
    assert keyring.asked == 1
    await other_process.save("one", "k-2")
    assert await keys.find("one") == "k-2"


@pytest.mark.parametrize(
    ("keyring", "why"),
    [
        (DictKeyring("save"), "it is locked"),
        (DictKeyring("find"), "it is locked"),
        (DictKeyring(forgetful=True), "it did not keep the key"),
    ],
)
async def test_where_the_keyring_does_not_work_the_file_keeps_the_key(tmp_path, keyring, why):
    keys = store(tmp_path, keyring)
    assert await keys.save("one", "k-1") == Kept(keys.file.path, why)
    assert await store(tmp_path).find("one") == "k-1"


async def test_a_key_that_the_keyring_does_not_give_is_missed_with_the_reason(tmp_path):
    keyring = DictKeyring()
    await store(tmp_path, keyring).save("one", "k-1")
    keyring.broken = {"find"}
    for opened, why in ((store(tmp_path, keyring), "it is locked"), (store(tmp_path), "`keyring` is missing")):
        with pytest.raises(CredentialStoreError, match=f"the key of one cannot be read .*{why}; log in again"):
            await opened.find("one")
    keyring.broken, keyring.keys = set(), {}
    with pytest.raises(CredentialStoreError, match="it is not there any more"):
        await store(tmp_path, keyring).find("one")


async def test_a_key_that_the_keyring_does_not_let_go_stays_stored(tmp_path):
    keyring = DictKeyring()
    keys = store(tmp_path, keyring)
    await keys.save("one", "k-1")
    keyring.broken = {"forget"}
    with pytest.raises(CredentialStoreError, match="did not remove the key of one: it is locked"):
        await keys.forget("one")
    assert await keys.find("one") == "k-1"
    assert await store(tmp_path).forget("one"), "without the package only the entry can be removed"
