"""renmengye/few-shot-ssl-public: soft k-means by its authors, TensorFlow 1 code run by TensorFlow 2."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch
from torch import Tensor

from benchmarks.peers.foreign import load
from benchmarks.peers.tasks import WAYS, Solver, Tasks
from team.methods.soft_kmeans import MaskedSoftKMeans


def soft_kmeans(folder: Path, kind: str, name: str) -> Solver:
    """``name`` of ``fewshot.models.<kind>``, whose inputs are features, with the queries as the unlabelled set.

    The network that predicts masks gets the weights with which ours begins.
    """
    tf = _tensorflow_1()
    model: Any = getattr(load(folder, f"fewshot.models.{kind}", tensorflow=tf), name)
    if not tf.flags.FLAGS.is_parsed():
        tf.flags.FLAGS(["peers"])

    def solve(tasks: Tasks) -> Tensor:
        with tf.Graph().as_default(), tf.Session() as session:
            support, query = tf.constant(tasks.support.numpy()), tf.constant(tasks.query.numpy())
            fed = {"x_train": support, "y_train": tf.constant(tasks.labels.numpy()), "nway": WAYS}
            fed |= {"x_unlabel": query, "_x_unlabel": query, "y_unlabel": tf.zeros(tasks.truth.shape), "x_test": query}
            fed |= {"config": SimpleNamespace(num_cluster_steps=1), "get_encoded_inputs": lambda _, *given: given}
            logits = type("Fed", (model,), fed | {"__init__": lambda _: None})().predict()[-1]
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                if variable.name.startswith("dist_mlp"):
                    variable.load(_mask_weights(variable.name).detach().numpy(), session)
            answer = torch.from_numpy(session.run(logits))
        return answer[..., :WAYS].argmax(-1)  # the cluster of what belongs to no class, if any, comes last

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
