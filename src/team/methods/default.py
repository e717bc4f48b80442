"""The method that is used where none is named: on feature vectors (TEAMClassifier) and on folders of images."""

from __future__ import annotations

from team.methods import list_methods

DEFAULT_METHOD = "team+" if "team+" in list_methods() else "team"
