"""The description of the protocol says what the server does, and the page says what the description does."""

import json
import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec
import pytest
from starlette.routing import Match, Route

from agentgym_envs import errors
from agentgym_envs.hosting.methods import METHODS
from agentgym_envs.http import protocol
from agentgym_envs.http.app import create_app
from agentgym_envs.http.openapi import ENDPOINTS, ENV, OPTIONS, SESSION, Endpoint, make_examples, openapi
from agentgym_envs.http.pages import curl, docs_page
from agentgym_envs.http.protocol import BadRequest, BatchCall, CallBody
from agentgym_envs.http.run import background_server

HTTP_VERBS = {"get", "post", "delete"}
VOID = {"meta"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with background_server([ENV]) as url, httpx.Client(base_url=url) as client:
        yield client


def open_session(client: httpx.Client) -> str:
    return str(client.post("/v2/sessions", json={"env": ENV, "options": OPTIONS}).json()["session"])


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(m, path, op) for path, found in openapi()["paths"].items() for m, op in found.items()]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(item)


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    routes = [route for route in create_app([ENV]).routes if isinstance(route, Route) and route.include_in_schema]
    reached = set()
    for method, path, _ in operations():
        scope = {"type": "http", "method": method.upper(), "path": path.replace("{session}", "token"), "headers": []}
        found = next(route for route in routes if route.matches(scope)[0] is Match.FULL)
        reached.add((found.path, method.upper()))
    assert reached == {(route.path, method) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    assert {path.rpartition("/")[2] for _, path, _ in operations() if "{session}/" in path} == {*METHODS, "fork"}


def test_the_document_has_the_form_of_openapi() -> None:
    document = json.loads(json.dumps(openapi()))
    assert document["openapi"] == "3.1.0"
    assert {"title", "version", "description"} <= set(document["info"])
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))
    assert {method for method, _, _ in operations()} == HTTP_VERBS
    names = set(document["components"]["schemas"])
    references = {node["$ref"] for node in walk(document) if "$ref" in node}
    assert {reference.removeprefix("#/components/schemas/") for reference in references} == names
    for _, path, operation in operations():
        assert operation["summary"]
        wanted = re.findall(r"{(\w+)}", path)
        assert [parameter["name"] for parameter in operation.get("parameters", [])] == wanted
        assert all(response["description"] for response in operation["responses"].values())


@pytest.mark.slow
def test_a_token_may_be_asked_for_everywhere_but_for_health() -> None:
    document = openapi()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["security"] == [{}, {"token": []}]
    open_paths = [path for _, path, operation in operations() if operation.get("security") == []]
    assert open_paths == ["/health"]
    with background_server([ENV], token="s3cret") as url:
        for row in ENDPOINTS:
            status = httpx.request(row.method, url + row.path.replace("{session}", "x")).status_code
            assert (status == 401) == ("401" in openapi()["paths"][row.path][row.method]["responses"])


def test_every_field_says_what_it_means() -> None:
    schemas = openapi()["components"]["schemas"]
    assert set(schemas["BatchCall"]["properties"]) == set(BatchCall.__struct_fields__) > set(CallBody.__struct_fields__)
    assert all(
        field["description"]
        for name in ("CreateSession", "BatchBody", "BatchCall")
        for field in schemas[name]["properties"].values()
    )


def test_a_verb_shows_the_fields_that_it_takes() -> None:
    for method in METHODS:
        body = openapi()["paths"][f"/v2/sessions/{{session}}/{method}"]["post"]["requestBody"]
        schema = body["content"]["application/json"]["schema"]
        assert set(schema["properties"]) - {"seq"} == {each.name for each in METHODS[method].parameters}
        assert schema.get("required", []) == list(METHODS[method].required)
        assert body["required"] == bool(METHODS[method].required)


@pytest.mark.parametrize("row", [row for row in ENDPOINTS if row.body], ids=lambda row: row.path)
def test_every_example_is_a_body(row: Endpoint) -> None:
    assert row.body is not None
    if row.path.endswith("/random_command"):
        return  # the state of a generator is too long for an example
    body = make_examples()[row.method, row.path].body
    read = protocol.read(json.dumps(body).encode(), row.body)
    if isinstance(read, CallBody):
        method = row.path.rpartition("/")[2]
        assert set(protocol.arguments_of(read, method)) | {"seq"} >= set(body)


def test_every_example_is_what_the_server_replies(client: httpx.Client) -> None:
    token = open_session(client)
    # The batch steps after the last of the other examples, and closing comes last.
    rows = sorted(ENDPOINTS, key=lambda row: row.method == "delete")
    for row in rows:
        example = make_examples().get((row.method, row.path))
        path = row.path.replace("{session}", token)
        if row.path.endswith("/random_command"):
            continue
        body = json.loads(json.dumps(example.body if example else None).replace(SESSION, token))
        reply = client.request(row.method, path, json=body)
        assert reply.status_code == row.status, (row, reply.text)
        if example:
            assert without_tokens(reply.json()) == without_tokens(example.reply), row
            assert msgspec.to_builtins(msgspec.convert(reply.json(), row.reply)) == reply.json(), row
        elif isinstance(row.reply, str):
            assert reply.headers["content-type"].startswith(row.reply)


