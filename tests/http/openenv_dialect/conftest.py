"""Servers with OpenEnv's protocol, and OpenEnv's client."""

from collections.abc import Iterator
from typing import Any

import pytest

import tests.toy_envs  # noqa: F401 (registers the toys)
from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.run import background_server
from tests.http.openenv_dialect.tools import COUNT, TEXTCRAFT, TRICKY, part


@pytest.fixture(scope="module")
def openenv() -> Any:
    """OpenEnv's client, imported late because it loads gradio and fastmcp for some seconds."""
    return part("core.generic_client").GenericEnvClient


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with background_server([TEXTCRAFT], mounts=[openenv_routes]) as url:
        yield url


@pytest.fixture(scope="module")
def toys() -> Iterator[str]:
    """A server of two environments, so that the root belongs to neither."""
    with background_server([COUNT, TRICKY], mounts=[openenv_routes]) as url:
        yield url


@pytest.fixture
def isolated() -> Iterator[str]:
    """A server of TextCraft in a worker process."""
    with background_server([TEXTCRAFT], isolate=True, mounts=[openenv_routes]) as url:
        yield url
