"""Paths of another machine as paths of this one."""

import json

import pytest

from acp_bridge.cli.remap import PathError, PathMap, full_path, parse_mapping
from acp_bridge.cli.rewrite import Rewriter


def mapped(text, *mappings):
    return Rewriter(PathMap(mappings or [("/srv/app", "/home/me/app")])).text(text)


@pytest.mark.parametrize(
    "text",
    [
        "/srv/app",
        "/srv/app/src/a.py:3",
        "cd /srv/app && ls",
        "(/srv/app)",
        "in /srv/app.",
        "in /srv/app, or /srv/app/b",
        '{"workdir":"/srv/app"}',
        "PATH=/srv/app/bin:/srv/app",
        "file:///srv/app/a",
        "`/srv/app`\n/srv/app\n",
    ],
)
def test_a_path_is_replaced_where_it_stands_whole_or_goes_on(text):
    assert mapped(text) == text.replace("/srv/app", "/home/me/app")


INSIDE = "/old/srv/app x/srv/app ~/srv/app /srv/apple /srv/app-2/a /srv/app_x /srv/app.old/a /srv"


@pytest.mark.parametrize("text", INSIDE.split())
def test_it_is_left_alone_inside_another_name(text):
    assert mapped(text) == text


def test_the_longest_path_counts_and_what_was_put_in_is_not_looked_at_again():
    mappings = [("/a", "/b"), ("/b", "/a"), ("/a/deep", "/c")]
    assert mapped("/a/x /b/x /a/deep/x", *mappings) == "/b/x /a/x /c/x"


def test_the_first_mapping_of_a_path_counts():
    assert mapped("/a", ("/a", "/b"), ("/a", "/c")) == "/b"


def test_a_path_in_a_uri_and_in_escaped_json_is_replaced_in_kind():
    mapping = ("/srv/my über", "/home/me/its über")
    assert mapped("file:///srv/my%20%C3%BCber/a", mapping) == "file:///home/me/its%20%C3%BCber/a"
    escaped = json.dumps({"p": "/srv/my über/a"})
    assert json.loads(mapped(escaped, mapping)) == {"p": "/home/me/its über/a"}


def test_no_mapping_changes_nothing():
    assert Rewriter(PathMap([])).text("/srv/app") == "/srv/app"


def test_a_mapping_is_read_from_the_command_line(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    assert parse_mapping("/srv/app/=~/app=1") == ("/srv/app", "/home/me/app=1")
    assert parse_mapping("~/x=here") == ("/home/me/x", str(tmp_path / "here"))


@pytest.mark.parametrize("given", ["/a", "=/b", "/a=", "a=/b", "/=/b", "/a=/", '/a=/b"c', "/a=/b\\c", "/a=/b\nc"])
def test_what_cannot_be_mapped_is_refused(given):
    with pytest.raises(PathError):
        parse_mapping(given)


def test_a_path_is_made_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert full_path("a/../b/") == str(tmp_path / "b")
