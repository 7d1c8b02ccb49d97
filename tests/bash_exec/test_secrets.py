"""What is taken for a secret, in which forms it is found, and that nothing else is touched."""

import base64
import json

import pytest

from bash_exec.secrets import DELTA_REVEAL, BytesRedactor, Redactor, SecretRegistry

VALUE = 'p4ss/word+é="1\\'


def registry(**values):
    secrets = SecretRegistry()
    for name, value in values.items():
        assert secrets.add(name, value)
    return secrets


@pytest.mark.parametrize(
    "value",
    [
        "short-1",
        "   1234567   ",
        "12345678",
        "-1234.5678",
        "10.0.0.255:8080",
        "password",
        "Straßenbahn",
        "/home/me/.ssh/id_rsa",
        "~/keys/mine.pem",
        "./key-1.pem",
        "../key-1.pem",
        "https://example.org/path?user=1@2",
        "redacted:",
        "[redacted:NAME]",
    ],
)
def test_what_may_be_ordinary_text_is_no_secret(value):
    secrets = SecretRegistry()
    assert not secrets.add("NAME", value)
    assert secrets.empty
    assert secrets.redact(f"a {value} b") == f"a {value} b"


@pytest.mark.parametrize(
    "value", ["https://me:hunter2@example.org/", "ssh://token@host", "hunter22", "correct horse battery", "8f14e45f"]
)
def test_everything_else_is_one(value):
    assert registry(NAME=value).redact(f"a {value} b") == "a [redacted:NAME] b"


def test_a_configured_key_is_a_secret_whatever_it_looks_like():
    secrets = SecretRegistry()
    assert secrets.add("KEY", "letters-only".replace("-", ""), configured=True)
    assert secrets.add("NUMBER", "1234567890", configured=True)
    assert not secrets.add("SHORT", "ollama", configured=True)
    assert secrets.redact("lettersonly 1234567890 ollama") == "[redacted:KEY] [redacted:NUMBER] ollama"


def test_a_value_keeps_its_first_name():
    secrets = registry(FIRST="hunter22", SECOND="hunter22")
    assert secrets.redact("hunter22") == "[redacted:FIRST]"


@pytest.mark.parametrize(
    "printed",
    [
        VALUE,
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        "p4ss%2Fword%2B%C3%A9%3D%221%5C",
        "p4ss/word%2B%C3%A9%3D%221%5C",
        "p4ss%2fword%2b%c3%a9%3d%221%5c",
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(VALUE).replace("/", "\\/")[1:-1],
    ],
)
def test_a_form_of_a_secret_is_found(printed):
    assert registry(NAME=VALUE).redact(f"<{printed}>") == "<[redacted:NAME]>"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"user:"])
@pytest.mark.parametrize("behind", [b"", b"\n", b"!!"])
def test_base64_is_found_at_every_alignment(encode, before, behind):
    value = "\xff\xfe?>~p4ss-w0rd"
    printed = encode(before + value.encode() + behind).decode()
    redacted = registry(NAME=value).redact(printed)
    assert "[redacted:NAME]" in redacted
    # what is left of it are the characters that it shares with its neighbours
    assert len(redacted) - len("[redacted:NAME]") <= len(encode(before + behind)) + 4


def test_a_url_is_found_as_browsers_and_as_python_quote_it():
    secrets = registry(NAME="it's(a)key!*~1")
    for printed in ("it's(a)key!*~1", "it%27s%28a%29key%21%2A~1", "it%27s%28a%29key%21%2a~1"):
        assert secrets.redact(f"?q={printed}&") == "?q=[redacted:NAME]&"


DUMPED = "hunter22 and more"
HEX = DUMPED.encode().hex()
WRAPPED = {
    "lines": f"{HEX[:10]}\n{HEX[10:]}",
    "lines of Windows": f"{HEX[:10]}\r\n{HEX[10:]}",
    "an indented block": f"{HEX[:10]}\n        {HEX[10:]}",
    "pairs": " ".join(HEX[at : at + 2] for at in range(0, len(HEX), 2)),
    "a fingerprint": ":".join(HEX[at : at + 2].upper() for at in range(0, len(HEX), 2)),
    "a list": ", ".join(HEX[at : at + 2] for at in range(0, len(HEX), 2)),
    "a column": "\n".join(HEX),
}


@pytest.mark.parametrize("printed", WRAPPED.values(), ids=WRAPPED)
def test_a_dump_in_lines_or_groups_is_found(printed):
    secrets = registry(NAME=DUMPED)
    assert secrets.redact(f"<{printed}>{printed}.") == "<[redacted:NAME]>[redacted:NAME]."


def test_a_gap_that_is_longer_than_a_line_break_and_an_indentation_is_none():
    secrets = registry(NAME=DUMPED)
    apart = f"{HEX[:20]}{' ' * 11}{HEX[20:]}"
    assert secrets.redact(apart) == apart
    assert secrets.redact(f"{apart} {HEX[:9]} {HEX[9:]}") == f"{apart} [redacted:NAME]"
    assert secrets.redact(f"{HEX[:20]}{' ' * 11}", cut=True) == f"{HEX[:20]}{' ' * 11}"


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter2-is-it", "is hunter2", "is hunter2"),
        ("hunter2-is-it", "is hunter2-", "is [redacted:NAME]"),
        ("hunter2-is-it", "hunter2-is-it is hunter2-is-i", "[redacted:NAME] is [redacted:NAME]"),
        ("password-is-1", "the password", "the password"),
        ("12345678-9-x", "12345678", "12345678"),
        ("https://me:hunter2@example.org/", "at https://me", "at https://me"),
        ("https://me:hunter2@example.org/", "at https://me:h", "at [redacted:NAME]"),
        ("https://me:hunter2@example.org/", "at https://me:hunter2@ex", "at [redacted:NAME]"),
        ("hunter2-is-it", "is 68756e746572", "is [redacted:NAME]"),
        ("hunter2-is-it", "is 68 75 6e 74\n", "is [redacted:NAME]"),
        ("hunter2-is-it", "is 68 75 6e", "is 68 75 6e"),
        ("12345678-9-x", "31 32 33 34", "31 32 33 34"),
    ],
)
def test_of_a_secret_that_is_cut_off_eight_characters_tell_that_are_no_ordinary_text(value, text, shown):
    assert registry(NAME=value).redact(text, cut=True) == shown


