"""Moments for people and for programs."""

from datetime import timedelta, timezone

import pytest

from acp_bridge.cli.times import ago, iso, local

NOON = 1_782_043_200_000  # 2026-06-21T12:00:00Z


def test_programs_get_utc_with_milliseconds():
    assert iso(NOON + 7) == "2026-06-21T12:00:00.007Z"


def test_people_get_their_own_time():
    assert local(NOON, timezone(timedelta(hours=2))) == "2026-06-21 14:00"


@pytest.mark.parametrize("ms", [-(10**20), 10**30])
def test_any_integer_is_a_moment(ms):
    assert iso(ms).endswith("Z")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "now"),
        (59, "now"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3 * 3600, "3 h ago"),
        (2 * 86400, "2 d ago"),
        (7 * 86400, "1 week ago"),
        (30 * 86400, "4 weeks ago"),
        (365 * 86400, "1 year ago"),
        (800 * 86400, "2 years ago"),
    ],
)
def test_the_past_is_told_in_its_largest_unit(seconds, words):
    assert ago(NOON, NOON + seconds * 1000) == words
