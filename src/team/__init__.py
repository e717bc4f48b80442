"""TEAM, the transductive episodic-wise adaptive metric for few-shot learning (ICCV 2019)."""

from team.backbones import create_backbone, list_backbones
from team.methods import create_method, list_methods
from team.metric import AdaptedMetric, adaptive_metric, metric_distances, solve_metric
from team.mixing import task_internal_mixing
from team.similarity import bidirectional_log_similarity

__version__ = "0.1.0"

__all__ = [
    "AdaptedMetric",
    "adaptive_metric",
    "bidirectional_log_similarity",
    "create_backbone",
    "create_method",
    "list_backbones",
    "list_methods",
    "metric_distances",
    "solve_metric",
    "task_internal_mixing",
]
