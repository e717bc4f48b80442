"""ResNet-18 recipes (512 features): the ResNet columns of Tables 1, 2 and 3.

CIFAR-100 and miniImageNet are stored at their own size and enlarged on the device, to 224×224. Settings follow the
ConvNet recipes; the paper trains this network from scratch. On miniImageNet, as with the ConvNet, features at test are
means over two views and episodes have 10 ways; they see images at 256×256. Pre-training there has three generations,
each but the first taught by the one before. The last sees images at 168×168: a random crop shows what is in it larger
than it is, and the smaller input makes up for that.
"""

from __future__ import annotations

from dataclasses import replace

from team.data.augment import Augmentation
from team.mixing import MixingSchedule
from team.recipes.recipe import VARIANTS, Recipe
from team.training.settings import EpisodicSettings, PretrainSettings

_STRONG = Augmentation(crop=0.3, flip=True, colour=0.4)

_EPISODIC = EpisodicSettings(
    episodes=4000,
    per_step=4,
    learning_rate=2e-4,
    schedule="cosine",
    mixing=MixingSchedule(start=2500),
    augmentation=Augmentation(crop=0.6, flip=True, colour=0.2),
    average=0.998,
    validate_every=1000,
    validation_episodes=600,
)

_PRETRAIN = PretrainSettings(epochs=30, batch=256, learning_rate=0.2, augmentation=_STRONG)

PLAIN = Recipe(
    name="miniimagenet-resnet18-plain",
    dataset="miniimagenet",
    split="ravi",
    backbone="resnet18",
    size=224,
    stored_size=84,
    pretrain=_PRETRAIN,
    episodic=_EPISODIC,
)
"""The teacher of the ConvNet's pre-training."""

_TURNED = replace(
    PLAIN,
    name="miniimagenet-resnet18-turned",
    backbone_options={"mirror": True},
    pretrain=replace(_PRETRAIN, epochs=25, rotation=1.0),
)

_TAUGHT = replace(
    _TURNED,
    name="miniimagenet-resnet18-taught",
    pretrain=replace(
        _PRETRAIN, epochs=35, rotation=1.0, teaching=0.7, augmentation=Augmentation(crop=0.2, flip=True, colour=0.4)
    ),
    teacher=_TURNED,
)
assert _TAUGHT.pretrain is not None

MINIIMAGENET = replace(
    _TAUGHT,
    name="miniimagenet-resnet18",
    size=256,
    pretrain_size=168,
    pretrain=replace(_TAUGHT.pretrain, epochs=100, mixup=0.5, average=0.998, validations=10),
    teacher=_TAUGHT,
    episodic=replace(_EPISODIC, ways=10, episodes=2000, mixing=MixingSchedule(start=1500), validate_every=500),
)

MEAN = replace(
    MINIIMAGENET,
    name="miniimagenet-resnet18-mean",
    backbone_options={"mirror": True, "pool": 3.0},
    at_test={"blocks": 2, "zoom": True},
    start=MINIIMAGENET,
    members=8,
    variants=(*VARIANTS, "team+"),  # others learn for a number of features, which changes at test
)
"""What helps new classes most, at the cost of eight trainings. Two blocks give features at test alone: on validation
classes a network trained with both is the weaker one (results/bench/resnet18-mean.json)."""

CIFAR100 = replace(
    PLAIN,
    name="cifar100-resnet18",
    dataset="cifar100",
    split="cifar-fs",
    stored_size=32,
    pretrain=replace(_PRETRAIN, epochs=25),
)

CUB = Recipe(
    name="cub-resnet18",
    dataset="cub",
    split="closerlook",
    backbone="resnet18",
    size=224,
    encoding="jpeg",
    pretrain=replace(_PRETRAIN, epochs=100, batch=128, learning_rate=0.1),
    episodic=_EPISODIC,
)
