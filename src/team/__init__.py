"""TEAM, the transductive episodic-wise adaptive metric for few-shot learning (ICCV 2019)."""

from typing import TYPE_CHECKING, Any

from team.backbones import create_backbone, list_backbones
from team.evaluation import Evaluation, evaluate
from team.methods import create_method, list_methods
from team.metric import AdaptedMetric, adaptive_metric, metric_distances, solve_metric
from team.mixing import task_internal_mixing
from team.model import Model, load_model
from team.similarity import bidirectional_log_similarity
from team.weights import list_weights, weights_path

if TYPE_CHECKING:
    from team.estimator import TEAMClassifier
    from team.labelling.folder import label_folder

__version__ = "0.1.0"

__all__ = [
    "AdaptedMetric",
    "Evaluation",
    "Model",
    "TEAMClassifier",
    "adaptive_metric",
    "bidirectional_log_similarity",
    "create_backbone",
    "create_method",
    "evaluate",
    "label_folder",
    "list_backbones",
    "list_methods",
    "list_weights",
    "load_model",
    "metric_distances",
    "solve_metric",
    "task_internal_mixing",
    "weights_path",
]


def __getattr__(name: str) -> Any:
    """Names that need more than the core are imported when they are asked for."""
    if name == "TEAMClassifier":
        from team.estimator import TEAMClassifier

        return TEAMClassifier
    if name == "label_folder":
        from team.labelling.folder import label_folder

        return label_folder
    raise AttributeError(f"module 'team' has no attribute {name!r}")