def without_tokens(value: Any) -> Any:
    """What differs from server to server is its name for a session, and how many there are."""
    if isinstance(value, dict):
        return {name: without_tokens(item) for name, item in value.items() if name not in ("session", "sessions")}
    return [without_tokens(item) for item in value] if isinstance(value, list) else value


def test_a_random_command(client: httpx.Client) -> None:
    token = open_session(client)
    client.post(f"/v2/sessions/{token}/reset", json={"seed": 0})
    reply = client.post(f"/v2/sessions/{token}/random_command", json={"rng": [3, [*range(624), 624], None]})
    (row,) = [row for row in ENDPOINTS if row.path.endswith("/random_command")]
    assert msgspec.to_builtins(msgspec.convert(reply.json(), row.reply)) == reply.json()


@pytest.mark.parametrize(
    ("method", "content", "kind"),
    [
        ("step", b"{", "BadRequest"),
        ("step", b"{}", "Malformed"),
        ("step", b'{"action": "x", "colour": 1}', "Malformed"),
        ("step", b'{"action": "x"}', "EpisodeOver"),
        ("step", b'{"action": "x", "seq": 9}', "OutOfOrder"),
        ("reset", b'{"seed": -1}', "Malformed"),
        ("reset", b'{"options": {"task": "textcraft/9999"}}', "UnknownTask"),
        ("reset", b'{"options": {"colour": "red"}}', "UsageError"),
        ("oracle", b"", "NoOracle"),
        ("snapshot", b"", "EpisodeOver"),
        ("task", b'{"id": "nowhere/1"}', "UnknownTask"),
        ("random_command", b'{"rng": []}', "UsageError"),
        ("sample", b'{"split": "dev"}', "UnknownTask"),
    ],
)
def test_what_goes_wrong_is_described(client: httpx.Client, method: str, content: bytes, kind: str) -> None:
    reply = client.post(f"/v2/sessions/{open_session(client)}/{method}", content=content)
    assert reply.json()["error"]["type"] == kind
    responses = openapi()["paths"][f"/v2/sessions/{{session}}/{method}"]["post"]["responses"]
    assert kind in responses[str(reply.status_code)]["content"]["application/json"]["examples"]


def test_a_session_that_is_not_there_is_described(client: httpx.Client) -> None:
    bodies = {name: example.body for (_, name), example in make_examples().items()}
    for row in ENDPOINTS:
        if "{session}" in row.path and row.method != "delete":
            body = bodies.get(row.path, {"rng": []})
            reply = client.request(row.method, row.path.replace("{session}", "gone"), json=body)
            assert (reply.status_code, reply.json()["error"]["type"]) == (404, "SessionLost")
            responses = openapi()["paths"][row.path][row.method]["responses"]
            assert "SessionLost" in responses["404"]["content"]["application/json"]["examples"]


def test_errors_have_the_status_of_their_type() -> None:
    for _, _, operation in operations():
        for status, response in operation["responses"].items():
            for name, example in response.get("content", {}).get("application/json", {}).get("examples", {}).items():
                kind = getattr(errors, name, None) or getattr(protocol, name)
                assert protocol.status_of(kind("")) == int(status)
                assert example["value"]["error"]["type"] == name
    assert "Retry-After" in openapi()["paths"]["/v2/sessions"]["post"]["responses"]["429"]["headers"]
    assert protocol.status_of(BadRequest("")) == 400


class Page(HTMLParser):
    """Tags that are open, ids, and where links go."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.ids += [value or ""] if name == "id" else []
            self.links += [value or ""] if name == "href" else []
            self.loads += [value or ""] if name in ("src", "srcset", "data", "action") or tag == "link" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    reply = client.get("/docs")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.text == docs_page()
    page = Page()
    page.feed(reply.text)
    assert page.open == page.loads == []
    assert "@import" not in reply.text
    assert "url(" not in reply.text
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} - {"openapi.json"} <= set(page.ids)
    assert client.get("/openapi.json").json() == json.loads(json.dumps(openapi()))


def test_the_page_shows_every_request_with_its_example_and_errors() -> None:
    page = Page()
    page.feed(docs_page())
    text = squeezed(page.text)
    for method, path, operation in operations():
        assert squeezed(f"{method} {path} {operation['summary']}") in text
        if example := make_examples().get((method, path)):
            assert squeezed(curl(method, path, example.body)) in text
    for kind in (errors.OutOfOrder, errors.ServerFull, errors.Unauthorized, BadRequest):
        assert f"{protocol.status_of(kind(''))}{kind.__name__}" in text


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_curl_command_is_the_request() -> None:
    body = {"seq": 2, "action": 'it\'s "5 > 3" \\ $HOME'}
    words = shlex.split(curl("post", "/v2/sessions/{session}/step", body))
    assert words[:4] == ["curl", "-X", "POST", "$SERVER/v2/sessions/$SESSION/step"]
    assert json.loads(words[-1]) == body
    assert curl("get", "/health", None) == "curl $SERVER/health"
