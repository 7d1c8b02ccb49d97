"""Which values of a start are known as secrets, and by which name."""

from acp_bridge.known_secrets import known_secrets

TABLE = {
    "providers": {
        "local": {"key_variable": "LOCAL_PASS", "key": "ck-configured"},
        "plain": {"key": "lettersonly"},
        "empty": {},
    },
    "env": {"allow": ["GIVEN_TOKEN", "LOCAL_PASS"]},
}
ENVIRONMENT = {
    "DEEPSEEK_API_KEY": " sk-0123456789 ",
    "LOCAL_PASS": "/looks/like/a/path",
    "MY_TOKEN": "tk-0123456789",
    "GIVEN_TOKEN": "tk-9876543210",
    "COPY": "Bearer ck-configured",
    "KEYBOARD": "de-latin1-nodeadkeys",
    "KEY_FILE": "/home/me/key.pem",
    "LANG": "de_DE.UTF-8@euro",
}


def test_keys_are_known_always_and_the_values_of_secret_names_when_they_are_no_ordinary_text():
    secrets = known_secrets(TABLE, ENVIRONMENT, {})
    shown = {name: secrets.redact(value) for name, value in ENVIRONMENT.items()}
    assert shown == {
        "DEEPSEEK_API_KEY": " [redacted:DEEPSEEK_API_KEY] ",
        "LOCAL_PASS": "[redacted:LOCAL_PASS]",
        "MY_TOKEN": "[redacted:MY_TOKEN]",
        "GIVEN_TOKEN": "tk-9876543210",
        "COPY": "[redacted:COPY]",
        "KEYBOARD": "[redacted:KEYBOARD]",
        "KEY_FILE": "/home/me/key.pem",
        "LANG": "de_DE.UTF-8@euro",
    }
    assert secrets.redact("ck-configured lettersonly") == (
        "[redacted:providers.local.key] [redacted:providers.plain.key]"
    )


def test_a_start_without_secrets_knows_none():
    assert known_secrets({}, {"HOME": "/home/me", "KEY_FILE": "/home/me/key.pem"}, {}).empty
