"""`login` and `logout` with everything but a terminal and a network."""

import io
from dataclasses import dataclass, field

import pytest

from acp_bridge.cli.login import DONE, NO_KEY, NOT_CHECKED, NOT_STORED, Account, Desk, log_in, log_out, show
from acp_bridge.cli.login_arguments import KeyCommand, parse_login, parse_logout
from acp_bridge.cli.parts import Streams
from acp_bridge.credential_file import CredentialFile, Entry
from acp_bridge.credential_store import CredentialStore
from agent_loop.llm.key_verdict import KeyVerdict
from bash_exec.secrets import SecretRegistry
from tests.support.dict_keyring import DictKeyring

KEY = "sk-0123456789"
MINE = Account("mine", "https://mine.test", "MY_KEY")
FREE = Account("free", "http://127.0.0.1", None)
GIVEN = Account("given", "https://given.test", "GIVEN_KEY", "in the file")
YES, NO, UNKNOWN = (KeyVerdict(kind, f"{kind}: {KEY}") for kind in ("accepted", "rejected", "unknown"))


@dataclass
class Person:
    """`typed` at the hidden question, `answers` to open ones, `verdicts` of the endpoint."""

    folder: object
    typed: list[str] | None = None
    answers: str = ""
    verdicts: list[KeyVerdict] = field(default_factory=lambda: [YES])
    environment: dict[str, str] = field(default_factory=dict)
    keyring: DictKeyring | None = None

    def __post_init__(self):
        self.out, self.err = io.StringIO(), io.StringIO()
        self.asked, self.checked = [], []
        self.desk = Desk(
            streams=Streams(self.out, self.err, io.StringIO(self.answers)),
            store=CredentialStore(CredentialFile(str(self.folder / "keys" / "credentials.json")), self.keyring),
            secrets=SecretRegistry(),
            environment=self.environment,
            ask=self._ask if self.typed is not None else None,
            check=self._check,
        )

    def _ask(self, question):
        self.asked.append(question)
        if not self.typed:
            raise EOFError
        return self.typed.pop(0)

    async def _check(self, key):
        self.checked.append(key)
        return self.verdicts.pop(0)

    @property
    def said(self):
        return self.err.getvalue()

    @property
    def stored(self):
        return dict(self.desk.store.entries())


def test_a_key_from_a_pipe_is_checked_and_stored(tmp_path):
    person = Person(tmp_path, answers=f" {KEY}\r\nmore\n")
    assert log_in(person.desk, MINE, verify=True) == DONE
    assert person.checked == [KEY]
    assert person.stored == {"mine": Entry(key=KEY)}
    assert "the key of mine is stored in " in person.said
    assert "an agent that runs finds it at the next prompt" in person.said
    assert KEY not in person.said + person.out.getvalue()


def test_a_key_that_is_typed_is_asked_for_without_an_echo_and_tried_three_times(tmp_path):
    person = Person(tmp_path, typed=["sk-wrong-1", "sk-wrong-2", KEY], verdicts=[NO, NO, YES])
    assert log_in(person.desk, MINE, verify=True) == DONE
    assert person.asked == ["Key for mine at https://mine.test (what you type is not shown): "] * 3
    person = Person(tmp_path, typed=["sk-wrong-1", "sk-wrong-2", "sk-wrong-3", KEY], verdicts=[NO, NO, NO])
    assert log_in(person.desk, MINE, verify=True) == NO_KEY
    assert person.said.count("try again") == 2
    assert person.said.endswith("nothing is stored\n")
    assert person.stored == {"mine": Entry(key=KEY)}, "the older one stays"


@pytest.mark.parametrize("given", ["", " \n", "two words\n", "sk-\u00e9\n", "sk-\x00a\n", "x" * 17_000])
@pytest.mark.parametrize("typed", [False, True])
def test_what_cannot_be_a_key_is_not_checked(tmp_path, given, typed):
    person = Person(tmp_path, typed=[given]) if typed else Person(tmp_path, answers=given)
    assert log_in(person.desk, MINE, verify=True) == NO_KEY
    assert person.checked == []
    assert person.said.endswith("; nothing is stored\n")


def test_the_end_of_the_input_at_the_hidden_question_stores_nothing(tmp_path):
    person = Person(tmp_path, typed=[])
    assert log_in(person.desk, MINE, verify=True) == NO_KEY
    assert person.said == "no key was given; nothing is stored\n"