def test_of_a_dump_that_comes_in_pieces_five_characters_may_show():
    redactor = BytesRedactor(registry(NAME=DUMPED))
    assert redactor.feed(b"68 75\n") == b"68 75\n"
    assert redactor.feed(b"6") == b""
    assert redactor.feed(b"e") == b""
    assert redactor.feed(HEX[6:].encode()) == b"[redacted:NAME]"
    assert redactor.feed(b"68 75 6e") == b""
    assert redactor.feed(b"ce") == b"68 75 6ece"


def test_a_space_in_a_form_is_a_plus():
    assert registry(NAME="pass word 1").redact("q=pass+word+1&r=pass%20word%201") == (
        "q=[redacted:NAME]&r=[redacted:NAME]"
    )


def test_the_longest_secret_wins_and_what_overlaps_is_gone():
    secrets = registry(INNER="bbbb1111", OUTER="aaaabbbb1111", NEXT="1111cccc")
    assert secrets.redact("aaaabbbb1111cccc bbbb1111") == "[redacted:OUTER]cccc [redacted:INNER]"


def test_a_json_value_is_redacted_in_texts_and_keys():
    secrets = registry(NAME="hunter22")
    value = {"hunter22": ["is hunter22", 1, None, True, {"a": "b"}]}
    assert secrets.redact_json(value) == {"[redacted:NAME]": ["is [redacted:NAME]", 1, None, True, {"a": "b"}]}
    assert SecretRegistry().redact_json(value) is value


def test_a_json_value_without_secrets_is_itself_and_neighbouring_texts_are_no_text():
    value = {"a": ["hunt", "er22", {"hunt": "er22"}], "b": 1}
    assert registry(NAME="hunter22").redact_json(value) is value
    assert registry(NAME="hunter22").redact_json(["hunter", "22"]) == ["hunter", "22"]
    long = {"a": "x" * 2000, "b": ["hunter22"]}
    assert registry(NAME="hunter22").redact_json(long) == {"a": "x" * 2000, "b": ["[redacted:NAME]"]}


def test_bytes_that_are_no_text_are_searched_as_they_are():
    secrets = SecretRegistry()
    secrets.add("É", "p4ss\udcffword")
    redactor = BytesRedactor(secrets)
    assert redactor.feed(b"\xfe p4ss\xff") == b"\xfe "
    assert redactor.feed(b"word \x00") == b"[redacted:\xc3\x89] \x00"
    assert redactor.finish() == b""


def test_only_what_could_become_a_secret_is_held_back():
    redactor = Redactor(registry(NAME="hunter22"))
    assert [redactor.feed(text) for text in ("a\n", " hun", "t", "e", "d", " hunter2")] == [
        "a\n",
        " ",
        "",
        "",
        "hunted",
        " ",
    ]
    assert redactor.finish() == "hunter2"
    assert redactor.feed("2") == "2"


def test_a_secret_that_continues_as_a_longer_one_waits_for_it():
    secrets = registry(SHORT="hunter22", LONG="hunter2222")
    redactor = Redactor(secrets)
    assert redactor.feed("hunter222") == ""
    assert redactor.finish() == "[redacted:SHORT]2"
    assert redactor.feed("hunter222") == ""
    assert redactor.feed("2") == "[redacted:LONG]"


def test_a_delta_is_held_back_only_from_the_sixth_character_on():
    redactor = Redactor(registry(NAME="hunter22"), reveal=DELTA_REVEAL)
    pieces = ["say hun", "te", "r", "2", "2", "!"]
    assert [redactor.feed(piece) for piece in pieces] == ["say hun", "te", "", "", "[redacted:NAME]", "!"]
    assert [redactor.feed(piece) for piece in ("hunter", "s")] == ["", "hunters"]


def test_what_is_registered_later_is_redacted_from_then_on():
    secrets = SecretRegistry()
    redactor, output = Redactor(secrets), BytesRedactor(secrets)
    assert (redactor.feed("hunter22"), output.feed(b"hunter22")) == ("hunter22", b"hunter22")
    secrets.add("NAME", "hunter22")
    assert (redactor.feed("hunter22"), output.feed(b"hunter22")) == ("[redacted:NAME]", b"[redacted:NAME]")


def test_a_secret_that_ends_in_the_beginning_of_another_is_given_out_whole_and_the_other_still_found():
    redactor = Redactor(registry(ONE="k3y/first+BBBB-12", TWO="BBBB-12+second/9"))
    assert redactor.feed("a k3y/first+BBBB-12") == "a [redacted:ONE]"
    assert redactor.feed(" BBBB-12+second/9.") == " [redacted:TWO]."
    assert redactor.finish() == ""
