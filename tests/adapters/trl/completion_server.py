"""A server with the protocol of vLLM's OpenAI server, over a small model in this process.

It has the endpoints that TRL 1.16 and `ServerEngine` use: `/health`, `/v1/models`, `/v1/completions` (token ids in and
out), `/server_info` and `/reset_prefix_cache`. `load` changes the weights, since vLLM receives them by NCCL only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

import torch

from tests.quiet_http import QuietHTTPServer

DEFAULTS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def settings(url: str, **more: Any) -> SimpleNamespace:
    """The fields of TRL's `VLLMGeneration` that `ServerEngine` reads."""
    fields: dict[str, Any] = {
        **DEFAULTS,
        "min_p": None,
        "server_base_url": url,
        "structured_outputs_regex": None,
        "generation_kwargs": {},
    }
    return SimpleNamespace(**{**fields, **more})


class CompletionServer:
    """Serves `model` at `url` while used as a context manager. `requests` has the bodies of all requests.

    `defaults` are the values of fields that a request leaves out, like a model's `generation_config.json` in vLLM.
    `hold` is called in the thread of a request before the answer; `edit` may change an answer.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str = "tiny",
        context: int = 4096,
        defaults: dict[str, Any] | None = None,
        processed: bool = True,
        hold: Callable[[dict[str, Any]], None] | None = None,
        edit: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.model, self.name, self.context, self.processed = model.eval(), name, context, processed
        self.defaults = {**DEFAULTS, **(defaults or {})}
        self._hold, self._edit = hold or (lambda body: None), edit or (lambda answer: answer)
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.in_flight = self.most_in_flight = self.connections = 0
        self.lock, self._count, self._closed = threading.Lock(), threading.Lock(), False
        self._http = QuietHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> CompletionServer:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._closed = True
        with self.lock:  # a thread that still computes when Python ends would abort the process
            pass

    def load(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Load new weights, by the names of the model."""
        state = self.model.state_dict()
        with self.lock, torch.no_grad():
            for name, weight in weights:
                state[name].copy_(weight)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of a request."""
        self.paths.append(path)
        if path == "/v1/completions":
            with self._counted():
                self.requests.append(body)
                self._hold(body)
                return self._complete(body)
        mode = "processed_logprobs" if self.processed else "raw_logprobs"
        simple: dict[str, dict[str, Any]] = {
            "/health": {},
            "/reset_prefix_cache": {"success": True},
            "/v1/models": {"data": [{"id": self.name, "max_model_len": self.context}]},
            "/server_info": {"vllm_config": {"model_config": {"logprobs_mode": mode}}},
        }
        return (200, simple[path]) if path in simple else (404, {"error": {"message": f"{method} {path}"}})

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._count:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._count:
                self.in_flight -= 1

    def _complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["model"] != self.name:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
        if (length := max(map(len, prompts)) + body["max_tokens"]) > self.context:
            return 400, {"error": {"message": f"maximum context length is {self.context} tokens, not {length}"}}
        with self.lock:
            if self._closed:
                return 503, {"error": {"message": "the server has ended"}}
            choices = [self._choice(prompt, body) for prompt in prompts for _ in range(body.get("n", 1))]
        return 200, self._edit({"choices": choices})

    def _choice(self, prompt: list[int], body: dict[str, Any]) -> dict[str, Any]:
        ids, logprobs = self._sample(prompt, body)
        stopped = ids[-1] in self._ends(body)
        texts = [f"token_id:{i}" if body.get("return_tokens_as_token_ids") else str(i) for i in ids]
        choice: dict[str, Any] = {"text": " ".join(map(str, ids)), "finish_reason": "stop" if stopped else "length"}
        if body.get("logprobs") is not None:
            top = [{text: logprob} for text, logprob in zip(texts, logprobs, strict=True)]
            choice["logprobs"] = {"tokens": texts, "token_logprobs": logprobs, "top_logprobs": top}
        if body.get("return_token_ids"):
            choice |= {"token_ids": ids, "prompt_token_ids": prompt}
        return choice

    def _ends(self, body: dict[str, Any]) -> set[int]:
        return {self.model.config.eos_token_id, *body.get("stop_token_ids", [])}

    @torch.no_grad()
    def _sample(self, prompt: list[int], body: dict[str, Any]) -> tuple[list[int], list[float]]:
        how = {key: default if body.get(key) is None else body[key] for key, default in self.defaults.items()}
        how["top_k"] = max(how["top_k"], 0)  # both 0 and -1 mean no top-k
        greedy = how["temperature"] == 0
        out = self.model.generate(
            input_ids=torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=body["max_tokens"],
            do_sample=not greedy,
            **({} if greedy else how),
            eos_token_id=sorted(self._ends(body)),
            pad_token_id=self.model.config.pad_token_id,
            return_dict_in_generate=True,
            output_scores=True,
            output_logits=True,
        )
        ids = out.sequences[0, len(prompt) :].tolist()
        steps = torch.cat(out.scores if self.processed else out.logits).log_softmax(-1)
        return ids, [max(steps[index, token].item(), -9999.0) for index, token in enumerate(ids)]


def _handler(server: CompletionServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keep connections open
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._reply(json.loads(self.rfile.read(length) or b"{}"))

        def _reply(self, body: dict[str, Any]) -> None:
            status, answer = server.answer(self.command, self.path.split("?")[0], body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler
