"""Batch normalisation folded into the convolution before it, for networks that only embed."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


def folded(network: nn.Module) -> nn.Module:
    """A copy of the network for evaluation, in which a convolution and the normalisation after it are one layer.

    Pairs are found where one follows the other in a ``Sequential``; everything else is as it was. The copy gives the
    same features up to rounding.
    """
    result = copy.deepcopy(network).eval()
    for module in result.modules():
        if not isinstance(module, nn.Sequential):
            continue
        for place in range(len(module) - 1):
            first, second = module[place], module[place + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d) and second.track_running_stats:
                module[place] = fuse_conv_bn_eval(first, second)
                module[place + 1] = nn.Identity()
    return result
