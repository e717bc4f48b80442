"""Training: pre-training, episodic training, checkpoints."""

from team.training.settings import EpisodicSettings, PretrainSettings

__all__ = ["EpisodicSettings", "PretrainSettings"]
