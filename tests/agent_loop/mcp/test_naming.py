"""The names that the model calls."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.mcp.naming import server_prefix, tool_name

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def free(_name):
    return False


def test_a_name_is_that_of_the_server_and_that_of_the_tool():
    assert tool_name(server_prefix("my files", free), "read.file", free) == "my_files__read_file"


def test_a_server_without_a_usable_name_gets_one():
    assert server_prefix("ä/ö", free) == "mcp"


def test_servers_of_one_name_are_numbered():
    assert server_prefix("s", {"s", "s_2"}.__contains__) == "s_3"


def test_tools_that_would_have_one_name_are_told_apart():
    taken = {"s__a_b"}
    assert re.fullmatch(r"s__a_b_[0-9a-f]{8}", tool_name("s", "a.b", taken.__contains__))


def test_two_tools_with_one_digest_are_told_apart_too():
    taken = {"s__a"}
    taken.add(tool_name("s", "a", taken.__contains__))
    assert tool_name("s", "a", taken.__contains__) not in taken


@given(st.text(), st.text(), st.sets(st.text(max_size=3), max_size=3))
def test_every_name_is_one_that_providers_take(server, tool, others):
    prefix = server_prefix(server, others.__contains__)
    assert prefix not in others
    assert VALID.fullmatch(tool_name(prefix, tool, free))
