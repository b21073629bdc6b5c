"""The clients of `soak.py`, good and bad, and the episodes that they play."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import gymnasium as gym
import httpx

import agentgym_envs
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle

LANES = 32
HANGING = 50
"""Sessions that a hanging client holds at a time."""


class Script(NamedTuple):
    """An episode known by heart: what is asked, and what must come back. A reply is observation, reward, ends, turn."""

    env: str
    seed: int
    task: str
    first: str
    actions: list[str]
    replies: list[list[Any]]


class Ledger:
    """Requests and replies of a client. Parts are sent to the parent periodically."""

    def __init__(self, outbox: Any, idle_seconds: float) -> None:
        """`idle_seconds` is the time after which the server closes unused sessions."""
        self.idle_seconds = idle_seconds
        self._outbox, self._sent = outbox, time.monotonic()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def episode(self, steps: int, told: int, **events: int) -> None:
        """Record an episode for which the server reported `told` turns after `steps` different steps."""
        self.counts.update({"episodes": 1, "steps": steps, "told": told, **events})
        if time.monotonic() - self._sent > 0.2:
            self.send()

    def check(self, script: Script, step: int, reply: Sequence[Any]) -> None:
        """Compare a reply with the expected one; step -1 is the reset, which has only an observation."""
        wanted = [script.first] if step < 0 else script.replies[step]
        if list(reply) != wanted:
            self.wrong.append(
                f"{script.task}, seed {script.seed}, step {step}: {list(reply)!r:.200}, not {wanted!r:.200}"
            )

    def expect(self, status: int, *wanted: int) -> None:
        """A status that must be one of some."""
        if status not in wanted:
            self.wrong.append(f"HTTP status {status} where {wanted} was due")

    def send(self) -> None:
        self._outbox.put((dict(self.counts), self.wrong[:5]))
        self.counts.clear()
        self.wrong.clear()
        self._sent = time.monotonic()


class Raw:
    """The protocol by hand, as a client that gets it wrong would speak it."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.url, self.ledger = url, ledger
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def open(self, env_id: str) -> str:
        """A session; waits while the server is full."""
        while True:
            reply = self.http.post("/v2/sessions", json={"env": env_id})
            if reply.status_code != 429:
                break
            self.ledger.counts["full"] += 1
            time.sleep(0.1)
        self.ledger.expect(reply.status_code, 201)
        return str(reply.json()["session"])

    def ask(self, session: str, body: dict[str, Any], **options: Any) -> httpx.Response:
        """Reset, or a step if the body has an action."""
        method = "step" if "action" in body else "reset"
        return self.http.post(f"/v2/sessions/{session}/{method}", json=body, **options)

    def play(self, session: str, script: Script, steps: int) -> int:
        """Reset and run `count` steps of a script; return the reported turns."""
        for step in range(-1, steps):
            reply = self.ask(session, body_of(script, step))
            self.ledger.expect(reply.status_code, 200)
            self.ledger.check(script, step, shape(reply.json(), step))
        return int(reply.json()["info"]["turn"])


def body_of(script: Script, step: int) -> dict[str, Any]:
    """The request of a step, or of the reset (-1), in a session that has had no call yet."""
    if step < 0:
        return {"seq": 1, "seed": script.seed, "options": {"task": script.task}}
    return {"seq": step + 2, "action": script.actions[step]}


def shape(reply: dict[str, Any], step: int) -> list[Any]:
    """The compared part of a reply."""
    if step < 0:
        return [reply["observation"]]
    told = [reply[name] for name in ("observation", "reward", "terminated", "truncated")]
    return [*told, reply["info"]["turn"]]


