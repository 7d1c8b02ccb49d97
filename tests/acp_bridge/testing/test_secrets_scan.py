import json

import pytest

from acp_bridge.testing.secrets_scan import secrets_in


def found(text, **environment):
    return list(secrets_in(text, environment=environment))


def test_what_looks_like_a_secret_is_found_and_not_repeated():
    (finding,) = found('{"a":1}\n{"b":"key sk-0123456789abcdef0123"}\n')
    assert finding == "something that looks like a secret at line 2, character 11"


def test_the_value_of_a_key_variable_is_found():
    assert found("ab my-own-secret", OTHER_API_KEY="my-own-secret") == [
        "the value of OTHER_API_KEY at line 1, character 4"
    ]


@pytest.mark.parametrize("name", ["API_KEY", "KEY", "GITHUB_TOKEN", "DB_PASSWORD", "CLIENT_SECRET", "my_credentials"])
def test_such_a_variable_is_known_by_its_name(name):
    assert found("a-long-value", **{name: "a-long-value"})


@pytest.mark.parametrize(("name", "value"), [("PATH", "a-long-value"), ("MONKEY", "a-long-value"), ("KEY", "a-long")])
def test_other_variables_and_short_values_are_no_secrets(name, value):
    assert found("a-long-value", **{name: value}) == []


def test_a_secret_is_found_as_json_spells_it():
    secret = 'qu"ote-ü-\\'
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), secret):
        assert len(found(text, SOME_KEY=secret)) == 1
