"""Search engines over passages: the `Retriever` protocol, the engines, indexes, caching and batching."""

from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever

__all__ = ["Hit", "Passage", "Retriever"]
