"""Our methods beside the implementations of their authors or others, on the same features and episodes.

`python -m benchmarks.peers FOLDER`, from the root of the repository, where FOLDER holds a checkout of each repository
that :mod:`benchmarks.peers.comparisons` names, and in FOLDER/site what they import beyond this project's own
dependencies: `pip install --target FOLDER/site tqdm pyyaml tensorflow-cpu`. Nothing of theirs is part of this project.
"""
