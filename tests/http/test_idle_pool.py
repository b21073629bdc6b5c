"""The pool of idle connections: bounded, and the last one used comes first."""

import threading

import httpx
import pytest

from agentgym_envs.http import idle_pool
from agentgym_envs.http.idle_pool import IdlePool
from tests.waiting import SECONDS


class Numbered:
    """A connection with a number."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.number, self.closed = self.made, False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(idle_pool, "_CONNECTIONS", 2)
    monkeypatch.setattr(Numbered, "made", 0)
    return IdlePool(Numbered)


def test_the_connection_used_last_is_taken_first(pool):
    one, two = pool.take(0), pool.take(0)
    for each in (two, one):
        pool.give_back(each)
    assert pool.take(0) is one and Numbered.made == 2
    pool.close()
    assert (one.closed, two.closed) == (False, True)


def test_a_full_pool_waits_for_a_connection(pool):
    one, _ = pool.take(0), pool.take(0)
    with pytest.raises(httpx.PoolTimeout, match="all 2 connections were in use"):
        pool.take(0.01)
    taken: list[Numbered] = []
    waiter = threading.Thread(target=lambda: taken.append(pool.take(SECONDS)))
    waiter.start()
    pool.give_back(one)
    waiter.join(SECONDS)
    assert taken == [one]


def test_a_connection_that_cannot_be_made_leaves_its_room(pool, monkeypatch):
    def fail(self: Numbered) -> None:
        raise OSError("no more descriptors")

    with monkeypatch.context() as patched:
        patched.setattr(Numbered, "__init__", fail)
        for _ in range(3):
            with pytest.raises(OSError, match="descriptors"):
                pool.take(0)
    assert [pool.take(0).number, pool.take(0).number] == [1, 2]