@pytest.mark.parametrize(("answer", "code"), [("y\n", DONE), ("YES\n", DONE), ("\n", NOT_CHECKED), ("", NOT_CHECKED)])
def test_a_key_that_could_not_be_checked_is_stored_only_if_the_person_wants_it(tmp_path, answer, code):
    person = Person(tmp_path, typed=[KEY], answers=answer, verdicts=[UNKNOWN])
    assert log_in(person.desk, MINE, verify=True) == code
    assert "unknown: [redacted:credentials.mine]" in person.said
    assert "Store the key all the same, unchecked? [y/N] " in person.said
    assert bool(person.stored) == (code == DONE)


def test_from_a_pipe_an_unchecked_key_is_stored_only_if_the_command_line_says_so(tmp_path):
    person = Person(tmp_path, answers=KEY, verdicts=[UNKNOWN])
    assert log_in(person.desk, MINE, verify=True) == NOT_CHECKED
    assert "--no-verify stores it all the same" in person.said
    assert person.stored == {}
    person = Person(tmp_path, answers=KEY)
    assert log_in(person.desk, MINE, verify=False) == DONE
    assert person.checked == []


def test_a_keyring_that_fails_and_a_variable_that_wins_are_named(tmp_path):
    person = Person(tmp_path, answers=KEY, keyring=DictKeyring("save"), environment={"MY_KEY": "another"})
    assert log_in(person.desk, MINE, verify=True) == DONE
    assert "the system keyring cannot be used: it is locked" in person.said
    assert "but MY_KEY is set here, and where it is set it wins over the stored key" in person.said


def test_a_key_that_cannot_be_stored_or_removed_is_an_exit_code_of_its_own(tmp_path):
    (tmp_path / "keys").touch()
    person = Person(tmp_path, answers=KEY)
    assert log_in(person.desk, MINE, verify=True) == NOT_STORED
    assert "cannot be written" in person.said
    assert "; nothing is stored" in person.said
    assert log_out(person.desk, {}, None) == NOT_STORED
    assert show(person.desk, MINE, {}) == NOT_STORED


def test_a_logout_removes_one_key_or_all_and_names_what_is_left(tmp_path):
    person = Person(tmp_path, answers=f"{KEY}\n" * 3, environment={"MY_KEY": "another"})
    for account in (MINE, GIVEN, FREE):
        log_in(person.desk, account, verify=False)
    accounts = {"mine": MINE, "given": GIVEN}
    assert log_out(person.desk, accounts, "mine") == DONE
    assert person.said.endswith("the stored key of mine is removed\nthere still is one in the environment (MY_KEY)\n")
    assert log_out(person.desk, accounts, None) == DONE
    assert person.said.endswith("key of given is removed\nthere still is one in the configuration\n")
    assert person.stored == {}
    assert log_out(person.desk, {"free": FREE}, "free") == DONE
    assert person.said.endswith("no key of free is stored\n")


def test_the_source_of_each_key_is_shown_and_never_the_key(tmp_path):
    keyring = DictKeyring()
    person = Person(tmp_path, answers=f"{KEY}\n" * 2, keyring=keyring)
    accounts = {"mine": MINE, "given": GIVEN, "free": FREE}
    assert show(person.desk, MINE, accounts) == NO_KEY
    assert person.out.getvalue() == "mine: no key\ngiven: the configuration\nfree: needs no key\n"
    log_in(person.desk, MINE, verify=False)
    keyring.broken = {"save"}
    log_in(person.desk, GIVEN, verify=False)
    person.out.truncate(0)
    assert show(person.desk, MINE, accounts) == DONE
    assert person.out.getvalue().strip("\0").splitlines()[:2] == [
        "mine: the system keyring",
        f"given: {person.desk.store.file.path}",
    ]
    person = Person(tmp_path, environment={"MY_KEY": KEY})
    assert show(person.desk, MINE, {}) == DONE
    assert person.out.getvalue() == "mine: the environment (MY_KEY)\n"


def test_the_words_of_the_command_lines():
    assert parse_login([]) == KeyCommand("login", None, None)
    assert parse_login(["--provider", "a", "--no-verify", "--config", "f"]) == KeyCommand(
        "login", "a", "f", verify=False
    )
    assert parse_login(["--status"]) == KeyCommand("show", None, None)
    assert parse_logout(["--all"]) == KeyCommand("logout", None, None, everything=True)
    assert parse_logout(["--provider", "a"]) == KeyCommand("logout", "a", None)
    with pytest.raises(SystemExit):
        parse_logout(["--no-verify"])
