"""Labels of turns: distance to the goal before and after, regret, reachability, and the first mistake of an episode."""

from agentgym_envs.labels.labeller import Labeller
from agentgym_envs.labels.record import EpisodeLabels, TurnLabel, labels_path, read_labels, write_labels

__all__ = ["EpisodeLabels", "Labeller", "TurnLabel", "labels_path", "read_labels", "write_labels"]
