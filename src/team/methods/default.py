"""The method that is used where none is named: on feature vectors (TEAMClassifier) and on folders of images."""

from __future__ import annotations

DEFAULT_METHOD = "team"
