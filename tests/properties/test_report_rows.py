"""Two transcripts side by side: no frame is lost, doubled or moved, whatever differs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_bridge.testing.report_rows import align, kind, stretches
from tests.support.report_runs import said

FRAMES = st.lists(
    st.sampled_from([said("a"), said("b"), said("c"), {"id": 1, "result": {}}, {"id": 2, "result": {}}]), max_size=12
)


@settings(max_examples=80, deadline=None)
@given(FRAMES, FRAMES)
def test_every_frame_stands_in_one_row_in_its_order(expected, found):
    rows = align(expected, found, {})
    assert [row.expected for row in rows if row.expected is not None] == expected
    assert [row.found for row in rows if row.found is not None] == found
    for row in rows:
        assert (row.mark == "same") == (row.expected == row.found)
        assert (row.mark == "changed") <= (kind(row.expected or {}, {}) == kind(row.found or {}, {}))
    assert [row for _, part in stretches(rows, distance=1) for row in part] == rows
