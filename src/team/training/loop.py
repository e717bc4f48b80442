"""The training loop: steps, validation, checkpoints, resuming. What is trained is an :class:`Objective`."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from team.provenance import commit, hardware
from team.training.average import WeightAverage
from team.training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_into,
    load_optimiser,
    optimiser_tensors,
    save_checkpoint,
    with_prefix,
    without_prefix,
)
from team.training.distributed import World, shared_loss
from team.training.metrics import Metrics
from team.training.progress import Progress
from team.training.step import Step


class Objective(ABC):
    """What a loop trains: the modules, the loss of a step, and how to tell whether it got better."""

    name: str
    module: nn.ModuleDict
    """All that is trained, validated and saved."""
    steps: int
    per_step: int
    """Images or episodes in a step, for the rate shown."""
    unit: str
    validate_every: int
    patience: int | None
    """Steps without a better validation after which training ends."""
    average: float

    def begin(self) -> None:
        """What is done once, before the first step of a run; a run that goes on has its outcome in the state."""
        return

    @abstractmethod
    def optimiser(self) -> torch.optim.Optimizer: ...

    @abstractmethod
    def learning_rate(self, step: int) -> float: ...

    @abstractmethod
    def draw(self, step: int) -> dict[str, Tensor]:
        """All random numbers of a step, as CPU tensors of constant shapes; depends on the seed and the step alone."""

    @abstractmethod
    def loss(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Loss and accuracy of what was drawn; must not wait for the device."""

    @abstractmethod
    def validate(self) -> float:
        """Accuracy in per cent on episodes of the validation classes."""

    @abstractmethod
    def save(self, path: Path, facts: dict[str, Any]) -> None:
        """Write the model as it is now."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What must be equal for a run to be the continuation of another."""


@dataclass
class Outcome:
    """How far a run came. best: validation accuracy of best.safetensors, taken after best_step steps."""

    best: float = -1.0
    best_step: int = 0
    step: int = 0
    validated: int = 0
    """The step of the latest validation."""
    seconds: float = 0.0
    """Time spent, over all resumptions."""
    stopped: str = ""
    """Why training ended before its last step, if it did."""
    complete: bool = False
    """Whether nothing is left to do; False where the time limit ended the run."""


def train(
    objective: Objective,
    folder: Path,
    *,
    resume: bool = True,
    checkpoint_seconds: float = 30.0,
    time_limit: float | None = None,
    show: bool = True,
    world: World | None = None,
) -> Outcome:
    """Train until the steps, the patience or the time limit (seconds) are used up.

    ``folder`` gets best.safetensors (the model that validated best), last.safetensors (the state to resume from) and
    metrics.jsonl. A run that was killed at any moment and is started again ends, on the same CPU, with the same bits.
    With several processes (``world``) each works on a share of every step, and the first writes the files.
    """
    world = world or World()
    last, best = folder / "last.safetensors", folder / "best.safetensors"
    resumes = resume and last.exists()
    if not resumes:
        objective.begin()
    device = next(objective.module.parameters()).device
    optimiser = objective.optimiser()
    average = WeightAverage(objective.module, objective.average)
    loss = shared_loss(objective.module, objective.loss, world)
    step = Step(loss, optimiser, average, device, graph=world.size == 1)
    outcome = Outcome()
    if world.first:
        for left_behind in folder.glob(".*.tmp"):  # by a run that was killed while it wrote
            left_behind.unlink(missing_ok=True)
    if resumes:
        _restore(last, objective, optimiser, average, step.sums, outcome)
    metrics = Metrics(folder / "metrics.jsonl", outcome.step) if world.first else None
    started, already, saved = time.monotonic(), outcome.seconds, time.monotonic()

    origin = {"hardware": hardware(device), "commit": commit()}

    def seconds() -> float:
        return already + time.monotonic() - started

    def check_finite() -> None:
        if not all(bool(torch.isfinite(values).all()) for values in (step.sums, *average.live)):
            kept = f"; {last} holds the state of an earlier step" if last.exists() else ""
            raise FloatingPointError(
                f"the loss became infinite or NaN before step {outcome.step}{kept}. Use a lower learning rate"
            )

    def checkpoint() -> None:
        nonlocal saved
        check_finite()
        outcome.seconds = seconds()
        if world.first:
            _store(last, objective, optimiser, average, step.sums, outcome)
        saved = time.monotonic()

    def validate() -> None:
        check_finite()
        loss, accuracy = (world.mean(step.sums) / max(outcome.step - outcome.validated, 1)).tolist()
        step.sums.zero_()
        outcome.validated = outcome.step
        with average.applied():
            objective.module.eval()
            score = world.agreed(objective.validate())
            if score > outcome.best:
                outcome.best, outcome.best_step = score, outcome.step
                facts = {"validation_accuracy": score, "step": outcome.step, "seconds": seconds()}
                if world.first:
                    objective.save(best, facts | origin)
            objective.module.train()
        row = {"loss": loss, "accuracy": 100 * accuracy, "validation": score, "best": outcome.best}
        if metrics is not None:
            metrics.write(outcome.step, row | {"learning_rate": objective.learning_rate(outcome.step - 1)})
        progress.report(outcome.step * objective.per_step, row)

    try:
        with Progress(
            objective.name, objective.steps * objective.per_step, objective.unit, show and world.first
        ) as progress:
            progress.begin(outcome.step * objective.per_step)
            objective.module.train()
            while outcome.step < objective.steps and not outcome.stopped:
                average.prepare(outcome.step)
                step(world.share(objective.draw(outcome.step)), objective.learning_rate(outcome.step))
                outcome.step += 1
                progress.advance(outcome.step * objective.per_step)
                late = time_limit is not None and bool(world.agreed(time.monotonic() - started > time_limit))
                if outcome.step % objective.validate_every == 0 or outcome.step == objective.steps or late:
                    validate()
                    if objective.patience is not None and outcome.step - outcome.best_step >= objective.patience:
                        outcome.stopped = "patience"
                    checkpoint()
                elif time.monotonic() - saved > checkpoint_seconds:
                    checkpoint()
                if late:
                    break
    finally:
        if metrics is not None:
            metrics.close()
    outcome.complete = outcome.step >= objective.steps or bool(outcome.stopped)
    return outcome


def _store(
    path: Path,
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage,
    sums: Tensor,
    outcome: Outcome,
) -> None:
    tensors = (
        with_prefix("module", objective.module.state_dict())
        | with_prefix("average", average.state())
        | with_prefix("optimiser", optimiser_tensors(optimiser))
        | {"sums": sums}
    )
    save_checkpoint(path, tensors, {"identity": objective.identity(), "outcome": asdict(outcome)})


def _restore(
    path: Path,
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage,
    sums: Tensor,
    outcome: Outcome,
) -> None:
    tensors, info = load_checkpoint(path)
    ours, theirs = json.loads(json.dumps(objective.identity())), info.get("identity")
    if theirs != ours:
        differing = sorted(key for key in ours if not isinstance(theirs, dict) or ours[key] != theirs.get(key))
        raise CheckpointError(
            f"{path} belongs to another run ({', '.join(differing) or 'settings'} differ); "
            "give a new folder, or start over with resume off"
        )
    load_into(objective.module, without_prefix("module", tensors), str(path))
    average.load(without_prefix("average", tensors))
    load_optimiser(optimiser, without_prefix("optimiser", tensors))
    sums.copy_(tensors["sums"])
    for name, value in info["outcome"].items():
        setattr(outcome, name, value)
