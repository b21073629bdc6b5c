"""Labels of turns: distance to the goal before and after, regret, reachability, and the first mistake of an episode.

`labels.labeller` and `labels.running` make them; this module stays light for those who only read them.
"""

from agentgym_envs.labels.record import EpisodeLabels, LabelTable, TurnLabel, is_label_file, labels_path, read_labels

__all__ = ["EpisodeLabels", "LabelTable", "TurnLabel", "is_label_file", "labels_path", "read_labels"]
