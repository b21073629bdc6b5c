"""The protocol as one self-contained HTML page, derived from the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any

from agentgym_envs.http.openapi import openapi

_SERVER, _PARAGRAPH = "$SERVER", "\n\n"
_LONGEST_TEXT, _LINE = 160, 84
_OPEN = ("/v2/sessions", "/v2/sessions/{session}/reset", "/v2/sessions/{session}/step")
"""The requests that are unfolded when the page opens: those of an episode."""
_STYLE = """
:root { color-scheme: light dark; --back: #fbfaf7; --card: #fff; --ink: #1d2126; --soft: #5f6872; --line: #e2dfd7;
  --code: #f3f1ea; --post: #0b6b53; --get: #2457a6; --delete: #a3342b; --mark: #b4541a; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1b1f23; --ink: #e4e6e8; --soft: #9aa3ac;
  --line: #2e343a; --code: #101316; --post: #58c9a5; --get: #7fb0f5; --delete: #f08d82; --mark: #eda36b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; letter-spacing: -.01em; }
h1 small { font-size: 1rem; font-weight: 400; color: var(--soft); letter-spacing: 0; }
h2 { font-size: .85rem; margin: 2.75rem 0 .75rem; text-transform: uppercase; letter-spacing: .09em;
  color: var(--soft); }
h3 { font-size: .8rem; margin: 1.1rem 0 .35rem; color: var(--soft); font-weight: 600; }
p { margin: .6rem 0; max-width: 46rem; }
a { color: var(--get); }
code, pre { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, li code, td code { background: var(--code); padding: .1em .35em; border-radius: 4px; }
pre { background: var(--code); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; margin: .35rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: .5rem 0; }
summary { cursor: pointer; padding: .6rem 1rem; display: flex; gap: .8rem; align-items: baseline; flex-wrap: wrap;
  list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--get); outline-offset: 2px; border-radius: 8px; }
summary .what { color: var(--soft); margin-left: auto; }
details[open] > summary { border-bottom: 1px solid var(--line); }
.inside { padding: .1rem 1rem 1rem; }
.inside p { max-width: none; }
.method { font: 700 .72rem/1 ui-monospace, monospace; min-width: 3.6rem; text-transform: uppercase; }
.post { color: var(--post); } .get { color: var(--get); } .delete { color: var(--delete); }
.path b { color: var(--mark); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
td { padding: .35rem .8rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top; }
tr:first-child td { border-top: 0; }
td:first-child { white-space: nowrap; } td:last-child { width: 100%; }
td.type { color: var(--soft); white-space: nowrap; }
.required { color: var(--mark); font-size: .8em; }
@media (max-width: 40rem) { summary .what { margin-left: 0; width: 100%; } td.type { white-space: normal; } }
"""


@cache
def docs_page() -> str:
    """The HTML page."""
    document = openapi()
    info = document["info"]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])}: the protocol</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(info["title"])} <small>the protocol, version {escape(info["version"])}</small></h1>
{"".join(f"<p>{_inline(paragraph)}</p>" for paragraph in info["description"].split(_PARAGRAPH))}
<p>For programs: <a href="openapi.json">openapi.json</a>. The Python client needs none of this:</p>
<pre>env = gym.make("AgentGym/TextCraft-v0", base_url="http://127.0.0.1:8000")</pre>
<p>The examples below are shell commands with these variables:</p>
<pre>SERVER=http://127.0.0.1:8000
SESSION=...        # the token in the reply to POST /v2/sessions</pre>
<p>If the server asks for a token, add <code>-H "Authorization: Bearer $AGENTGYM_TOKEN"</code> to each.</p>
{"".join(_sections(document))}
<h2>Errors</h2>
{_error_table(document)}
</main>
</body>
</html>
"""


def _inline(text: str) -> str:
    """Text with `code` as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    last = None
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != last:
                last = operation["tags"][0]
                yield f"<h2>{escape(last)}</h2>\n"
            yield _card(document, path, method, operation)


def _card(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> str:
    shown = re.sub(r"\{(\w+)\}", r"<b>{\1}</b>", escape(path))
    return f"""<details id="{operation["operationId"]}"{" open" if path in _OPEN else ""}>
<summary><span class="method {method}">{method}</span><code class="path">{shown}</code>
<span class="what">{escape(operation["summary"])}</span></summary>
<div class="inside">
{"".join(_parts(document, path, method, operation))}</div>
</details>
"""


def _parts(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if fields := _resolve(document, content.get("schema", {})).get("properties"):
        required = _resolve(document, content["schema"]).get("required", [])
        yield f"<h3>Body</h3>\n{_field_table(fields, required)}"
    if (body := content.get("example")) is not None or "requestBody" not in operation:
        yield f"<h3>Example</h3>\n<pre>{escape(curl(method, path, body), quote=False)}</pre>\n"
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield from _reply(document, status, response)
    failures = [name for status in operation["responses"] for name in _names(operation, status)]
    if failures:
        links = ", ".join(f'<a href="#{name}">{name}</a>' for name in failures)
        yield f"<h3>Errors</h3>\n<p>{links}</p>\n"


def curl(method: str, path: str, body: Any) -> str:
    """The request as a shell command with the variables SERVER and SESSION."""
    url = _SERVER + path.replace("{session}", "$SESSION")
    words = ["curl", *([] if method == "get" else ["-X", method.upper()]), url]
    if body:
        quoted = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        words.append(f"\\\n     -d '{quoted}'")
    return " ".join(words)


def _reply(document: Mapping[str, Any], status: str, response: Mapping[str, Any]) -> Iterator[str]:
    content = response.get("content", {})
    meaning = _resolve(document, content.get("application/json", {}).get("schema", {})).get("description", "")
    yield f"<h3>Reply, {status}</h3>\n<p>{_inline(meaning or response['description'])}</p>\n"
    example = content.get("application/json", {}).get("example")
    if example is not None:
        yield f"<pre>{escape(_laid_out(_shortened(example)), quote=False)}</pre>\n"


def _shortened(value: Any) -> Any:
    """The value with long texts truncated: the page shows the form, the document has the whole."""
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]} …"
    return value


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON with a line for each value that fits on one."""
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(text) <= _LINE:
        return text
    deeper = f"{indent}  "
    if isinstance(value, list):
        inner = [_laid_out(item, deeper) for item in value]
    else:
        inner = [f"{json.dumps(name)}: {_laid_out(item, deeper)}" for name, item in value.items()]
    left, right = "[]" if isinstance(value, list) else "{}"
    return f"{left}\n{deeper}" + f",\n{deeper}".join(inner) + f"\n{indent}{right}"


def _field_table(fields: Mapping[str, Any], required: list[str]) -> str:
    rows = []
    for name, field in fields.items():
        mark = ' <span class="required">required</span>' if name in required else ""
        meaning = _inline(field.get("description", ""))
        rows.append(
            f'<tr><td><code>{name}</code>{mark}</td><td class="type">{_type_of(field)}</td><td>{meaning}</td></tr>\n'
        )
    return f"<table>\n{''.join(rows)}</table>\n"


def _type_of(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return _type_of(field["anyOf"][0])
    if field.get("type") == "array" and "items" in field:
        return f"list of {_type_of(field['items'])}"
    names = {"array": "list", "integer": "whole number", "boolean": "true or false"}
    kind = str(field.get("type", "calls"))
    return " or ".join(map(str, field["enum"])) if "enum" in field else names.get(kind, kind)


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


def _names(operation: Mapping[str, Any], status: str) -> list[str]:
    """The error types with this status in an operation."""
    content = operation["responses"][status].get("content", {}).get("application/json", {})
    return list(content.get("examples", {}))


def _error_table(document: Mapping[str, Any]) -> str:
    found: dict[tuple[str, str], str] = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            for status in operation["responses"]:
                for name in _names(operation, status):
                    content = operation["responses"][status]["content"]["application/json"]
                    found[status, name] = content["examples"][name]["value"]["error"]["message"]
    rows = "".join(
        f'<tr id="{name}"><td>{status}</td><td><code>{name}</code></td><td>{_inline(text)}</td></tr>\n'
        for (status, name), text in sorted(found.items())
    )
    return f"<table>\n{rows}</table>\n"
