"""The semi-supervised comparison on miniImageNet: 40 % of every training class is labelled, 60 % is not.

The protocol is that of Ren et al., "Meta-learning for semi-supervised few-shot classification", ICLR 2018, which the
paper follows: support and queries are labelled images, 5 unlabelled ones per class join them in training and 20 at test
(no distractors), and figures are means over 10 random partitions of the training set. At test, as in their code, the
unlabelled images are any of the class that are neither support nor query. Otherwise settings are those of the ConvNet
recipes with fewer training episodes, of 5 ways, and no teacher, who would know all labels.
"""

from __future__ import annotations

from dataclasses import replace

from team.mixing import MixingSchedule
from team.recipes import conv4

_FULL = conv4.MINIIMAGENET
assert _FULL.pretrain is not None

MINIIMAGENET = replace(
    _FULL,
    name="miniimagenet-conv4-semi",
    variants=("baseline", "soft-kmeans", "soft-kmeans-cluster", "masked-soft-kmeans", "tpn", "team"),
    labelled=0.4,
    partitions=10,
    pretrain=replace(_FULL.pretrain, teaching=0.0, rotation=1.0),
    teacher=None,
    episodic=replace(
        _FULL.episodic,
        ways=5,
        episodes=3000,
        mixing=MixingSchedule(start=2000),
        validate_every=1000,
        unlabelled=5,
        validation_unlabelled=20,
    ),
    by_variant={"baseline": {"unlabelled": 0, "validation_unlabelled": 0}},
)
