"""Thin adapters from :class:`Tasks` to the functions of the authors' own repositories, one section for each."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.peers.foreign import as_then, functions, load, sacred
from benchmarks.peers.tasks import QUERIES, WAYS, Solver, Tasks
from torch import Tensor, nn
from torch.nn import functional as F


class _Features(nn.Module):
    """A network that gives back the features it is given, in the shapes these repositories expect."""

    final_feat_dim = 256

    def forward(self, features: Tensor, feature: bool = True) -> tuple[Tensor, None]:
        return features, None


# wyharveychen/CloserLookFewShot: methods take one episode [ways, shots + queries, d]


def closer_look(folder: Path, module: str, name: str, **options: Any) -> Solver:
    kind = getattr(load(folder, f"methods.{module}"), name)

    def solve(tasks: Tasks) -> Tensor:
        torch.manual_seed(0)  # they draw the head's start and the order of samples from global state
        np.random.seed(0)  # noqa: NPY002
        method = kind(_Features, WAYS, tasks.shots, **options)
        method.n_query = QUERIES
        if module == "matchingnet":
            _leave_out_context(method)
        predictions = []
        for support, _, query in tasks.one_by_one():
            both = torch.cat([support.unflatten(0, (WAYS, -1)), query.unflatten(0, (WAYS, -1))], 1)
            with as_then():
                predictions.append(method.set_forward(both, is_feature=True).argmax(-1))
        return torch.stack(predictions)

    return solve


def _leave_out_context(method: Any) -> None:
    """Give it context embeddings that add nothing: ours has none, and theirs would have to be trained."""
    method.FCE.forward = lambda features, _: features
    method.G_encoder.forward = lambda features: (features.new_zeros(1, features.shape[1], 2 * features.shape[2]),)


# mileyan/simple_shot and imtiazziko/LaplacianShot: functions of training scripts, which print accuracies


def simple_shot(folder: Path, norm: str) -> Solver:
    from scipy.stats import mode

    seen: list[Any] = []
    args = SimpleNamespace(meta_val_way=WAYS, num_NN=1)
    script = functions(
        folder / "src/train.py",
        {"metric_class_type"},
        np=np,
        LA=np.linalg,
        args=args,
        mode=lambda *given, **named: seen.append(found := mode(*given, **named)) or found,
    )

    def solve(tasks: Tasks) -> Tensor:
        seen.clear()
        centre, labels = tasks.centre.numpy(), np.arange(WAYS).repeat(tasks.shots)
        for support, _, query in tasks.one_by_one():
            script["metric_class_type"](
                support.numpy(), query.numpy(), labels, tasks.truth[0].numpy(), tasks.shots, centre, norm
            )
        return torch.from_numpy(np.stack([found[0].reshape(-1) for found in seen]))

    return solve


def laplacian_shot(folder: Path, norm: str, *, rectify: bool, lmd: float) -> Solver:
    from scipy import sparse
    from sklearn.neighbors import NearestNeighbors

    bound_update = load(folder / "src", "lshot_update").bound_update
    seen: list[Any] = []
    script = functions(
        folder / "src/train_lshot.py",
        {"metric_class_type", "lshot_prediction", "create_affinity", "get_metric"},
        np=np,
        LA=np.linalg,
        torch=torch,
        F=F,
        sparse=sparse,
        NearestNeighbors=NearestNeighbors,
        args=SimpleNamespace(meta_val_way=WAYS, proto_rect=rectify, lshot=True, lmd=lmd, knn=3, plot_converge=False),
        bound_update=lambda *given: seen.append(found := bound_update(*given)) or found,
    )

    def solve(tasks: Tasks) -> Tensor:
        seen.clear()
        centre, labels = tasks.centre.numpy(), np.arange(WAYS).repeat(tasks.shots)
        for support, _, query in tasks.one_by_one():
            with as_then():
                script["metric_class_type"](
                    support.numpy(), query.numpy(), labels, tasks.truth[0].numpy(), tasks.shots, centre, norm
                )
        return torch.from_numpy(np.stack(seen))

    return solve


# yhu01/PT-MAP: a script with module globals, a batch of episodes at once


def pt_map(folder: Path) -> Solver:
    script: Any = load(folder, "test_standard")

    def solve(tasks: Tasks) -> Tensor:
        runs, labelled = len(tasks), WAYS * tasks.shots
        labels = torch.arange(WAYS).repeat(tasks.shots + QUERIES).expand(runs, -1)
        sizes = {"n_runs": runs, "n_shot": tasks.shots, "n_ways": WAYS, "n_queries": QUERIES}
        sizes |= {"n_lsamples": labelled, "n_usamples": WAYS * QUERIES}
        with patch.multiple(script, create=True, labels=labels, **sizes), as_then():
            samples = torch.cat([tasks.shots_first(), tasks.query], 1)
            reduced = script.QRreduction((samples + 1e-6).pow(0.5))
            script.ndatas = script.centerDatas(script.scaleEachUnitaryDatas(reduced))
            script.n_nfeat = script.ndatas.size(2)
            model, rounds = script.GaussianModel(WAYS, 10), script.MAP(0.2)
            model.initFromLabelledDatas()
            rounds.loop(model, n_epochs=20)
            return model.getProbas()[:, labelled:].argmax(-1)

    return solve


# mboudiaf/TIM: a batch of episodes at once


def tim(folder: Path, name: str, **options: Any) -> Solver:
    module: Any = load(folder, "src.tim", sacred=sacred())
    module.tim_ingredient.options.update(options)

    def solve(tasks: Tasks) -> Tensor:
        support, query = F.normalize(tasks.support, dim=2), F.normalize(tasks.query, dim=2)
        episodes = {"support": support, "query": query, "y_s": tasks.labels}
        solver = getattr(module, name)(model=_Features())
        solver.compute_lambda(**episodes)
        solver.init_weights(**episodes, y_q=tasks.truth)
        solver.run_adaptation(**episodes, y_q=tasks.truth, callback=None)
        return solver.get_preds(query)

    return solve


# oveilleux/Realistic_Transductive_Few_Shot: α-TIM's authors, with re-implementations of others


def realistic(folder: Path, module: str, name: str, config: str, **options: Any) -> Solver:
    import yaml

    source: Any = load(folder, f"src.methods.{module}")
    source.load_checkpoint = lambda **_: None  # one of them wants its network back before each task
    given = yaml.safe_load((folder / f"config/balanced/methods_config/{config}.yaml").read_text())["METHOD"] | options

    def solve(tasks: Tasks) -> Tensor:
        args = SimpleNamespace(**given, n_ways=WAYS, n_query=QUERIES, batch_size=len(tasks), ckpt_path="", model_tag="")
        with tempfile.NamedTemporaryFile() as log, as_then():
            method = getattr(source, name)(model=_Features(), device="cpu", log_file=log.name, args=args)
            task = {
                "x_s": tasks.shots_first(),
                "y_s": torch.arange(WAYS).repeat(tasks.shots).expand(len(tasks), -1)[..., None],
                "x_q": tasks.query,
                "y_q": tasks.truth[..., None],
                "train_mean": tasks.centre,
            }
            method.run_task(task, tasks.shots)
        return method.get_preds(F.normalize(tasks.query, dim=2))

    return solve


# csyanbin/TPN-pytorch: a network with 1600 features, and a length scale that it learns


def tpn(folder: Path, *, length_scale: float, neighbours: int) -> Solver:
    module: Any = load(folder, "models")
    args = {"x_dim": "84,84,3", "h_dim": 64, "z_dim": 64, "rn": 300, "alpha": 0.99, "k": neighbours}

    def solve(tasks: Tasks) -> Tensor:
        predictions = []
        with as_then(), patch.object(module.torch, "argmax", wraps=torch.argmax) as argmax:
            method = module.LabelPropagation(args)
            method.encoder = nn.Identity()
            for support, labels, query in tasks.one_by_one():
                samples = torch.cat([support, query])
                scale = length_scale * _mean_square_of_neighbours(samples, neighbours).sqrt() / 1600**0.5
                method.relation.forward = lambda points, _, scale=scale: scale.expand(len(points), 1)
                padded = F.pad(samples, (0, 1600 - samples.shape[1]))
                truth = F.one_hot(tasks.truth[0], WAYS)
                argmax.reset_mock()
                method([padded[: len(support)], F.one_hot(labels, WAYS).float(), padded[len(support) :], truth])
                scores = argmax.call_args_list[1].args[0]
                predictions.append(scores.argmax(-1))
        return torch.stack(predictions)

    return solve


def _mean_square_of_neighbours(samples: Tensor, neighbours: int) -> Tensor:
    """The unit in which our label propagation measures its length scale; each sample is one of its neighbours."""
    squares = torch.cdist(samples, samples).square()
    near = torch.zeros_like(squares).scatter(1, squares.topk(neighbours, largest=False).indices, 1)
    near = ((near + near.T) > 0) & ~torch.eye(len(samples), dtype=torch.bool)
    return squares[near].mean()
