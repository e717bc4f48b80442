"""``python -m team.cli``, which torchrun can start."""

from team.cli import main

main()
