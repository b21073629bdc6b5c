"""Fixtures of the HTTP tests."""

import pytest

from tests.http.tools import Api


@pytest.fixture(autouse=True)
def close_connections():
    yield
    while Api.made:
        Api.made.pop().http.close()
