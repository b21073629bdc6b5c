"""Tables of engines and rerankers for the documentation, in Markdown."""

from __future__ import annotations

from agentgym_envs.search.retrieval.rerankers import PROTOCOLS
from agentgym_envs.search.retrieval.retrievers import RETRIEVERS
from agentgym_envs.search.web.vendors import WEB_ENGINES


def retriever_table() -> str:
    """Return the engines that have a name, with what they need and their own options."""
    rows = ["| engine | | needs | options |", "|---|---|---|---|"]
    for name, kind in RETRIEVERS.items():
        options = ", ".join(f"`{option}`" for option in kind.options)
        rows.append(f"| `{name}` | {kind.help or 'the default'} | {_needs(name)} | {options} |")
    return "\n".join(rows) + "\n"


def rerank_table() -> str:
    """Return the protocols of rerankers behind HTTP."""
    rows = ["| protocol | path | key | texts a request |", "|---|---|---|---|"]
    rows += [f"| `{name}` | `{row.path}` | `{row.environment}` | {row.most:,} |" for name, row in PROTOCOLS.items()]
    return "\n".join(rows) + "\n"


def _needs(name: str) -> str:
    if name not in WEB_ENGINES:
        return "an index of its own" if RETRIEVERS[name].own_index else "`index`: a folder in Search-R1's layout"
    engine = WEB_ENGINES[name]
    return " and ".join(f"`{variable}`" for variable in engine.secrets) or "`url`: the address of the instance"
