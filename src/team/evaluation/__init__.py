"""Measuring methods: accuracy with confidence intervals, from features or from images."""

from team.backbones.statistics import episode_statistics
from team.evaluation.embed import by_class, embed, evaluate_images
from team.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Evaluation", "by_class", "embed", "episode_statistics", "evaluate", "evaluate_images"]