def batches(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    by_env: dict[str, list[Script]] = {}
    for script in scripts:
        by_env.setdefault(script.env, []).append(script)
    for env_id, own in by_env.items():
        play_batches(env_id, url, own, count // len(by_env), rng, ledger)


def play_batches(env_id: str, url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    runners = min(LANES, count)
    envs = agentgym_envs.make_vec(
        env_id, runners, base_url=url, connect_timeout=120, autoreset_mode="Disabled", infos="list", step_seconds=60
    )
    playing: dict[int, tuple[Script, int]] = {}
    begun = 0
    while True:
        fresh = [runner for runner in range(runners) if runner not in playing][: count - begun]
        begun += len(fresh)
        playing |= {runner: (rng.choice(scripts), -1) for runner in fresh}
        if not playing:
            break
        send_all(envs, playing, fresh)
        observations, rewards, terminated, truncated, infos = envs.recv()
        for row, info in enumerate(infos):
            script, step = playing[info["env_id"]]
            told = [observations[row], float(rewards[row]), bool(terminated[row]), bool(truncated[row]), info["turn"]]
            ledger.check(script, step, told[:1] if step < 0 else told)
            playing[info["env_id"]] = script, step + 1
            if step + 1 == len(script.actions):
                del playing[info["env_id"]]
                ledger.episode(len(script.actions), info["turn"])
    envs.close()


def send_all(envs: Any, playing: dict[int, tuple[Script, int]], fresh: list[int]) -> None:
    seeds = [playing[runner][0].seed if runner in playing else None for runner in range(envs.num_envs)]
    options = [{"task": playing[runner][0].task} if runner in playing else None for runner in range(envs.num_envs)]
    if fresh:
        envs.async_reset(seed=seeds, options=options, env_ids=fresh)
    going = [runner for runner in playing if runner not in fresh]
    envs.send([playing[runner][0].actions[playing[runner][1]] for runner in going], env_ids=going)


def steady(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    envs = {script.env: gym.make(script.env, base_url=url, connect_timeout=120) for script in scripts}
    for _ in range(count):
        script = rng.choice(scripts)
        env = envs[script.env]
        ledger.check(script, -1, [env.reset(seed=script.seed, options={"task": script.task})[0]])
        for step, action in enumerate(script.actions):
            *told, info = env.step(action)
            ledger.check(script, step, [*told, info["turn"]])
        ledger.episode(len(script.actions), info["turn"])
    for env in envs.values():
        env.close()


def retries(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    raw, other = Raw(url, ledger), Raw(url, ledger)
    for _ in range(count):
        script = rng.choice(scripts)
        session = raw.open(script.env)
        for step in range(-1, len(script.actions)):
            way = rng.choice((ask_twice, ask_at_once, ask_impatiently, ask_out_of_order))
            reply = way(raw, other, session, body_of(script, step))
            ledger.expect(reply.status_code, 200)
            ledger.check(script, step, shape(reply.json(), step))
        raw.http.delete(f"/v2/sessions/{session}")
        ledger.episode(len(script.actions), reply.json()["info"]["turn"])


def ask_twice(raw: Raw, other: Raw, session: str, body: dict[str, Any]) -> httpx.Response:
    replies = [raw.ask(session, body), other.ask(session, body)]
    return same(raw.ledger, replies)


def ask_at_once(raw: Raw, other: Raw, session: str, body: dict[str, Any]) -> httpx.Response:
    replies: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: replies.append(other.ask(session, body)))
    thread.start()
    replies.append(raw.ask(session, body))
    thread.join()
    return same(raw.ledger, replies)


def ask_impatiently(raw: Raw, other: Raw, session: str, body: dict[str, Any]) -> httpx.Response:
    """Give up on the reply after a moment in which it may have come or not, and ask again."""
    for seconds in (0.0002, 0.001, 60):
        with contextlib.suppress(httpx.TimeoutException):
            return raw.ask(session, body, timeout=httpx.Timeout(60, read=seconds))
        raw.ledger.counts["repeats"] += 1
    raise AssertionError("no reply within a minute")


def ask_out_of_order(raw: Raw, other: Raw, session: str, body: dict[str, Any]) -> httpx.Response:
    for wrong in (body["seq"] + 1, body["seq"] + 7, body["seq"] - 2):
        if wrong > 0:
            raw.ledger.expect(raw.ask(session, {**body, "seq": wrong}).status_code, 409)
            raw.ledger.counts["refused"] += 1
    return raw.ask(session, body)


def same(ledger: Ledger, replies: list[httpx.Response]) -> httpx.Response:
    ledger.counts["repeats"] += 1
    if replies[0].content != replies[1].content:
        ledger.wrong.append(f"two answers to one request: {[reply.text[:100] for reply in replies]}")
    return replies[0]


def closers(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    raw = Raw(url, ledger)
    for _ in range(count):
        script = rng.choice(scripts)
        session = raw.open(script.env)
        steps = rng.randint(0, len(script.actions))
        told = raw.play(session, script, steps)
        for _ in range(rng.randint(2, 3)):
            ledger.expect(raw.http.delete(f"/v2/sessions/{session}").status_code, 204)
        ledger.expect(raw.ask(session, {"action": "after the end"}).status_code, 404)
        ledger.episode(steps, told, closed_again=1)


def crashes(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    raw, counters = Raw(url, ledger), mmap.mmap(-1, 8)
    for _ in range(count):
        script = rng.choice(scripts)
        session = raw.open(script.env)
        struct.pack_into("ii", counters, 0, 0, 0)
        victim = os.fork()
        if victim == 0:
            play_until_killed(url, session, script, counters)
        while not struct.unpack_from("i", counters, 0)[0]:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        look_after(raw, session, script, counters, rng)


def play_until_killed(url: str, session: str, script: Script, counters: mmap.mmap) -> None:
    """The client that crashes: says what it is about to ask, and what it was answered, where others can read it."""
    raw = Raw(url, Ledger(None, 0.0))
    while True:
        for step in range(-1, len(script.actions)):
            struct.pack_into("i", counters, 0, step + 2)
            raw.ask(session, body_of(script, step))
            struct.pack_into("i", counters, 4, step + 2)
        time.sleep(60)


def look_after(raw: Raw, session: str, script: Script, counters: mmap.mmap, rng: random.Random) -> None:
    """Whatever the dead client had asked was carried out once or not at all; asking again makes it once."""
    asked, answered = struct.unpack_from("ii", counters, 0)
    told = raw.http.get(f"/v2/sessions/{session}").json()
    if not answered <= told["seq"] <= asked:
        raw.ledger.wrong.append(f"{told['seq']} calls were carried out of {asked} asked and {answered} answered")
    if rng.random() < 0.3:
        raw.ledger.episode(max(told["seq"] - 1, 0), told["turn"], killed=1, given_up=1)
        return  # the session stays open on purpose
    for step in range(asked - 2, len(script.actions)):
        reply = raw.ask(session, body_of(script, step))
        raw.ledger.expect(reply.status_code, 200)
        raw.ledger.check(script, step, shape(reply.json(), step))
    raw.http.delete(f"/v2/sessions/{session}")
    raw.ledger.episode(len(script.actions), reply.json()["info"]["turn"], killed=1)


def vanishes(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    raw = Raw(url, ledger)
    for _ in range(count):
        script = rng.choice(scripts)
        session = raw.open(script.env)
        steps = rng.randint(0, len(script.actions) - 1)
        told = raw.play(session, script, steps)
        with half_sent(url, session, body_of(script, steps), share=rng.choice((0.3, 0.9, 1.0))) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no goodbye
        ledger.episode(steps, told, vanished=1)


def hangs(url: str, scripts: list[Script], count: int, rng: random.Random, ledger: Ledger) -> None:
    raw = Raw(url, ledger)
    for start in range(0, count, HANGING):
        held = []
        with contextlib.ExitStack() as connections:
            for _ in range(min(HANGING, count - start)):
                script = rng.choice(scripts)
                session, steps = raw.open(script.env), rng.randint(0, len(script.actions) - 1)
                told = raw.play(session, script, steps)
                share = rng.choice((0.1, 0.5, 0.8))
                connections.enter_context(half_sent(url, session, body_of(script, steps), share))
                held.append((session, body_of(script, steps), steps, told))
            time.sleep(ledger.idle_seconds * 1.3 + 1)
            for session, body, steps, told in held:
                ledger.expect(raw.ask(session, body).status_code, 404)
                ledger.episode(steps, told, hung=1)


@contextlib.contextmanager
def half_sent(url: str, session: str, body: dict[str, Any], share: float) -> Iterator[socket.socket]:
    """A connection on which that share of a request was sent."""
    method = "step" if "action" in body else "reset"
    content = json.dumps(body)
    head = f"POST /v2/sessions/{session}/{method} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(f"{head}{content}".encode()[: int(share * len(head + content))])
        yield connection


CLIENTS = {f.__name__: f for f in (batches, steady, retries, closers, crashes, vanishes, hangs)}


def client(name: str, url: str, scripts: list[Script], count: int, outbox: Any, idle_seconds: float) -> None:
    """A client process: plays `count` episodes, reports them, and sends its name at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ledger = Ledger(outbox, idle_seconds)
    try:
        CLIENTS[name](url, scripts, count, random.Random(name), ledger)
    except Exception as error:
        ledger.wrong.append(f"the client {name!r} failed: {type(error).__name__}: {error}")
    ledger.send()
    outbox.put(name)


def make_scripts(env_ids: Sequence[str], count: int = 48) -> list[Script]:
    """Local episodes: the oracle's or random commands, after one invalid action."""
    scripts = []
    for env_id in env_ids:
        env = gym.make(env_id, split=None)
        base = text_env(env)
        for seed, task in enumerate(base.tasks.sample(count, seed=0)):
            first, _ = env.reset(seed=seed, options={"task": task.id})
            actions = ["is this an action?", *plan_of(base, seed)]
            replies = list[list[Any]]()
            while len(replies) < len(actions) and not (replies and any(replies[-1][2:4])):
                observation, reward, terminated, truncated, info = env.step(actions[len(replies)])
                replies.append([observation, float(reward), terminated, truncated, info["turn"]])
            scripts.append(Script(env_id, seed, task.id, first, actions[: len(replies)], replies))
        env.close()
    return scripts


def plan_of(env: agentgym_envs.TextEnv, seed: int) -> list[str]:
    commands = list[str]()
    if not env.blocking:  # what waits for another program may take seconds for a plan, and its episodes are long
        with contextlib.suppress(NoOracle):
            commands = list(env.oracle())
    if not commands:
        rng = random.Random(seed)
        commands = [env.random_command(rng) for _ in range(6)]
    return [env.grammar.format(command) for command in commands]
