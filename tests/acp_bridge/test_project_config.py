"""A project's own configuration: what it may say, what is refused by name, and that it never fails a session."""

import os

import pytest

from acp_bridge.catalogue import DEEPSEEK_MODELS, Catalogue, Choice, ModelRow, Offer
from acp_bridge.composition.project import session_config, session_offer
from acp_bridge.config_file import Flags, RawConfig, project_file
from acp_bridge.permission.modes import MODES
from acp_bridge.project_config import MAX_BYTES, project_config
from acp_bridge.settings import Config, load_settings

FLASH, PRO = DEEPSEEK_MODELS
PLAIN = ModelRow("mine", "llama", "llama")
OFFER = Offer(MODES, Catalogue((FLASH, PRO, PLAIN)), Choice("ask", FLASH.value))


class Lines:
    """A log that keeps what it was told."""

    def __init__(self):
        self.problems = []

    def warning(self, event, **details):
        self.problems.append(details["problem"])


def project(folder, text):
    (folder / ".dsh-acp-agent.toml").write_text(text)
    return str(folder)


def offer(cwd, *, table=None, flags=None, base=OFFER, **environment):
    log = Lines()
    settings = load_settings(RawConfig("/c.toml", table or {}), flags or Flags(), environment)
    made, notices = session_offer(base, cwd, settings=settings, log=log)
    assert len(log.problems) == len(notices)
    return made.default, [f"{notice['title']} | {notice['description']}" for notice in notices]


def test_the_nearest_file_up_to_the_root_of_the_repository_counts(tmp_path):
    root, inner = tmp_path / "repo", tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    project(tmp_path, "")
    (root / ".git").mkdir()
    assert project_file(str(inner)) is None
    project(root, "")
    assert project_file(str(inner)) == str(root / ".dsh-acp-agent.toml")
    project(inner, "")
    assert project_file(str(inner)) == str(inner / ".dsh-acp-agent.toml")


def test_outside_a_repository_only_the_directory_itself_counts(tmp_path):
    (tmp_path / "a").mkdir()
    project(tmp_path, "")
    assert project_file(str(tmp_path / "a")) is None
    assert project_file(str(tmp_path)) is not None


def test_a_project_chooses_model_and_thinking_among_what_there_is(tmp_path):
    default, notices = offer(project(tmp_path, 'model = "deepseek-v4-pro"\nthinking = "max"\n'))
    assert (default, notices) == (Choice("ask", PRO.value, "max"), [])


def test_without_a_file_nothing_is_different(tmp_path):
    assert offer(str(tmp_path)) == (OFFER.default, [])
    assert session_config(Config(), str(tmp_path)) == Config()


@pytest.mark.parametrize("asked", [{"flags": Flags(model="deepseek-v4-flash")}, {"DSH_MODEL": "deepseek-v4-flash"}])
def test_the_command_line_and_the_environment_win_over_a_project(tmp_path, asked):
    assert offer(project(tmp_path, 'model = "deepseek-v4-pro"'), **asked)[0].model == FLASH.value


def test_what_no_project_can_set_is_refused_by_name(tmp_path):
    text = """
model = "deepseek-v4-pro"
executor = "local"
terminal = "client"
providers.evil = {base_url = "http://evil/v1", key_variable = "DEEPSEEK_API_KEY", models = [{id = "m"}]}
providers.empty = {}
permission.mode = "full"
permission.allow = ["rm"]
sessions.root = "/tmp"
env.allow = ["DEEPSEEK_API_KEY"]
"""
    default, (notice,) = offer(project(tmp_path, text))
    assert (default.mode, default.model) == ("ask", PRO.value)
    names = (
        "executor, terminal, providers.evil.base_url, providers.evil.key_variable, providers.evil.models, "
        "providers.empty, permission.mode, permission.allow, sessions.root, env.allow"
    )
    assert notice == (
        f"The project's configuration sets what no project can set | {tmp_path}/.dsh-acp-agent.toml: ignored: {names}"
    )


def test_of_very_many_refused_settings_the_first_are_named(tmp_path):
    text = "".join(f"providers.p{number}.key = 'k'\n" for number in range(13))
    (_default, (notice,)) = offer(project(tmp_path, text))
    assert notice.endswith("providers.p9.key and 3 more")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('modle = "x"', "modle: there is no such setting; did you mean 'model'?"),
        ("compaction.treshold = 0.5", "compaction.treshold: there is no such setting; did you mean 'threshold'?"),
        ("zzz = 1", "zzz: there is no such setting"),
        ("model = 5", "model: Input should be a valid string"),
        ("compaction.threshold = 7", "compaction.threshold: Input should be less than or equal to 1"),
        ("model = ", "Invalid value"),
        ("#" * (MAX_BYTES + 1), "it is larger than 64 KiB"),
    ],
)
def test_a_file_with_errors_is_named_and_the_session_is_there_all_the_same(tmp_path, text, says):
    default, (notice,) = offer(project(tmp_path, text))
    assert default == OFFER.default
    assert notice.startswith("The project's configuration cannot be used as it is | ")
    assert says in notice


def test_links_pipes_and_unreadable_bytes_are_not_read(tmp_path):
    path = tmp_path / ".dsh-acp-agent.toml"
    (tmp_path / "other").write_text('model = "deepseek-v4-pro"')
    path.symlink_to(tmp_path / "other")
    assert offer(str(tmp_path))[0] == OFFER.default
    path.unlink()
    os.mkfifo(path)
    assert "it is no regular file" in offer(str(tmp_path))[1][0]
    path.unlink()
    path.write_bytes(b"\xff")
    assert offer(str(tmp_path))[0] == OFFER.default


def test_a_model_or_level_that_is_not_offered_leaves_the_default(tmp_path):
    default, notices = offer(project(tmp_path, 'model = "gpt"\nthinking = "ultra"'))
    assert (default.model, OFFER.level(default)) == (FLASH.value, "high")
    assert notices == [
        f"{tmp_path}/.dsh-acp-agent.toml: the model 'gpt' is not offered | The session starts with {FLASH.value}.",
        "The thinking level 'ultra' is not offered | The session starts with high.",
    ]
    default, notices = offer(project(tmp_path, 'model = "mine/llama"\nthinking = "max"'))
    assert default.model == PLAIN.value
    assert notices == [
        (
            "This project chose the model mine/llama, of another provider than yours | "
            f"{tmp_path}/.dsh-acp-agent.toml. Another one can be chosen at any time."
        ),
        "The thinking level 'max' is not offered | The session starts with none.",
    ]


def test_tables_are_merged_setting_by_setting(tmp_path):
    user = Config.model_validate({"compaction": {"threshold": 0.5}, "executor": "sandbox"})
    cwd = project(tmp_path, "compaction.enabled = false")
    made = session_config(user, cwd)
    assert (made.compaction.enabled, made.compaction.threshold, made.executor) == (False, 0.5, "sandbox")
    assert project_config(cwd, user).given == ("compaction.enabled",)
