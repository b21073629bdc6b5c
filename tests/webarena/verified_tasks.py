"""Correct answers and requests for tasks of WebArena Verified, generated from the tasks' own rules."""

import json
import re
from itertools import pairwise
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any
from urllib.parse import quote, urlencode

URLS = {
    "shopping": "http://shop.test",
    "shopping_admin": "http://admin.test/admin",
    "gitlab": "http://code.test",
    "reddit": "http://forum.test",
    "map": "http://map.test",
    "wikipedia": "http://wiki.test",
}


def expected_answer(task: dict[str, Any]) -> str:
    expected = task["eval"][0]["expected"]
    data = expected.get("retrieved_data")
    if data is not None:  # the first alternative
        data = [filled(item[0] if isinstance(item, list) else item) for item in data]
    return json.dumps({**expected, "task_type": expected["task_type"].upper(), "retrieved_data": data})


def expected_requests(task: dict[str, Any]) -> list[dict[str, Any]]:
    start = entry("GET", URLS[task["sites"][0]] + "/begin", {"accept": "text/html"})
    rules = [rule for rule in task["eval"][1:] if not rule.get("should_not_exist")]
    return [start, *(_expected_request(rule["expected"]) for rule in rules)]


def entry(
    method: str, url: str, headers: dict[str, str] | None = None, status: int = 200, **parts: Any
) -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in (headers or {}).items()]
    request = {"method": method, "url": url, "headers": listed}
    if "post" in parts:
        request["postData"] = parts["post"]
    response = {"status": status, "headers": parts.get("response_headers", [])}
    if "content" in parts:
        response["content"] = {"mimeType": "application/json", "text": json.dumps(parts["content"])}
    return {"request": request, "response": response}


def filled(value: Any) -> Any:
    """Replace the names of sites by their addresses."""
    if isinstance(value, dict):
        return {name: filled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"__([A-Z_]+?)__", lambda match: URLS.get(match[1].lower(), match[0]), value)


def matching(pattern: str) -> str:
    """A short text that a simple regular expression matches."""
    ahead = "".join(re.findall(r"\(\?=\.\*(\w+)\)", pattern))
    tree = sre.parse(re.sub(r"\(\?[=!](?:\(\?:.*?\)|[^()])*\)", "", pattern))
    text = _sample(tree)
    text = text if re.match(pattern, text) else ahead + text
    assert re.match(pattern, text), pattern
    return text


def _sample(tree: Any) -> str:
    return "".join(_sample_one(str(kind), value) for kind, value in tree)


def _sample_one(kind: str, value: Any) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "ANY":
        return "x"
    if kind == "IN":
        return (
            (" " if "SPACE" in str(value) else "7")
            if "CATEGORY" in str(value)
            else chr(value[0][1][0] if str(value[0][0]) == "RANGE" else value[0][1])
        )
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        return _sample(value[2]) * max(value[0], min(value[1], 1))
    if kind == "SUBPATTERN":
        return _sample(value[3])
    if kind == "BRANCH":
        return _sample(value[1][0])
    assert kind == "AT", kind
    return ""


def _literal(value: Any) -> Any:
    """The first alternative, and a text for a regular expression."""
    value = value[0] if isinstance(value, list) else value
    if isinstance(value, str) and value.startswith("^") and value.endswith("$"):
        return filled(matching(value.replace("^.*/rout", "^__MAP__/rout")))
    return filled(value)


def _expected_request(expected: dict[str, Any]) -> dict[str, Any]:
    url = _literal(expected["url"])
    query = {name: [_literal(value) for value in values] for name, values in expected.get("query_params", {}).items()}
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query, doseq=True)
    headers = {"accept": "text/html", **{name: _literal(value) for name, value in expected.get("headers", {}).items()}}
    parts: dict[str, Any] = {}
    if expected.get("post_data"):
        parts["post"] = _posted(expected["post_data"])
    if expected.get("response_content"):
        parts["content"] = _nested(expected["response_content"])
    if expected.get("response_cookies"):
        cookies = [f"{name}={quote(_literal(value))}; path=/" for name, value in expected["response_cookies"].items()]
        parts["response_headers"] = [{"name": "Set-Cookie", "value": "\n".join(cookies)}]
    method, status = expected.get("http_method", "GET"), expected.get("response_status", 200)
    return entry(method, url, headers, status, **parts)


def _posted(data: dict[str, Any]) -> dict[str, str]:
    if any(not isinstance(value, str | None) for value in data.values()) or any("$" in key for key in data):
        return {"mimeType": "application/json", "text": json.dumps(_nested(data))}
    fields = {"form_key": "x", **{name: _literal(value) for name, value in data.items() if value is not None}}
    return {"mimeType": "application/x-www-form-urlencoded", "text": urlencode(fields)}


def _nested(data: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with values at paths."""
    made: dict[str, Any] = {}
    for path, value in data.items():
        if path.startswith("$.^"):
            made[matching(path[2:])] = _literal(value)
        elif "?(" in path:
            made["configurable-matrix-serialized"] = json.dumps([{"newProduct": 1, "attributes": one} for one in value])
        elif value is not None:
            _put(made, re.findall(r"[^.\[\]$]+", path) if path.startswith("$") else [path], _shape(value))
    return made


def _shape(value: Any) -> Any:
    return [filled(one) for one in value] if isinstance(value, list) else _literal(value)


def _put(data: Any, steps: list[str], value: Any) -> None:
    for step, after in pairwise(steps):
        new: Any = [] if after.isdigit() else {}
        data = _at(data, step, new)
    if isinstance(data, list):
        data.append(value)
    else:
        data[steps[-1]] = value


def _at(data: Any, step: str, new: Any) -> Any:
    if not isinstance(data, list):
        return data.setdefault(step, new)
    while len(data) <= int(step):
        data.append(type(new)())
    return data[int(step)]
