"""Search engines over passages: one protocol, several engines, and what goes around any of them."""

from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever

__all__ = ["Hit", "Passage", "Retriever"]
