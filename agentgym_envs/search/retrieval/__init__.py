"""Search engines over passages: one protocol, several engines, and what goes around any of them."""

from agentgym_envs.search.retrieval.base import MAX_TOP_K, Hit, Passage, Retriever

__all__ = ["MAX_TOP_K", "Hit", "Passage", "Retriever"]
