"""Where keys come from, and what is said when there is none."""

import pytest

from acp_bridge.credential_file import CredentialFile
from acp_bridge.credential_store import CredentialStore
from acp_bridge.credentials import Credentials
from agent_loop.errors import LlmError
from bash_exec.secrets import SecretRegistry
from tests.support.dict_keyring import DictKeyring


def credentials(tmp_path, environment=None, configured=None, keyring=None, **changes):
    given = {
        "variables": {"mine": "MY_KEY", "free": None, "deepseek": "DS_KEY"},
        "environment": environment or {},
        "configured": configured or {},
        "store": CredentialStore(CredentialFile(str(tmp_path / "keys" / "credentials.json")), keyring),
        "secrets": SecretRegistry(),
    }
    return Credentials(**(given | changes))


async def test_the_environment_comes_before_the_store_and_the_store_before_the_configuration(tmp_path):
    keys = credentials(tmp_path, {"MY_KEY": " from env\n"}, {"mine": "from file", "free": "given"})
    await keys.store.save("mine", "from store")
    assert await keys.key("mine") == "from env"
    keys.environment = {"MY_KEY": " "}
    assert await keys.key("mine") == "from store"
    await keys.store.forget("mine")
    assert await keys.key("mine") == "from file"
    assert await keys.key("free") == "given"
    assert await keys.key("deepseek") is None
    assert await keys.key("unheard-of") is None


async def test_only_a_provider_that_needs_a_key_misses_one(tmp_path):
    keys = credentials(tmp_path)
    assert keys.missing("mine") == (
        "run `dsh-acp-agent login --provider mine` in a terminal, or set MY_KEY in the environment that your editor "
        "gives to the agent and restart it"
    )
    assert "run `dsh-acp-agent login` in" in keys.missing("deepseek")
    assert keys.missing("free") is None
    assert credentials(tmp_path, {"MY_KEY": "k"}).missing("mine") is None
    assert credentials(tmp_path, configured={"mine": "k"}).missing("mine") is None


async def test_a_key_that_another_process_stores_is_found_the_next_time(tmp_path):
    keys = credentials(tmp_path)
    assert keys.missing("mine")
    await credentials(tmp_path).store.save("mine", "k-0123456789")
    assert keys.missing("mine") is None
    assert await keys.key("mine") == "k-0123456789"


async def test_a_stored_key_is_known_to_redaction_before_anybody_has_it(tmp_path):
    keys = credentials(tmp_path)
    await keys.store.save("mine", "k-0123456789")
    for _ in range(2):
        assert await keys.key("mine")
    assert keys.secrets.redact("it is k-0123456789") == "it is [redacted:credentials.mine]"


async def test_who_has_signed_out_has_no_key_until_it_is_stored_or_asked_for_again(tmp_path):
    keys = credentials(tmp_path, {"MY_KEY": "from env"}, {"mine": "from file"})
    await keys.store.save("mine", "one")
    await keys.store.save("deepseek", "two")
    await keys.sign_out()
    assert keys.store.entries() == {}
    assert keys.missing("mine").startswith(
        "you have signed out; run `dsh-acp-agent login --provider mine` in a terminal"
    )
    assert await keys.key("mine") is None
    await keys.store.save("mine", "stored")
    assert keys.missing("mine") is None
    assert await keys.key("mine") == "stored"
    keys.look_again()
    assert await keys.key("mine") == "from env"


async def test_a_store_that_cannot_be_read_is_the_fix_and_the_error(tmp_path):
    keys = credentials(tmp_path)
    await keys.store.save("mine", "k")
    (tmp_path / "keys" / "credentials.json").write_text("damaged")
    assert "is damaged" in keys.missing("mine")
    with pytest.raises(LlmError, match="is damaged") as failed:
        await keys.key("mine")
    assert failed.value.code == "NO_CREDENTIAL"


async def test_a_keyring_is_not_asked_for_whether_there_is_a_key(tmp_path):
    keyring = DictKeyring()
    keys = credentials(tmp_path, keyring=keyring)
    await keys.store.save("mine", "k")
    keyring.broken = {"find"}
    assert keys.missing("mine") is None
    with pytest.raises(LlmError, match="it is locked"):
        await keys.key("mine")


async def test_a_replay_reads_no_key_and_misses_none_until_somebody_signs_out(tmp_path):
    replaying = credentials(tmp_path, {"MY_KEY": "k"}, store=None)
    assert await replaying.key("mine") is None
    assert credentials(tmp_path, store=None).missing("mine") is None
    await replaying.sign_out()
    assert "you have signed out" in replaying.missing("mine")
    replaying.look_again()
    assert replaying.missing("mine") is None


def test_no_key_shows_in_a_repr(tmp_path):
    assert "planted" not in repr(credentials(tmp_path, {"MY_KEY": "planted"}, {"mine": "planted"}))
