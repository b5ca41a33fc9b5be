"""``python -m daskclust``."""

from daskclust.cli import main

main()
