"""Reports for people: pictures of an episode, of a metric, of features and of training, and a page to put them on."""

from team.report.episode import EpisodePictures, draw_episode
from team.report.page import Section, html_table, write_page
from team.report.plots import FeatureView, draw_curves, draw_features, draw_metric, read_curve

__all__ = [
    "EpisodePictures",
    "FeatureView",
    "Section",
    "draw_curves",
    "draw_episode",
    "draw_features",
    "draw_metric",
    "html_table",
    "read_curve",
    "write_page",
]
