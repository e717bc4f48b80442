"""Measuring methods: accuracy with confidence intervals, from features or from images; paired comparison."""

from team.evaluation.embed import by_class, embed, episode_statistics, evaluate_images
from team.evaluation.evaluate import Evaluation, evaluate
from team.evaluation.paired import Comparison, compare, compare_accuracies

__all__ = [
    "Comparison",
    "Evaluation",
    "by_class",
    "compare",
    "compare_accuracies",
    "embed",
    "episode_statistics",
    "evaluate",
    "evaluate_images",
]
