"""What each method may choose from, on validation classes, before it meets a test class.

Every method is given the same features. What its paper does to them first, and its temperature, is part of the choice:

    prepare: "given" leaves features as they are, "unit" scales them to length one, "centred" subtracts the mean of the
             training classes before (SimpleShot's CL2N, which LaplacianShot also prescribes)

A grid is a list of boxes, and a box names the values of some options; the rest stays at the method's defaults. A
method that is not in the table runs with its defaults alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from torch import Tensor

from team.leaderboard.prepared import Prepared
from team.methods import create_method
from team.methods.base import Method

Setting = dict[str, Any]
"""Options of a method, and "prepare"."""

Box = dict[str, tuple[Any, ...]]

_COSINE = (0.03, 0.06, 0.12, 0.25, 0.5)  # temperatures of cosines, and of squared distances of unit vectors
_PREPARED: Box = {"prepare": ("unit", "centred"), "temperature": _COSINE}
_GIVEN: Box = {"prepare": ("given",), "temperature": (8.0, 32.0, 128.0, 512.0)}
_SELF_SCALED = ("given", "centred")  # for methods that scale to length one by themselves
# BD-CSPN's constants are known from others' code alone. On validation classes ε = 1 is worth some points in 1-shot
# episodes, where the support sample is its own prototype and with ε = 10 outweighs all queries.
_RECTIFIED: Box = {"epsilon": (1.0, 10.0), "confident": (8, None)}

GRIDS: dict[str, list[Box]] = {
    # First in a tenth of the paper's steps, ten times as long: on 128 validation episodes of each column of the TEAM
    # networks (α = 1.2 or 2) that cost at most half a point. Then as in the paper, with what those chose.
    "alpha-tim": [
        {"iterations": (100,), "learning_rate": (1e-3,), "alpha": (1.2, 1.5, 2.0, 4.0)},
        {"iterations": (1000,), "alpha": (1.2, 2.0)},
    ],
    "baseline": [{"learning_rate": (0.003, 0.01, 0.03)}],
    "baseline++": [{"prepare": _SELF_SCALED, "temperature": _COSINE}],
    "bd-cspn": [
        {"prepare": ("given",), "temperature": (0.03, 0.06)} | _RECTIFIED,
        {"prepare": ("centred",), "temperature": (0.06, 0.12, 0.25)} | _RECTIFIED,
    ],
    "label-propagation": [
        {
            "prepare": ("centred",),
            "alpha": (0.5, 0.8, 0.95),
            "length_scale": (0.12, 0.25, 0.5),
            "temperature": (0.03, 0.3),
        }
    ],
    "laplacianshot": [{"prepare": ("centred",), "lam": (0.3, 0.7, 1.5), "temperature": (0.12, 0.25, 0.5, 1.0)}],
    "masked-soft-kmeans": [_GIVEN, _PREPARED],
    "matchingnet": [{"prepare": _SELF_SCALED, "temperature": _COSINE}],
    "protonet": [_GIVEN],
    "pt-map": [
        {"sinkhorn_rounds": (10,), "centre_together": (False, True), "lam": (2.5, 5.0, 10.0, 20.0)},
        {"centre_together": (False, True), "lam": (10.0,)},
    ],
    "simpleshot": [_PREPARED],
    "soft-kmeans": [_GIVEN, _PREPARED],
    "soft-kmeans-cluster": [_GIVEN, _PREPARED],
    "team": [_GIVEN | {"k": (5, 10)}, {"prepare": ("unit", "centred"), "temperature": (0.03, 0.12, 0.5, 2.0)}],
    # More labels bear a stronger metric, and where classes are known to be unequal their shares need not be drawn to
    # equal ones: both gained some tenths of a point on validation classes.
    "team+": [
        {"doubt": (0.1, 0.3, 3.0), "temperature": (0.035, 0.045), "power": (0.5, 0.7)},
        {"doubt": (0.1, 3.0), "gamma": (20.0,), "temperature": (0.025,), "power": (0.5, 0.7)},
        {"balance": ("free",), "shrinkage": (0.0,), "power": (0.5, 0.7)},
    ],
    "tim": [
        {"form": ("alternating",), "temperature": (1 / 30, 1 / 15, 1 / 8, 1 / 4)},
        {"form": ("gradient",), "temperature": (1 / 15, 1 / 8)},
    ],
    "transductive-finetuning": [
        {"prepare": _SELF_SCALED, "temperature": (0.06, 0.12, 0.25), "learning_rate": (1e-4, 1e-3, 3e-3)}
    ],
}

TRAINED = ("gnn", "maml", "maml+", "relationnet", "reptile", "tpn")
"""Methods with weights of their own, which run with a model trained for them or not at all."""


def settings_of(name: str) -> list[Setting]:
    """All settings a method may choose from."""
    return [dict(zip(box, values, strict=True)) for box in GRIDS.get(name, [{}]) for values in product(*box.values())]


def build(name: str, setting: Setting, training_mean: Tensor) -> Method:
    """The method with this setting; training_mean ``[d]``: what "centred" subtracts."""
    options = dict(setting)
    prepare = options.pop("prepare", "given")
    method = create_method(name, **options)
    return method if prepare == "given" else Prepared(method, training_mean if prepare == "centred" else None)
