"""``python -m daskclust``."""

from daskclust.cli import program

program()
