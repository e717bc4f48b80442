"""Methods with learned parts, trained by the recipes of all data sets from the same pre-trained network as TEAM.

Settings are the recipe's unless told otherwise here. None of these was chosen on the validation classes of a real
data set yet: options are the papers' (see each method), everything else is what TEAM is trained with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_FIVE: dict[str, Any] = {"ways": 5}  # what they learn is made for a number of classes

# To fit a network to every episode takes about ten times as long, also in validation.
_NETWORK = _FIVE | {
    "statistics": "episode",
    "episodes": 2400,
    "validate_every": 800,
    "validation_episodes": 200,
}


@dataclass(frozen=True)
class Learned:
    """options: of the method, beside ``dim``, which is the network's; settings: of EpisodicSettings that differ."""

    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


LEARNED: dict[str, Learned] = {
    "relationnet": Learned(),
    "tpn": Learned(),
    "gnn": Learned(settings=_FIVE),
    "maml": Learned(settings=_NETWORK),
    # All queries take part in every step of its fitting: gradients of gradients cost many times as much here.
    "maml+": Learned(options={"first_order": True}, settings=_NETWORK),
    # About the authors' step for few tasks at a time (0.235 for two; with ten, 1 at first). They take 100 000 of them,
    # from nothing; this starts from a pre-trained network.
    "reptile": Learned(settings=_NETWORK | {"learning_rate": 0.25, "episodes": 6000, "validate_every": 2000}),
}
