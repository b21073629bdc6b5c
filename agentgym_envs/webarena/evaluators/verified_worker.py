"""A worker program that scores tasks with webarena-verified: one JSON object per line in and out.

The Python that has the package runs it. It imports only the standard library and that package, since this Python may
not have agentgym-envs.

Source: https://github.com/ServiceNow/webarena-verified (1.2.3), `WebArenaVerified.evaluate_task`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import sys
from typing import Any

NO_REQUEST = {"request": {"method": "GET", "url": "about:blank", "headers": []}, "response": {"status": 200}}
"""A placeholder for an empty list of requests, which the package rejects."""


def score(request: dict[str, Any]) -> dict[str, Any]:
    """Score {task, answer, requests, urls} as {score, reason}; report errors as {usage} or {error}.

    The package reports the same error for an answer that it cannot read and for a bug of its own. If it can evaluate
    the same requests without an answer, the answer was unreadable.
    """
    try:
        package = _package(tuple(sorted(request["urls"].items())))
        missing = {str(site.value) for site in package.get_task(request["task"]).sites} - request["urls"].keys()
        if missing:
            return {"usage": f"task {request['task']} needs the address of: {', '.join(sorted(missing))}"}
        result = _evaluate(package, request, request["answer"])
        if result.status == "error" and _evaluate(package, request, None).status == "error":
            return {"error": f"webarena-verified failed on task {request['task']}: {_why(result)}"}
    except ModuleNotFoundError as error:
        return {"usage": f"{sys.executable} cannot score tasks of WebArena Verified: {error}"}
    except Exception as error:  # reported to the caller
        return {"error": f"webarena-verified failed: {type(error).__name__}: {error}"}
    return {"score": float(result.score), "reason": _why(result)}


@functools.lru_cache(maxsize=8)
def _package(urls: tuple[tuple[str, str], ...]) -> Any:
    config = importlib.import_module("webarena_verified.types.config")
    api = importlib.import_module("webarena_verified.api.webarena_verified")
    environments = {f"__{name.upper()}__": {"urls": [url.rstrip("/")]} for name, url in urls}
    return api.WebArenaVerified(config=config.WebArenaVerifiedConfig(environments=environments))


def _evaluate(package: Any, request: dict[str, Any], answer: str | None) -> Any:
    trace = request["requests"] or [NO_REQUEST]
    return package.evaluate_task(task_id=request["task"], agent_response=answer, network_trace=trace)


def _why(result: Any) -> str:
    if result.error_msg:
        return str(result.error_msg)
    for part in result.evaluators_results:
        if part.error_msg:
            return str(part.error_msg)
        for assertion in part.assertions or ():
            return f"{assertion.assertion_name}: {' '.join(assertion.assertion_msgs or ())}".strip(": ")
    return ""


def main() -> None:
    """Answer requests until the input ends."""
    logging.disable()
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # output of the package must not mix with replies
        for line in sys.stdin:
            out.write(json.dumps(score(json.loads(line))) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
