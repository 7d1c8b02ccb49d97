"""Where the configuration file is, what its raw table says about keys and models."""

import os

import pytest

from acp_bridge.config_file import (
    Flags,
    RawConfig,
    allowed_variables,
    chosen_provider,
    config_path,
    configured_keys,
    images_taken,
    key_variable,
    key_variables,
    keys_are_wanted,
    read_config,
    split_model,
    wanted_model,
)

TABLE = {
    "model": "mine/big",
    "providers": {
        "mine": {"key_variable": "MINE", "key": "k-1"},
        "free": {"key": 3},
        "odd": 3,
        "empty": {"key_variable": ""},
    },
}


def test_the_flag_names_the_file_then_the_variable_then_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    environment = {"DSH_CONFIG": "/etc/b.toml"}
    assert config_path(Flags(config="/etc/a.toml"), environment) == "/etc/a.toml"
    assert config_path(Flags(), environment) == "/etc/b.toml"
    assert config_path(Flags(config="a.toml"), {}) == os.path.abspath("a.toml")
    assert config_path(Flags(), {}) == str(tmp_path / "dsh-acp-agent" / "config.toml")


def test_a_file_is_read(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("model = 'm'\n")
    assert read_config(Flags(config=str(path)), {}) == RawConfig(str(path), {"model": "m"})


def test_an_absent_file_is_an_empty_table_and_a_problem_only_when_it_was_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_config(Flags(), {}) == RawConfig(str(tmp_path / "dsh-acp-agent" / "config.toml"), {})
    gone = str(tmp_path / "gone.toml")
    asked = RawConfig(gone, {}, "the file does not exist")
    assert read_config(Flags(config=gone), {}) == asked
    assert read_config(Flags(), {"DSH_CONFIG": gone}) == asked


@pytest.mark.parametrize("content", [b"a = \n", b"a = '\xff'\n", b"a = 1\na = 2\n"])
def test_a_broken_file_is_an_empty_table_and_a_problem(tmp_path, content):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    raw = read_config(Flags(config=str(path)), {})
    assert raw.table == {}
    assert raw.problem


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    assert "Is a directory" in str(read_config(Flags(config=str(tmp_path)), {}).problem)


def test_every_key_and_every_variable_of_a_key_is_found_whatever_else_is_wrong():
    assert key_variables(TABLE) == ["DEEPSEEK_API_KEY", "MINE"]
    assert configured_keys(TABLE) == {"mine": "k-1"}
    assert key_variables({"providers": []}) == ["DEEPSEEK_API_KEY"]
    assert configured_keys({}) == {}


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ({"env": {"allow": ["A", 3, "B"]}}, ["A", "B"]),
        ({"env": {"allow": "A"}}, []),
        ({"env": {}}, []),
        ({"env": 3}, []),
        ({}, []),
    ],
)
def test_names_that_commands_may_see_are_found_whatever_else_is_wrong(table, names):
    assert allowed_variables(table) == names


@pytest.mark.parametrize(
    ("name", "split"),
    [
        (None, ("deepseek", None)),
        (3, ("deepseek", None)),
        ("mine", ("mine", None)),
        ("mine/big", ("mine", "big")),
        ("mine/with/slashes", ("mine", "with/slashes")),
        ("deepseek/pro", ("deepseek", "pro")),
        ("pro", ("deepseek", "pro")),
        ("unknown/pro", ("deepseek", "unknown/pro")),
    ],
)
def test_a_model_is_named_with_its_provider_or_is_one_of_deepseek(name, split):
    assert split_model(name, TABLE["providers"]) == split


def test_the_flag_asks_for_the_model_then_the_variable_then_the_file():
    assert wanted_model(TABLE, Flags(model="a"), {"DSH_MODEL": "b"}) == "a"
    assert wanted_model(TABLE, Flags(), {"DSH_MODEL": "b"}) == "b"
    assert wanted_model(TABLE, Flags(), {}) == "mine/big"


def test_the_chosen_provider_is_that_of_the_chosen_model_and_has_its_own_key_variable():
    for table, flags, provider, variable in (
        ({}, Flags(), "deepseek", "DEEPSEEK_API_KEY"),
        (TABLE, Flags(), "mine", "MINE"),
        (TABLE, Flags(model="free"), "free", None),
        (TABLE, Flags(model="odd"), "odd", None),
    ):
        assert chosen_provider(table, flags, {}) == provider
        assert key_variable(table, provider) == variable


def test_a_replay_wants_no_key_unless_it_plays_the_signing_in():
    assert keys_are_wanted({})
    assert keys_are_wanted({"DSH_SNAPSHOT": "record"})
    assert not keys_are_wanted({"DSH_SNAPSHOT": "replay"})
    assert keys_are_wanted({"DSH_SNAPSHOT": "replay", "DSH_SNAPSHOT_AUTH": "1"})


@pytest.mark.parametrize(
    ("models", "taken"),
    [
        ([{"id": "a"}, {"id": "b", "images": True}], True),
        ([{"id": "a", "images": False}], False),
        ([{"id": "a", "images": "yes"}, 5], False),
        ("odd", False),
        (None, False),
    ],
)
def test_images_are_taken_when_some_configured_model_says_so(models, taken):
    table = {"providers": {"odd": 3, "mine": {"models": models}}}
    assert images_taken(table) is taken
    assert not images_taken({})
