"""TEAM, the transductive episodic-wise adaptive metric for few-shot learning (ICCV 2019)."""

from team.backbones import create_backbone, list_backbones
from team.evaluation import Evaluation, evaluate
from team.methods import create_method, list_methods
from team.metric import AdaptedMetric, adaptive_metric, metric_distances, solve_metric
from team.mixing import task_internal_mixing
from team.model import Model, load_model
from team.similarity import bidirectional_log_similarity
from team.weights import list_weights, weights_path

__version__ = "0.1.0"

__all__ = [
    "AdaptedMetric",
    "Evaluation",
    "Model",
    "adaptive_metric",
    "bidirectional_log_similarity",
    "create_backbone",
    "create_method",
    "evaluate",
    "list_backbones",
    "list_methods",
    "list_weights",
    "load_model",
    "metric_distances",
    "solve_metric",
    "task_internal_mixing",
    "weights_path",
]
