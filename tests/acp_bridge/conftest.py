"""What tests of more than one room here need."""

import pytest

from tests.support.page import short_directory


@pytest.fixture
def folder():
    """A private directory in which a socket has room for its name."""
    with short_directory() as path:
        yield path
