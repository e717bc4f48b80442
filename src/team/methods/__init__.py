"""The methods, by name. Each stands in a file of its own, with the paper it comes from."""

from __future__ import annotations

import inspect
from typing import Any

from team.closed_form import MetricSettings
from team.methods.adaptive import AdaptiveMetric
from team.methods.alpha_tim import AlphaTIM
from team.methods.base import Method
from team.methods.baseline import Baseline, BaselinePP
from team.methods.bd_cspn import BDCSPN
from team.methods.gnn import GNN
from team.methods.label_propagation import LabelPropagation
from team.methods.laplacianshot import LaplacianShot
from team.methods.maml import MAML, MAMLPlus
from team.methods.matchingnet import MatchingNet
from team.methods.protonet import ProtoNet
from team.methods.pt_map import PTMAP
from team.methods.relationnet import RelationNet
from team.methods.reptile import Reptile
from team.methods.simpleshot import SimpleShot
from team.methods.soft_kmeans import MaskedSoftKMeans, SoftKMeans, SoftKMeansCluster
from team.methods.team import TEAM
from team.methods.team_plus import TEAMPlus
from team.methods.tim import TIM
from team.methods.tpn import TPN
from team.methods.transductive_finetuning import TransductiveFinetuning

_METHODS: dict[str, type[Method]] = {
    "alpha-tim": AlphaTIM,
    "baseline": Baseline,
    "baseline++": BaselinePP,
    "bd-cspn": BDCSPN,
    "gnn": GNN,
    "label-propagation": LabelPropagation,
    "laplacianshot": LaplacianShot,
    "maml": MAML,
    "maml+": MAMLPlus,
    "masked-soft-kmeans": MaskedSoftKMeans,
    "matchingnet": MatchingNet,
    "protonet": ProtoNet,
    "pt-map": PTMAP,
    "relationnet": RelationNet,
    "reptile": Reptile,
    "simpleshot": SimpleShot,
    "soft-kmeans": SoftKMeans,
    "soft-kmeans-cluster": SoftKMeansCluster,
    "team": TEAM,
    "team+": TEAMPlus,
    "tim": TIM,
    "tpn": TPN,
    "transductive-finetuning": TransductiveFinetuning,
}

# Not PT-MAP: its power transform is for outputs of a ReLU. Not linear heads: they know no distance.
ADAPTABLE = frozenset(
    {
        "alpha-tim",
        "bd-cspn",
        "label-propagation",
        "laplacianshot",
        "masked-soft-kmeans",
        "matchingnet",
        "protonet",
        "simpleshot",
        "soft-kmeans",
        "soft-kmeans-cluster",
        "tim",
    }
)
"""Methods made of distances or cosines, which can be given the adaptive metric."""

DEFAULT_METHOD = "team+"
"""What is used where no method is named: on feature vectors (TEAMClassifier) and on folders of images."""


def list_methods() -> list[str]:
    """The names :func:`create_method` knows."""
    return sorted(_METHODS)


def list_options(name: str) -> list[str]:
    """The options of the method of this name."""
    if name not in _METHODS:
        raise ValueError(f"no method is called {name!r}; there are {', '.join(list_methods())}")
    return list(inspect.signature(_METHODS[name]).parameters)


def create_method(name: str, **options: Any) -> Method:
    """The method of this name with these options; ``create_method("team", k=5)`` is the paper's formula.

    Methods in :data:`ADAPTABLE` also take ``metric``: "euclidean", "adaptive", or settings of the adaptive metric.
    """
    known = list_options(name)
    if name in ADAPTABLE and "metric" in options:
        return _with_metric(name, **options)
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"{name} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    return _METHODS[name](**options)


def _with_metric(name: str, *, metric: str | MetricSettings, **options: Any) -> Method:
    method = create_method(name, **options)
    if metric == "euclidean":
        return method
    if metric != "adaptive" and not isinstance(metric, MetricSettings):
        raise ValueError(f"metric must be 'euclidean', 'adaptive' or MetricSettings, not {metric!r}")
    if options.get("base_mean") is not None:
        raise ValueError("base_mean belongs to the given features, not to those under M†; subtract it beforehand")
    return AdaptiveMetric(method, MetricSettings() if isinstance(metric, str) else metric)


__all__ = [
    "ADAPTABLE",
    "DEFAULT_METHOD",
    "TEAM",
    "Method",
    "MetricSettings",
    "ProtoNet",
    "create_method",
    "list_methods",
    "list_options",
]
