"""The reader of the fast path accepts plain step requests only."""

import pytest

from agentgym_envs.http.step_request import StepRequest, read_step

BODY = b'{"action":"up","seq":2}'
FIELDS = {
    "Host": "x",
    "Content-Type": "application/json",
    "Authorization": "Bearer sesame",
    "Content-Length": str(len(BODY)),
}


def request(line: bytes = b"POST /v2/sessions/a-_Z9/step HTTP/1.1", more: str = "", **changes: str | None) -> bytes:
    fields = FIELDS | {name.replace("_", "-"): value for name, value in changes.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
    return b"%b\r\n%b\r\n%b" % (line, (head + more).encode("latin-1"), BODY)


@pytest.mark.parametrize(
    "data",
    [
        request(),
        request(more="connection: Keep-Alive\r\nACCEPT: */*\r\nUser-Agent: a b (c)\r\n"),
        request(more="X-Forwarded-For: 10.0.0.1, 10.0.0.2\r\nAgentGym-Client: 01234567\r\n"),
        request(Content_Length=f"\t {len(BODY)} "),
    ],
)
def test_a_plain_step_request_is_read(data):
    assert read_step(data) == StepRequest("a-_Z9", b"Bearer sesame", BODY)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        request()[:-1],
        request() + b"x",
        request() + b"\r\n",
        request() + request(),
        b"\r\n" + request(),
        request().replace(b"\r\n", b"\n"),
        request().replace(b"\r\n\r\n", b"\n\n"),
        request().replace(b"Host: x\r\n", b"Host: x\n"),
        request().replace(b"Host: x\r\n", b"Host: x\r"),
        request(b"GET /v2/sessions/a/step HTTP/1.1"),
        request(b"POST /v2/sessions/a/step HTTP/1.0"),
        request(b"POST /v2/sessions/a/step  HTTP/1.1"),
        request(b"POST /v2/sessions/a/step?b HTTP/1.1"),
        request(b"POST /v2/sessions/a%2d/step HTTP/1.1"),
        request(b"POST /v2/sessions/a/reset HTTP/1.1"),
        request(b"POST /v2/sessions/a/b/step HTTP/1.1"),
        request(b"POST http://x/v2/sessions/a/step HTTP/1.1"),
        request(Host=None),
        request(Content_Length=None),
        request(Content_Length="0x17"),
        request(Content_Length="+23"),
        request(Content_Length="23, 23"),
        request(Content_Length="22"),
        request(Content_Length="24"),
        request(Content_Length=""),
        request(more="Content-Length: 23\r\n"),
        request(more="content-length: 23\r\n"),
        request(more="Content-Length : 23\r\n"),
        request(more="Transfer-Encoding: chunked\r\n"),
        request(more="Transfer-Encoding : chunked\r\n"),
        request(more="Expect: 100-continue\r\n"),
        request(more="Connection: close\r\n"),
        request(more="Connection: keep-alive, upgrade\r\n"),
        request(more="Upgrade: websocket\r\n"),
        request(more="Content-Encoding: gzip\r\n"),
        request(more="Authorization: Bearer other\r\n"),
        request(more="Cookie: a=b\r\n"),
        request(more="Accept: a\r\n b\r\n"),
        request(more="Accept\r\n"),
        request(more="Accept: \x00\r\n"),
        request(more="Accept: \xe9\r\n"),
        request(more="Accept: a\nContent-Length: 9\r\n"),
        request(more="Accept: " + "x" * 5000 + "\r\n"),
    ],
)
def test_other_requests_take_the_general_path(data):
    assert read_step(data) is None
