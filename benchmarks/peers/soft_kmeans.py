"""renmengye/few-shot-ssl-public: soft k-means by its authors, TensorFlow 1 code run by TensorFlow 2."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch
from benchmarks.peers.foreign import load
from benchmarks.peers.tasks import WAYS, Solver, Tasks
from torch import Tensor

from team.methods.soft_kmeans import MaskedSoftKMeans


def soft_kmeans(folder: Path, kind: str, name: str, *, mask_once: bool = False) -> Solver:
    """``name`` of ``fewshot.models.<kind>``, whose inputs are features, with the queries as the unlabelled set.

    The network that predicts masks gets the weights with which ours begins.
    mask_once: leave out the first of two multiplications by the mask, as the paper's formula has only one
    """
    tf = _tensorflow_1()
    module: Any = load(folder, f"fewshot.models.{kind}", tensorflow=tf)
    model = getattr(module, name)
    if mask_once:
        assign = load(folder, "fewshot.models.kmeans_utils", tensorflow=tf).assign_cluster
        module.assign_cluster_soft_mask = lambda centres, points, mask: (assign(centres, points), mask)
    if not tf.flags.FLAGS.is_parsed():
        tf.flags.FLAGS(["peers"])

    def solve(tasks: Tasks) -> Tensor:
        with tf.Graph().as_default(), tf.Session() as session:
            support = tf.placeholder(tf.float32, [1, *tasks.support.shape[1:]])
            query = tf.placeholder(tf.float32, [1, *tasks.query.shape[1:]])
            fed = {"x_train": support, "y_train": tf.constant(tasks.labels[:1].numpy()), "nway": WAYS, "x_test": query}
            fed |= {"x_unlabel": query, "_x_unlabel": query, "y_unlabel": tf.zeros([1, tasks.truth.shape[1]])}
            fed |= {"config": SimpleNamespace(num_cluster_steps=1), "get_encoded_inputs": lambda _, *given: given}
            logits = type("Fed", (model,), fed | {"__init__": lambda _: None})().predict()[-1]
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                if variable.name.startswith("dist_mlp"):
                    variable.load(_mask_weights(variable.name).detach().numpy(), session)
            answers = [
                session.run(logits, {support: one[None].numpy(), query: other[None].numpy()})
                for one, _, other in tasks.one_by_one()
            ]
        # the cluster of what belongs to no class, where there is one, comes last and is no answer
        return torch.cat([torch.from_numpy(answer) for answer in answers])[..., :WAYS].argmax(-1)

    return solve


def _mask_weights(name: str) -> Tensor:
    """Ours for "dist_mlp/layer_i/w" or "b"; theirs has an output more, in the middle, for a second round."""
    ours = MaskedSoftKMeans()
    layer = ours.hidden if "layer_0" in name else ours.output
    values = layer.weight.T if name.endswith("/w:0") else layer.bias
    if layer is ours.hidden:
        return values
    return torch.stack([values[..., 0], torch.zeros_like(values[..., 0]), values[..., 1]], -1)


def _tensorflow_1() -> Any:
    """TensorFlow as it was; `contrib`, of which an unused recurrent cell is taken, is gone for good."""
    import tensorflow.compat.v1 as tf

    module = ModuleType("tensorflow")
    module.__dict__.update(vars(tf))
    module.contrib = MagicMock()  # type: ignore[attr-defined]
    return module
