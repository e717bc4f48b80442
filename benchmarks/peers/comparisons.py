"""Which of our methods is compared with what, under which options, and why some comparisons cannot agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.peers import originals
from benchmarks.peers.easyfsl import easyfsl
from benchmarks.peers.soft_kmeans import soft_kmeans
from benchmarks.peers.tasks import Loader, Tasks

REPOSITORIES = {
    "imtiazziko/LaplacianShot": "5de261226f6904379cff4cc5a1d183e309934809",
    "mboudiaf/TIM": "c324ca87223181fe888db3bc9214b315a6ada59d",
    "mileyan/simple_shot": "5d38fc83e698f11fea56bdfa3e1a8fdde9935e1a",
    "oveilleux/Realistic_Transductive_Few_Shot": "1ae784536a7a64f69393f66bb9f2a11546b0848d",
    "renmengye/few-shot-ssl-public": "4ce8726c036ae2811050e9571e8d2b4b46b2acac",
    "sicara/easy-few-shot-learning": "8023ff49a02a68830c10a21b8eb908cb33bdf1b9",
    "csyanbin/TPN-pytorch": "683f8a5a0a685a8849f733e14ef16c809aa4edee",
    "wyharveychen/CloserLookFewShot": "e03aca8a2d01c9b5861a5a816cd5d3fdfc47cd45",
    "yhu01/PT-MAP": "134b9403cebfab602067801f83a7b3c10c03d59c",
}
"""The commits the comparisons were written for; each is looked for in a folder named like the repository."""

_LEARNED = "its answers depend on weights of its own, trained here; tests compare it with its paper's formulas"
NOT_RUN = {
    "team": "no other implementation is public; tests compare it with the paper's formula and an SDP solver",
    "team+": "it is this project's own; tests compare it with a slow reference",
} | dict.fromkeys(("gnn", "maml", "maml+", "relationnet", "reptile", "tpn"), _LEARNED)

Options = Callable[[Tasks], dict[str, Any]]


@dataclass(frozen=True)
class Comparison:
    """options: of ours, for the tasks at hand; note: what was done to either side so that they can agree;
    differs: why they cannot, for a comparison that is shown but not demanded; slow: theirs is, so fewer episodes do."""

    method: str
    repository: str
    implementation: str
    load: Loader
    options: Options = lambda _: {}
    note: str = ""
    differs: str = ""
    slow: bool = False


def _fixed(**options: Any) -> Options:
    return lambda _: options


def _centred(tasks: Tasks) -> dict[str, Any]:
    return {"base_mean": tasks.centre}


_CLOSER, _SSL = "wyharveychen/CloserLookFewShot", "renmengye/few-shot-ssl-public"
_EASY, _REALISTIC = "sicara/easy-few-shot-learning", "oveilleux/Realistic_Transductive_Few_Shot"
_closer, _realistic = originals.closer_look, originals.realistic
_baseline = partial(_closer, module="baselinefinetune", name="BaselineFinetune")
_linear, _cosine = partial(_baseline, loss_type="softmax"), partial(_baseline, loss_type="dist")
_RANDOM = "both draw starts and mini-batches at random, each by its own seed"

COMPARISONS = [
    Comparison("protonet", _CLOSER, "ProtoNet", partial(_closer, module="protonet", name="ProtoNet")),
    Comparison("protonet", _EASY, "PrototypicalNetworks", partial(easyfsl, name="PrototypicalNetworks")),
    Comparison(
        "matchingnet",
        _CLOSER,
        "MatchingNet",
        partial(_closer, module="matchingnet", name="MatchingNet"),
        _fixed(temperature=0.01),
        note="their context embeddings, which would have to be trained, add nothing; their cosines are times 100",
    ),
    Comparison("baseline", _CLOSER, "BaselineFinetune", _linear, _fixed(seed=0),
               note=_RANDOM, slow=True),
    Comparison("baseline", _CLOSER, "BaselineFinetune", _linear, slow=True,
               differs="our default starts at zero and takes the whole support, so as not to depend on a seed"),
    Comparison("baseline++", _CLOSER, "BaselineFinetune", _cosine, _fixed(seed=0),
               note=_RANDOM, slow=True),
    Comparison("baseline++", _CLOSER, "BaselineFinetune", _cosine, slow=True,
               differs="our default starts at class means and takes the whole support, so as not to depend on a seed"),
    Comparison("simpleshot", "mileyan/simple_shot", "CL2N", partial(originals.simple_shot, norm="CL2N"), _centred),
    Comparison("simpleshot", "mileyan/simple_shot", "L2N", partial(originals.simple_shot, norm="L2N")),
    Comparison("soft-kmeans", _SSL, "KMeansRefineModel",
               partial(soft_kmeans, kind="kmeans_refine_model", name="KMeansRefineModel")),
    Comparison("soft-kmeans-cluster", _SSL, "KMeansRefineRadiusModel",
               partial(soft_kmeans, kind="kmeans_refine_radius_model", name="KMeansRefineRadiusModel"),
               _fixed(temperature=2.0), note="their code halves squared distances, which the paper's formula does not"),
    Comparison("masked-soft-kmeans", _SSL, "KMeansRefineMaskModel",
               partial(soft_kmeans, kind="kmeans_refine_mask_model", name="KMeansRefineMaskModel", mask_once=True),
               note="their second multiplication by the mask is left out, as in the paper's formula"),
    Comparison("masked-soft-kmeans", _SSL, "KMeansRefineMaskModel as it is",
               partial(soft_kmeans, kind="kmeans_refine_mask_model", name="KMeansRefineMaskModel"),
               differs="their code multiplies by the mask twice, the paper's formula once"),
    Comparison("bd-cspn", _EASY, "BDCSPN", partial(easyfsl, name="BDCSPN", shift=True),
               _fixed(epsilon=1.0, confident=None),
               note="the authors published no code; this has ε = 1, takes in all queries, and is given shifted ones"),
    Comparison("bd-cspn", _EASY, "BDCSPN as it is", partial(easyfsl, name="BDCSPN", feature_normalization=2.0),
               differs="ours has ε = 10 and Z = 8, and compares prototypes with shifted queries"),
    Comparison("laplacianshot", "imtiazziko/LaplacianShot", "rectified, CL2N, λ = 0.7",
               partial(originals.laplacian_shot, norm="CL2N", rectify=True, lmd=0.7), _centred),
    Comparison("laplacianshot", "imtiazziko/LaplacianShot", "L2N, λ = 0.3",
               partial(originals.laplacian_shot, norm="L2N", rectify=False, lmd=0.3), _fixed(rectify=False, lam=0.3)),
    Comparison("label-propagation", "csyanbin/TPN-pytorch", "LabelPropagation",
               partial(originals.tpn, length_scale=0.25, neighbours=20), slow=True,
               note="its learned length scale is replaced by ours"),
    Comparison("pt-map", "yhu01/PT-MAP", "MAP", originals.pt_map),
    Comparison("tim", "mboudiaf/TIM", "TIM_GD", partial(originals.tim, name="TIM_GD", iter=1000), slow=True),
    Comparison("tim", "mboudiaf/TIM", "TIM_ADM", partial(originals.tim, name="TIM_ADM"), _fixed(form="alternating")),
    Comparison("alpha-tim", _REALISTIC, "ALPHA_TIM",
               partial(_realistic, module="tim", name="ALPHA_TIM", config="alpha_tim"),
               lambda tasks: {"alpha": 2.0 if tasks.shots == 1 else 7.0}, slow=True),
    Comparison("transductive-finetuning", _EASY, "TransductiveFinetuning",
               partial(easyfsl, name="TransductiveFinetuning", linear=True, feature_normalization=2.0), slow=True,
               note="the authors published no code; this one moves the head only, and is given the paper's head"),
    Comparison("transductive-finetuning", _EASY, "TransductiveFinetuning by cosine",
               partial(easyfsl, name="TransductiveFinetuning", cosine=True, feature_normalization=2.0), slow=True,
               differs="its cosine head has no bias, and its weights are scaled to length one at every step"),
    Comparison("transductive-finetuning", _REALISTIC, "Entropy_min",
               partial(_realistic, module="entropy_min", name="Entropy_min", config="entropy_min"),
               _fixed(temperature=1 / 15), slow=True,
               differs="scores by squared distances to moving class means, where the paper has a cosine head"),
]  # fmt: skip
