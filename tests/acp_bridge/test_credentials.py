"""Where the key comes from, and what is said when there is none."""

from acp_bridge.credentials import Credential


def test_the_variable_wins_over_the_configured_key():
    assert Credential("MY_KEY", "from file", {"MY_KEY": " from env\n"}).key() == "from env"
    assert Credential("MY_KEY", "from file", {"MY_KEY": " "}).key() == "from file"
    assert Credential(None, "from file", {"MY_KEY": "from env"}).key() == "from file"
    assert Credential("MY_KEY", None, {}).key() is None


def test_only_a_provider_that_needs_a_key_misses_one():
    assert "set MY_KEY in the environment" in str(Credential("MY_KEY", None, {}).missing())
    assert Credential("MY_KEY", None, {"MY_KEY": "k"}).missing() is None
    assert Credential(None, None, {}).missing() is None


def test_a_replay_misses_nothing_and_names_no_variable():
    replaying = Credential("MY_KEY", None, {}, required=False)
    assert (replaying.missing(), replaying.key_variable) == (None, None)
    assert Credential("MY_KEY", None, {}).key_variable == "MY_KEY"


def test_no_key_shows_in_a_repr():
    assert "planted" not in repr(Credential("MY_KEY", "planted", {"MY_KEY": "planted too"}))
