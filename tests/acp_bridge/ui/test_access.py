"""Who may see the page: no other site, no other name of this machine, nobody without the token."""

import pytest

from acp_bridge.ui.access import HEADERS, Guard, refusal

TOKEN, PORT = "t0ken", 8123
HOST = (b"host", b"127.0.0.1:8123")
ORIGIN = (b"origin", b"http://127.0.0.1:8123")
JSON = (b"content-type", b"application/json; charset=utf-8")


def refused(*headers, method="GET", path=f"/{TOKEN}/"):
    return refusal(method, path, headers, token=TOKEN, port=PORT)


def test_who_has_the_address_may_look():
    assert refused(HOST) is None
    assert refused((b"host", b"localhost:8123"), method="HEAD") is None
    assert refused(HOST, path=f"/{TOKEN}") is None


@pytest.mark.parametrize("path", ["/", "", "/t0ke", "/t0kenn/", "/T0KEN/", f"//{TOKEN}/", "/é\udc80/", f"/x/{TOKEN}/"])
def test_without_the_token_there_is_nothing(path):
    assert refused(HOST, path=path) == 404


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [b"evil.example:8123"],
        [b"127.0.0.1"],
        [b"127.0.0.1:8124"],
        [b"127.0.0.1:8123", b"127.0.0.1:8123"],
        [b"127.0.0.1:8123.evil.example"],
    ],
)
def test_another_name_of_this_machine_is_refused_also_with_the_token(hosts):
    assert refused(*((b"host", host) for host in hosts)) == 403


def test_the_page_itself_may_send_json():
    assert refused(HOST, ORIGIN, JSON, method="POST") is None
    assert refused(HOST, ORIGIN, JSON, (b"sec-fetch-site", b"same-origin"), method="POST") is None


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", [JSON]),
        ("POST", [ORIGIN]),
        ("POST", [ORIGIN, (b"content-type", b"text/plain")]),
        ("POST", [(b"origin", b"http://evil.example"), JSON]),
        ("POST", [(b"origin", b"null"), JSON]),
        ("POST", [ORIGIN, ORIGIN, JSON]),
        ("POST", [ORIGIN, JSON, (b"sec-fetch-site", b"cross-site")]),
        ("OPTIONS", [ORIGIN, JSON]),
        ("DELETE", [ORIGIN, JSON]),
    ],
)
def test_what_another_site_could_send_is_refused(method, headers):
    assert refused(HOST, *headers, method=method) == 403


@pytest.mark.parametrize(("path", "inner"), [(f"/{TOKEN}/a b/c", "/a b/c"), (f"/{TOKEN}", "/"), (f"/{TOKEN}/", "/")])
async def test_the_token_is_no_part_of_what_is_inside_and_every_answer_is_guarded(path, inner):
    seen, sent = [], []

    async def app(scope, _receive, send):
        seen.append((scope["path"], scope["raw_path"]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"x"})

    async def receive():
        raise AssertionError("nothing is read")

    async def send(message):
        sent.append(message)

    guard = Guard(app, token=TOKEN, port=PORT)
    scope = {"type": "http", "method": "GET", "headers": [HOST]}
    await guard({**scope, "path": path}, receive, send)
    assert seen == [(inner, inner.replace(" ", "%20").encode())]
    assert sent[0]["headers"] == [(b"a", b"b"), *HEADERS]
    sent.clear()
    await guard({**scope, "path": "/wrong/"}, receive, send)
    assert [message.get("status") for message in sent] == [404, None]
    assert set(HEADERS) <= set(sent[0]["headers"])
    assert len(seen) == 1


def test_the_policy_lets_only_the_page_itself_act():
    policy = dict(HEADERS)[b"content-security-policy"].decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert {part.split()[1] for part in policy.split("; ")} == {"'none'", "'self'"}
