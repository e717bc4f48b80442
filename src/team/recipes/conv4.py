"""ConvNet recipes (84×84, 256 features) for the three data sets: Tables 1, 2, 3, the ablation and the shots table.

Features at test are means over an image and its mirror image. On miniImageNet a ResNet-18 teaches the pre-training,
episodes have 10 ways, and mixing, which cost accuracy on the validation classes from the moment it began, begins late:
the paper's 5000 episodes are as many updates, ours are a quarter as many.
"""

from __future__ import annotations

from dataclasses import replace

from team.data.augment import Augmentation
from team.mixing import MixingSchedule
from team.recipes import resnet18
from team.recipes.recipe import Recipe
from team.training.settings import EpisodicSettings, PretrainSettings

_LIGHT = Augmentation(crop=0.8, flip=True, colour=0.1)

_PRETRAIN = PretrainSettings(epochs=90, batch=256, learning_rate=0.2, weight_decay=5e-4, augmentation=_LIGHT)

_EPISODIC = EpisodicSettings(
    episodes=12_000,
    per_step=4,
    learning_rate=1e-3,
    schedule="cosine",
    augmentation=_LIGHT,
    average=0.998,
    validate_every=1500,
    validation_episodes=600,
    statistics="running",
)

CIFAR100 = Recipe(
    name="cifar100-conv4",
    dataset="cifar100",
    split="cifar-fs",
    backbone="conv4",
    backbone_options={"mirror": True},
    size=84,
    pretrain=_PRETRAIN,
    episodic=_EPISODIC,
)

MINIIMAGENET = replace(
    CIFAR100,
    name="miniimagenet-conv4",
    dataset="miniimagenet",
    split="ravi",
    pretrain=replace(_PRETRAIN, epochs=60, teaching=0.7),
    teacher=resnet18.PLAIN,
    episodic=replace(_EPISODIC, ways=10, episodes=8000, mixing=MixingSchedule(start=7000), validate_every=1000),
)

CUB = replace(
    CIFAR100,
    name="cub-conv4",
    dataset="cub",
    split="closerlook",
    pretrain=replace(_PRETRAIN, epochs=300, augmentation=Augmentation(crop=0.4, flip=True, colour=0.3)),
)
