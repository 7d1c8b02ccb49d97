"""Which session an ID means."""

import pytest

from acp_bridge.cli.selection import CommandError, Selected, select, short_ids
from agent_loop.session.events import SessionHeader
from agent_loop.session.memory import KeptLog, MemorySessionStore
from agent_loop.session.store import SessionNotFoundError
from tests.support.session_turns import events_of, text_turn


def store_of(*ids):
    store = MemorySessionStore()
    for session_id in ids:
        store.logs[session_id] = KeptLog(SessionHeader(session_id, 1), events_of(text_turn(1)))
    return store


async def test_a_beginning_that_only_one_session_has_means_that_one():
    store = store_of("abc1", "abd2")
    assert (await select(store, "abd")).id == "abd2"
    selected = await select(store, "abc1")
    assert selected.summary is not None
    assert selected.summary.event_count == 7


async def test_a_whole_id_means_itself_even_where_another_one_begins_so():
    assert (await select(store_of("ab", "abc"), "ab")).id == "ab"


async def test_a_beginning_of_several_is_refused_and_names_them():
    with pytest.raises(CommandError, match=r"'ab' may mean 2 sessions \(ab1, ab2\); write more of the id"):
        await select(store_of("ab1", "ab2"), "ab")
    with pytest.raises(CommandError, match=r"7 sessions \(.*a4, …\)"):
        await select(store_of(*(f"a{number}" for number in range(7))), "a")


@pytest.mark.parametrize("given", ["x", ""])
async def test_what_no_session_begins_with_is_not_found(given):
    with pytest.raises(SessionNotFoundError):
        await select(store_of(), given)


class Unlisted(MemorySessionStore):
    """A store whose only session has a header that cannot be read."""

    def exists(self, session_id):
        return session_id == "damaged"


async def test_a_session_that_a_listing_leaves_out_is_found_by_its_whole_id():
    assert await select(Unlisted(), "damaged") == Selected("damaged", None)
    with pytest.raises(SessionNotFoundError):
        await select(Unlisted(), "dam")


def test_ids_are_shortened_to_what_tells_them_apart():
    assert short_ids(["12345678-a1", "12345678-a2", "87654321-b", "s", "same", "same-too-long"]) == {
        "12345678-a1": "12345678-a1",
        "12345678-a2": "12345678-a2",
        "87654321-b": "87654321",
        "s": "s",
        "same": "same",
        "same-too-long": "same-too",
    }
    assert short_ids([]) == {}
