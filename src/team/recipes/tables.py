"""The paper's tables: which cells they have, and the figures printed in them (per cent, 1000 test episodes)."""

from __future__ import annotations

from dataclasses import dataclass

from team.recipes.recipe import Variant
from team.recipes.semi import MINIIMAGENET as SEMI

Cell = tuple[str, Variant, int]
"""Recipe, variant, shots."""

TEST_EPISODES = 1000

PAPER: dict[Cell, float] = {
    # Table 1, miniImageNet
    ("miniimagenet-conv4", "baseline", 1): 51.68,
    ("miniimagenet-conv4", "baseline", 5): 68.71,
    ("miniimagenet-conv4", "team", 1): 56.57,
    ("miniimagenet-conv4", "team", 5): 72.04,
    ("miniimagenet-resnet18", "baseline", 1): 55.25,
    ("miniimagenet-resnet18", "baseline", 5): 70.58,
    ("miniimagenet-resnet18", "team", 1): 60.07,
    ("miniimagenet-resnet18", "team", 5): 75.90,
    # Table 2, CIFAR-100
    ("cifar100-conv4", "baseline", 1): 57.83,
    ("cifar100-conv4", "baseline", 5): 76.40,
    ("cifar100-conv4", "team", 1): 64.07,
    ("cifar100-conv4", "team", 5): 79.05,
    ("cifar100-resnet18", "baseline", 1): 66.30,
    ("cifar100-resnet18", "baseline", 5): 80.46,
    ("cifar100-resnet18", "team", 1): 70.43,
    ("cifar100-resnet18", "team", 5): 81.25,
    # Table 3, CUB
    ("cub-conv4", "baseline", 1): 69.39,
    ("cub-conv4", "baseline", 5): 82.78,
    ("cub-conv4", "team", 1): 75.71,
    ("cub-conv4", "team", 5): 86.04,
    ("cub-resnet18", "baseline", 1): 74.55,
    ("cub-resnet18", "baseline", 5): 85.98,
    ("cub-resnet18", "team", 1): 80.16,
    ("cub-resnet18", "team", 5): 87.17,
    # Table 4, ablation
    ("miniimagenet-conv4", "tim", 1): 52.97,
    ("miniimagenet-conv4", "tim", 5): 70.45,
    ("miniimagenet-conv4", "eam", 1): 55.35,
    ("miniimagenet-conv4", "eam", 5): 71.59,
    ("cifar100-conv4", "tim", 1): 59.56,
    ("cifar100-conv4", "tim", 5): 77.65,
    ("cifar100-conv4", "eam", 1): 62.76,
    ("cifar100-conv4", "eam", 5): 78.80,
    ("cub-conv4", "tim", 1): 70.27,
    ("cub-conv4", "tim", 5): 84.68,
    ("cub-conv4", "eam", 1): 75.06,
    ("cub-conv4", "eam", 5): 86.06,
    # Table 6, shots
    ("miniimagenet-conv4", "baseline", 3): 63.87,
    ("miniimagenet-conv4", "baseline", 7): 71.28,
    ("miniimagenet-conv4", "baseline", 9): 73.35,
    ("miniimagenet-conv4", "team", 3): 67.64,
    ("miniimagenet-conv4", "team", 7): 73.47,
    ("miniimagenet-conv4", "team", 9): 75.04,
    # Table 5, semi-supervised; it has no row for the baseline
    ("miniimagenet-conv4-semi", "soft-kmeans", 1): 50.09,
    ("miniimagenet-conv4-semi", "soft-kmeans", 5): 64.59,
    ("miniimagenet-conv4-semi", "soft-kmeans-cluster", 1): 49.03,
    ("miniimagenet-conv4-semi", "soft-kmeans-cluster", 5): 63.08,
    ("miniimagenet-conv4-semi", "masked-soft-kmeans", 1): 50.41,
    ("miniimagenet-conv4-semi", "masked-soft-kmeans", 5): 64.39,
    ("miniimagenet-conv4-semi", "tpn", 1): 52.78,
    ("miniimagenet-conv4-semi", "tpn", 5): 66.42,
    ("miniimagenet-conv4-semi", "team", 1): 54.81,
    ("miniimagenet-conv4-semi", "team", 5): 68.92,
}


@dataclass(frozen=True)
class Table:
    """A table of the paper. cells: in the order they are printed; note: what a reader of it should know."""

    title: str
    cells: tuple[Cell, ...]
    note: str = ""


def _main(dataset: str) -> tuple[Cell, ...]:
    variants: tuple[Variant, ...] = ("baseline", "team")
    return tuple((f"{dataset}-{net}", v, s) for net in ("conv4", "resnet18") for v in variants for s in (1, 5))


def _ablation() -> tuple[Cell, ...]:
    variants: tuple[Variant, ...] = ("baseline", "tim", "eam", "team")
    return tuple((f"{d}-conv4", v, s) for d in ("miniimagenet", "cifar100", "cub") for v in variants for s in (1, 5))


def _shots() -> tuple[Cell, ...]:
    variants: tuple[Variant, ...] = ("baseline", "team")
    return tuple(("miniimagenet-conv4", v, s) for v in variants for s in (1, 3, 5, 7, 9))


def _semi() -> tuple[Cell, ...]:
    return tuple((SEMI.name, variant, shots) for variant in SEMI.variants for shots in (1, 5))


TABLES: dict[str, Table] = {
    "table1": Table("Table 1: miniImageNet", _main("miniimagenet")),
    "table2": Table("Table 2: CIFAR-100", _main("cifar100")),
    "table3": Table("Table 3: CUB", _main("cub")),
    "ablation": Table("Table 4: ablation", _ablation()),
    "shots": Table("Table 6: miniImageNet with more shots", _shots()),
    "semi": Table(
        "Table 5: semi-supervised, miniImageNet",
        _semi(),
        "Of every training class 40 % is labelled; figures are means over 10 such partitions. Methods other than the\n"
        "baseline see 5 unlabelled images per class in a training episode and 20 in a test episode; `tpn` and\n"
        "`team` are TPN-semi and TEAM-semi. In the latter they shape the metric and refine the prototypes; the paper\n"
        "does not say how it uses them. It prints others' figures for its peers, and has no row for the baseline;\n"
        "here all rows share network, pre-training and episodes.",
    ),
}
